"""What every kind of child keeps, by objects of its real controller, which tests/integration/kinds records."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Final

import pytest

from rightpool.api.revision import Revision
from rightpool.api.workload import Workload
from rightpool.contract import LABEL_ROLE
from rightpool.workloads.kinds.kind import Kind, Unable, adoption_of
from rightpool.workloads.kinds.registry import KINDS, adoptable, adopted_workload, child_owning, kind_named, pod_sets_of
from rightpool.workloads.overlay import overlaid
from rightpool.workloads.pod_set import scaled_of
from rightpool.workloads.resources import asks_for_chips
from rightpool.workloads.template import InvalidTemplate, normalised
from tests.unit.workloads.samples import GPU_POOL, INJECTION, OWNER, plain, ref

RECORDED: Final = Path(__file__).parent / "recorded"
Body = dict[str, Any]

each_kind = pytest.mark.parametrize("field", KINDS)
# Their pods are not in the child alone: nothing is laid over them.
each_whole_kind = pytest.mark.parametrize("field", [field for field in KINDS if KINDS[field].companion is None])
each_adopted_kind = pytest.mark.parametrize("field", [kind.field for kind in adoptable()])
SERVES: Final = {"server"}
ENDLESS: Final = {*SERVES, "leaderWorkerSet"}
each_gang = pytest.mark.parametrize("field", [field for field in KINDS if field not in SERVES])


def recorded(field: str) -> Body:
    found: Body = json.loads((RECORDED / f"{field}.json").read_text())
    return found


def of(field: str) -> tuple[Kind[Any], Any]:
    """The kind, and the workload that was recorded."""
    workload = Workload.model_validate({field: recorded(field)["workload"]})
    return KINDS[field], workload.chosen


def built(field: str, placed: Revision, suspend: bool = False, queue: str | None = None) -> Body:
    """The child that was recorded, anywhere."""
    kind, workload = of(field)
    if kind.companion is not None:
        workload = kind.companion.known(workload, recorded(field)["original"])
    return kind.build(OWNER, workload, queue, placed, GPU_POOL, INJECTION, suspend)


def users(field: str, placed: Revision) -> Body:
    """Such an object as somebody makes it, of this size on the pool."""
    kind, workload = of(field)
    if kind.companion is None:
        return kind.build(OWNER, workload, None, placed, GPU_POOL, None)
    chips = {"limits": {GPU_POOL.resource_name: str(placed.placement.chips_per_replica)}}
    pods = {"spec": {"nodeSelector": {**GPU_POOL.node_selector}}}
    jobs = [{"name": "node", "template": {"spec": {"template": pods}}}]
    patch = {"manager": "example.com/me", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    trainer = {"numNodes": placed.placement.replicas, "resourcesPerNode": chips}
    spec = {"runtimeRef": {"name": "torch"}, "trainer": trainer, "runtimePatches": [patch], "suspend": False}
    return {"metadata": {"labels": {}}, "spec": spec}


def merged(body: Body, patch: Body) -> Body:
    result = copy.deepcopy(body)
    for key, value in patch.items():
        result[key] = merged(result.get(key) or {}, value) if isinstance(value, dict) else value
    return result


@each_kind
def test_each_state_is_read(field: str) -> None:
    kind, seen = KINDS[field], recorded(field)
    expected = {"running": (False, False, False), "suspended": (True, False, False)}
    if field not in ENDLESS:
        expected |= {"completed": (False, True, False), "failed": (False, False, True)}
    state = {name: kind.observe(seen[name]) for name in expected}
    assert {name: (s.suspended, s.succeeded, s.failed) for name, s in state.items()} == expected
    assert state["running"].started_at and state["suspended"].started_at is None
    assert state["running"].failure is None and all(s.failure for s in state.values() if s.failed)
    assert len({s.role for s in state.values()}) == 1


@each_kind
def test_a_childs_pods_are_its_own_and_nobody_elses(field: str) -> None:
    seen, kind = recorded(field), KINDS[field]
    about = seen["running"]["metadata"]
    own = kind.observe(seen["running"]).members or about["uid"]
    assert len(seen["pods"]) >= 2
    for pod in seen["pods"]:
        assert kind.owner_of(pod["metadata"], about["name"]) == own
        assert child_owning(pod["metadata"], about["name"]) == own, "and no other kind takes them for its own"
        assert child_owning(pod["metadata"], "one-r2") == ""


@each_kind
def test_pods_that_train_have_the_role_that_the_child_names(field: str) -> None:
    kind, workload = of(field)
    seen = recorded(field)
    role = kind.observe(seen["running"]).role
    assert role == scaled_of(kind.pod_sets(workload)).name
    training = [pod for pod in seen["pods"] if pod["metadata"]["labels"][LABEL_ROLE] == role]
    assert len(training) == workload.replicas
    if kind.companion is not None:
        workload = kind.companion.known(workload, seen["original"])
    assert len(seen["pods"]) == sum(pod_set.pods for pod_set in kind.pod_sets(workload))


@each_gang
def test_pods_look_for_the_first_where_it_is(field: str) -> None:
    seen = recorded(field)
    named = {f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}.research" for pod in seen["pods"]}
    addresses = (pod["spec"]["leader"] for pod in seen["pods"] if pod["spec"]["leader"] is not None)
    leaders = {address.removesuffix(".svc") for address in addresses}
    assert len(leaders) == 1 and leaders <= named


@each_kind
def test_what_is_built_is_read_back(field: str) -> None:
    kind, workload = of(field)
    before = copy.deepcopy(workload)
    for suspend in (False, True):
        child = built(field, ref(2, 2), suspend)
        state = kind.observe(child)
        assert (state.suspended, state.succeeded, state.failed, state.expires) == (suspend, False, False, False)
        assert state.role == scaled_of(kind.pod_sets(workload)).name
        assert (child["apiVersion"], child["kind"]) == (kind.resource.api_version, kind.resource.kind)
        assert child["metadata"]["name"] == "bert-r3"
    assert built(field, ref(2, 2), queue="q")["metadata"]["labels"]
    assert workload == before, "the user's own is not changed"


@each_kind
def test_it_is_stopped_started_and_set_to_expire_by_its_spec_alone(field: str) -> None:
    kind, running = KINDS[field], recorded(field)["running"]
    unit = kind.observe(running).unit
    stop, go = (kind.suspension(suspend, ref(2, 2).placement, unit) for suspend in (True, False))
    expiry = kind.expiry(60)
    assert stop.keys() == go.keys() == expiry.keys() == {"spec"}
    stopped = merged(running, stop)
    assert kind.observe(stopped).suspended and not kind.observe(merged(stopped, go)).suspended
    expired = kind.observe(merged(running, expiry))
    assert not expired.suspended
    assert expired.expires or kind.lifetime(of(field)[1]) is None


@each_whole_kind
def test_another_template_is_of_the_pods_that_train_alone(field: str) -> None:
    kind, workload = of(field)
    template = overlaid(scaled_of(kind.pod_sets(workload)).template, plain(image="example.com/other:1"))
    changed = kind.with_template(workload, template)
    assert scaled_of(kind.pod_sets(changed)).template == template
    assert [s for s in kind.pod_sets(changed) if not s.scaled] == [s for s in kind.pod_sets(workload) if not s.scaled]
    assert changed.replicas == workload.replicas and changed.chips_per_replica == workload.chips_per_replica


@each_adopted_kind
def test_members_are_found_by_a_label_that_each_pod_has(field: str) -> None:
    kind, seen = KINDS[field], recorded(field)
    label, value = adoption_of(kind).members(seen["running"])
    assert value and all(pod["metadata"]["labels"][label] == value for pod in seen["pods"])
    assert all(
        adoption_of(kind).role_of(pod["metadata"]) == pod["metadata"]["labels"][LABEL_ROLE] for pod in seen["pods"]
    )


@each_adopted_kind
def test_an_object_that_somebody_made_is_the_workload_that_it_asks_for(field: str) -> None:
    kind, workload = of(field)
    made = users(field, ref(4, 2))
    before = copy.deepcopy(made)
    adopted = adopted_workload(kind, made)
    assert (adopted.field, adopted.replicas, adopted.chips_per_replica) == (field, 2, 2)
    sets = pod_sets_of(adopted)
    assert [one.name for one in sets] == [one.name for one in kind.pod_sets(workload)]
    assert not asks_for_chips(normalised(scaled_of(sets).template)), "they are added where it is placed"
    assert made == before, "what was read stays as it is"
    assert kind_named(kind.resource.api_version, kind.resource.kind) is kind
    # No chips at all, and more than one container with some.
    with pytest.raises(InvalidTemplate, match=r"no container asks for chips|the chips of a pod in spec\.trainer"):
        adoption_of(kind).adopted({**made, "spec": without_chips(made["spec"])})


def test_what_can_t_be_adopted_is_found_by_nobody_and_says_so() -> None:
    others = [kind for kind in KINDS.values() if kind not in adoptable()]
    assert [kind.resource.kind for kind in others] == ["Deployment"]
    for kind in others:
        assert kind_named(kind.resource.api_version, kind.resource.kind) is None
        with pytest.raises(Unable, match=f"a {kind.resource.kind} can't be adopted: wrap it"):
            adoption_of(kind)


def without_chips(spec: Body) -> Body:
    found: Body = json.loads(json.dumps(spec).replace("nvidia.com/gpu", "example.com/other"))
    return found


def test_nothing_is_adopted_of_a_kind_that_is_none_of_ours() -> None:
    assert kind_named("apps/v1", "StatefulSet") is None
    assert kind_named("v1", "Pod") is None


def test_two_containers_with_chips_are_no_workload() -> None:
    asks = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = {"spec": {"containers": [{"name": "one", **asks}, {"name": "two", **asks}]}}
    with pytest.raises(InvalidTemplate, match="several containers ask for chips"):
        adoption_of(KINDS["job"]).adopted({"metadata": {}, "spec": {"template": template}})
