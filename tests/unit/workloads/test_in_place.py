"""How an object that its user has becomes another Revision where it is, of each kind."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.placement import CapacityType, Placement
from rightpool.contract import LABEL_REVISION
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.abilities import Abilities
from rightpool.runtime.observe.adopted_facts import adopted_facts
from rightpool.workloads.in_place import (
    at,
    edited,
    held,
    is_held,
    let_go,
    moved,
    operations,
    original_of,
    put,
    remade,
    resumed,
    turned,
    undone,
    why_kept,
)
from rightpool.workloads.kinds.kind import Kind, Unable, adoption_of
from rightpool.workloads.kinds.registry import KINDS, adopted_workload
from rightpool.workloads.names import ANNOTATION_HELD, ANNOTATION_ORIGINAL
from rightpool.workloads.template import InvalidTemplate
from tests.unit.workloads.kinds.test_contract import Body, users
from tests.unit.workloads.samples import GPU_POOL, ref

A100: Final = replace(
    GPU_POOL,
    name="a100",
    node_selector={"node.kubernetes.io/instance-type": "p4d.24xlarge", "eks.amazonaws.com/capacityType": "ON_DEMAND"},
    tolerations=({"key": "a100", "operator": "Exists"},),
)
# What the API server lets be changed while the object is suspended, as it was tried; of a JobSet and a TrainJob also
# what takes a new object. It takes labels of pods, too, and JobSet's controller leaves those in its Jobs that the
# JobSet has no more.
ALLOWED: Final = {
    "job": r"/spec/(suspend|completions|parallelism"
    r"|template/spec/(nodeSelector|tolerations|affinity|containers/0/resources).*)",
    "jobSet": r"/spec/(suspend|replicatedJobs/\d/template/spec/(completions|parallelism"
    r"|template/spec/(nodeSelector|tolerations|containers/0/resources).*))",
    "trainJob": r"/spec/(suspend|runtimePatches.*|trainer/(numNodes|numProcPerNode|resourcesPerNode).*)",
    "leaderWorkerSet": r"/spec/(replicas|leaderWorkerTemplate/(size|workerTemplate/"
    r"spec/(nodeSelector|tolerations|affinity|containers/0/resources).*))",
}
each_movable = pytest.mark.parametrize("field", ALLOWED)
NOTES: Final = r"/metadata/annotations(/rightpool\.dev~1(held|original|revision))?"
FENCE: Final = ["/metadata/uid", "/metadata/resourceVersion"]
HERE, THERE = ref(2, 2, revision=1), ref(2, 2, revision=2, pool="a100")


def mine(field: str) -> tuple[Kind[Any], Body]:
    """An object that somebody has made, which runs on a10g, and the kind of it."""
    kind, built = KINDS[field], users(field, HERE)
    about = {"name": "llm", "namespace": "research", "uid": "u", "resourceVersion": "7", "annotations": {"a": "b"}}
    text = re.sub(r', "rightpool.dev/[a-z]*": "[^"]*"', "", json.dumps({**built, "metadata": about}))
    body: Body = json.loads(text)
    if field == "jobSet":  # a user's has no affinity of the operator
        body["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"].pop("affinity", None)
    return kind, body


def suspend(kind: Kind[Any], body: Body, on: bool) -> None:
    """As the user of an object would."""
    for name, value in kind.suspension(on, HERE.placement, kind.observe(body).unit)["spec"].items():
        put(body, f"/spec/{name}", value)


def patched(body: Body, patch: list[Body]) -> Body:
    result = copy.deepcopy(body)
    for step in patch:
        if step["path"] in FENCE:
            assert at(result, step["path"]) == step["value"], "exactly this version of the object"
        else:
            put(result, step["path"], step.get("value"))
    return result


@each_movable
def test_a_move_and_the_way_back_touch_what_is_allowed_alone(field: str) -> None:
    kind, before = mine(field)
    stopped = held(kind, before, HERE, GPU_POOL)
    there = moved(kind, stopped, THERE, A100)
    again = held(kind, there, THERE, A100)
    back = moved(kind, again, replace(HERE, revision=3), GPU_POOL)
    for one, other in ((before, stopped), (stopped, there), (there, again), (again, back)):
        patch = operations(one, other)
        assert [step["path"] for step in patch[:2]] == FENCE
        for step in patch[2:]:
            assert re.fullmatch(f"{ALLOWED[field]}|{NOTES}", step["path"]), step
        assert patched(one, patch) == other
    assert kind.observe(stopped).suspended and is_held(stopped)
    assert not kind.observe(there).suspended and not is_held(there)
    assert back["metadata"]["annotations"].pop(LABEL_REVISION) == "3"
    assert {**back["metadata"]["annotations"]}.keys() == {"a", ANNOTATION_ORIGINAL}
    assert back["spec"] == before["spec"], "no field is lost"


@each_movable
def test_each_write_can_be_repeated(field: str) -> None:
    kind, before = mine(field)
    stopped = held(kind, before, HERE, GPU_POOL)
    assert operations(stopped, held(kind, stopped, HERE, GPU_POOL)) == []
    there = moved(kind, stopped, THERE, A100)
    assert operations(there, moved(kind, there, THERE, A100)) == []
    assert moved(kind, stopped, THERE, A100) == there, "it does not depend on what was tried"


def patched_pods(patch: Body) -> Body:
    """What an entry of runtimePatches says of the pods that train."""
    [job] = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert job["name"] == "node"
    pods: Body = job["template"]["spec"]["template"]["spec"]
    return pods


@each_movable
def test_there_it_is_where_it_should_be(field: str) -> None:
    kind, before = mine(field)
    there = moved(kind, held(kind, before, HERE, GPU_POOL), THERE, A100)
    settings = adoption_of(kind).settings(there)
    if field == "trainJob":
        theirs, ours = settings["/spec/runtimePatches"]
        assert [value for pointer, value in settings.items() if pointer.endswith("/nodeSelector")] == [None]
        assert (theirs["manager"], ours["manager"]) == ("example.com/me", "rightpool.dev/operator")
        settings = {f"/{name}": value for name, value in patched_pods(ours).items()}
    [selector] = [value for pointer, value in settings.items() if pointer.endswith("/nodeSelector")]
    assert selector == A100.node_selector, "what named the pool before has gone"
    [tolerations] = [value for pointer, value in settings.items() if pointer.endswith("/tolerations")]
    assert {"key": "a100", "operator": "Exists"} in tolerations
    for labels in (value for pointer, value in settings.items() if pointer.endswith("/labels")):
        assert labels[LABEL_REVISION] == "2"
    assert there["metadata"]["annotations"][LABEL_REVISION] == "2"
    original = original_of(kind, there)
    assert original is not None and original.placement == HERE.placement and not edited(kind, there)
    there["metadata"]["annotations"][ANNOTATION_ORIGINAL] = "{"
    assert original_of(kind, there) is None


@each_movable
def test_what_its_user_suspended_is_not_ours_to_resume(field: str) -> None:
    kind, body = mine(field)
    suspend(kind, body, True)
    assert held(kind, body, HERE, GPU_POOL) == body
    assert moved(kind, body, THERE, A100) == body
    assert let_go(kind, body) == body


@each_movable
def test_what_its_user_resumed_stays_where_it_is(field: str) -> None:
    kind, before = mine(field)
    stopped = held(kind, before, HERE, GPU_POOL)
    suspend(kind, stopped, False)
    result = moved(kind, stopped, THERE, A100)
    assert result["spec"] == before["spec"] and not is_held(result)


@each_movable
def test_what_its_user_edits_meanwhile_is_resumed_as_he_wrote_it(field: str) -> None:
    kind, before = mine(field)
    stopped = held(kind, before, HERE, GPU_POOL)
    [pointer] = [pointer for pointer in adoption_of(kind).settings(stopped) if pointer.endswith("/nodeSelector")]
    put(stopped, pointer, {"mine": "alone"})
    assert edited(kind, stopped)
    result = moved(kind, stopped, THERE, A100)
    assert at(result, pointer) == {"mine": "alone"}
    assert not kind.observe(result).suspended
    assert {**result["metadata"]["annotations"]} == {"a": "b"}, "and what it was before is what he made of it"
    again = original_of(kind, held(kind, result, HERE, GPU_POOL))
    assert again is not None and again.fields[pointer] == {"mine": "alone"}


@each_movable
def test_let_go_of_it_runs_where_it_is(field: str) -> None:
    kind, before = mine(field)
    stopped = held(kind, before, HERE, GPU_POOL)
    assert let_go(kind, stopped) == before == let_go(kind, before), "where it was nothing is left on it"
    there = moved(kind, stopped, THERE, A100)
    gone = let_go(kind, held(kind, there, THERE, A100))
    assert gone == there, "elsewhere the note stays, by which it can be put back"
    back = moved(kind, held(kind, there, THERE, A100), replace(HERE, revision=3), GPU_POOL)
    assert let_go(kind, back) == before
    lost = copy.deepcopy(stopped)
    del lost["metadata"]["annotations"][ANNOTATION_ORIGINAL]
    assert not is_held(let_go(kind, lost)) and not kind.observe(resumed(kind, lost)).suspended


@each_movable
def test_what_another_controls_is_not_suspended(field: str) -> None:
    kind, body = mine(field)
    body["metadata"]["ownerReferences"] = [{"kind": "TrainJob", "name": "llm", "controller": True}]
    with pytest.raises(Unable, match="TrainJob llm controls it"):
        held(kind, body, HERE, GPU_POOL)


@each_movable
def test_its_users_own_selector_is_kept(field: str) -> None:
    kind, body = mine(field)
    [pointer] = [pointer for pointer in adoption_of(kind).settings(body) if pointer.endswith("/nodeSelector")]
    put(body, pointer, {**at(body, pointer), "team": "nlp"})
    there = moved(kind, held(kind, body, HERE, GPU_POOL), THERE, A100)
    if field == "trainJob":
        assert at(there, pointer) == {"team": "nlp"}, "its user's entry, and ours after it"
        assert patched_pods(there["spec"]["runtimePatches"][1])["nodeSelector"] == {**A100.node_selector, "team": "nlp"}
    else:
        assert at(there, pointer) == {**A100.node_selector, "team": "nlp"}
    elsewhere: Pool = replace(A100, node_selector={"team": "vision"})
    with pytest.raises(InvalidTemplate, match="asks for team=nlp"):
        moved(kind, held(kind, body, HERE, GPU_POOL), THERE, elsewhere)
    with pytest.raises(Unable, match="pool a100 is not there"):
        moved(kind, held(kind, body, HERE, GPU_POOL), THERE, None)


def test_a_job_gets_another_size_in_place() -> None:
    kind, before = mine("job")
    bigger = replace(THERE, placement=Placement("a100", 12, 3, CapacityType.SPOT))
    pool = replace(A100, resource_name="amd.com/gpu", node_selector={"gpu": "mi300"})
    there = moved(kind, held(kind, before, HERE, GPU_POOL), bigger, pool)
    spec = there["spec"]
    assert (spec["completions"], spec["parallelism"]) == (3, 3)
    [container] = spec["template"]["spec"]["containers"]
    assert container["resources"] == {"limits": {"amd.com/gpu": "4"}, "requests": {"amd.com/gpu": "4"}}
    tolerations = spec["template"]["spec"]["tolerations"]
    assert {"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in tolerations
    terms = spec["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert any(e["operator"] == "In" for term in terms["nodeSelectorTerms"] for e in term["matchExpressions"])


def test_groups_move_while_they_run_and_are_what_they_were() -> None:
    kind, before = mine("leaderWorkerSet")
    before["spec"]["replicas"] = 2
    here, there = ref(4, 4, revision=1), ref(4, 4, revision=2, pool="a100")
    assert adoption_of(kind).abilities(before).by_group
    moved_on = turned(kind, before, here, GPU_POOL, there, A100)
    assert not is_held(moved_on) and moved_on["spec"]["replicas"] == 2
    assert moved_on["metadata"]["annotations"][LABEL_REVISION] == "2" and not edited(kind, moved_on)
    for step in operations(before, moved_on)[2:]:
        assert re.fullmatch(f"{ALLOWED['leaderWorkerSet']}|{NOTES}", step["path"]), step
    back = turned(kind, moved_on, there, A100, replace(here, revision=3), GPU_POOL)
    assert back["spec"] == before["spec"]
    before["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"partition": 1}}
    assert not adoption_of(kind).abilities(before).by_group, "a group of it would stay"
    before["metadata"]["ownerReferences"] = [{"kind": "Service", "name": "llm", "controller": True}]
    with pytest.raises(Unable, match="Service llm controls it"):
        turned(kind, before, here, GPU_POOL, there, A100)


def test_a_job_without_indexes_keeps_its_number_of_pods() -> None:
    kind, body = mine("job")
    body["spec"]["completionMode"] = "NonIndexed"
    assert not adoption_of(kind).abilities(body).resize
    stopped = held(kind, body, HERE, GPU_POOL)
    assert moved(kind, stopped, THERE, A100)["spec"]["parallelism"] == 2
    with pytest.raises(Unable, match="keeps their number, and 3 would run there"):
        moved(kind, stopped, replace(THERE, placement=Placement("a100", 3, 3)), A100)


def test_a_jobset_made_anew_has_another_size_and_no_affinity() -> None:
    kind, body = mine("jobSet")
    assert adoption_of(kind).abilities(body) == Abilities("JobSet", resize=False, affinity=False, anew=True)
    stopped = held(kind, body, HERE, GPU_POOL)
    bigger = remade(kind, stopped, replace(THERE, placement=Placement("a100", 12, 3)), A100)
    assert is_held(bigger) and kind.observe(bigger).suspended, "it is resumed later"
    assert (adopted_workload(kind, bigger).replicas, adopted_workload(kind, bigger).chips_per_replica) == (3, 4)
    back = remade(kind, bigger, replace(HERE, revision=3), GPU_POOL)
    assert back["spec"] == stopped["spec"], "and is what it was again"
    assert "affinity" not in json.dumps(moved(kind, stopped, THERE, A100))
    for role in stopped["spec"]["replicatedJobs"]:
        for container in role["template"]["spec"]["template"]["spec"]["containers"]:
            container.pop("resources", None)
    assert adoption_of(kind).settings(stopped) == {}
    with pytest.raises(Unable, match="none of its pods asks for chips"):
        adoption_of(kind).change(stopped, THERE, A100)


def test_a_trainjob_made_anew_has_another_size() -> None:
    kind, body = mine("trainJob")
    body["spec"]["trainer"]["numProcPerNode"] = 1
    stopped = held(kind, body, HERE, GPU_POOL)
    bigger = remade(kind, stopped, replace(THERE, placement=Placement("a100", 12, 3)), A100)
    trainer, chips = bigger["spec"]["trainer"], {A100.resource_name: "4"}
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (3, 4)
    assert trainer["resourcesPerNode"] == {"requests": chips, "limits": chips}
    assert remade(kind, bigger, replace(HERE, revision=3), GPU_POOL)["spec"] == stopped["spec"]


def test_what_a_repository_has_or_something_waits_for_is_not_made_anew() -> None:
    kind, body = mine("jobSet")
    assert why_kept(body) is None
    argo = {"labels": {"argocd.argoproj.io/instance": "team"}}
    flux = {"labels": {"kustomize.toolkit.fluxcd.io/name": "team"}}
    for about in (argo, flux, {"finalizers": ["a/b"]}, {"ownerReferences": [{"uid": "u"}]}):
        kept = {**body, "metadata": {**body["metadata"], **about}}
        facts = adopted_facts(kind, kept, None)
        assert why_kept(kept) and facts.able is not None and not facts.able.anew


def test_a_trainjob_keeps_what_others_say_of_its_pods() -> None:
    kind, body = mine("trainJob")
    assert adoption_of(kind).abilities(body) == Abilities("TrainJob", resize=False, affinity=False, anew=True)
    own = {"key": "team", "operator": "Exists"}
    patched_pods(body["spec"]["runtimePatches"][0])["tolerations"] = [own]
    stopped = held(kind, body, HERE, GPU_POOL)
    there = moved(kind, stopped, THERE, A100)
    theirs, ours = there["spec"]["runtimePatches"]
    for patch in (theirs, ours):
        patch["time"] = "2026-11-28T22:01:58Z"
    assert not edited(kind, there), "Trainer has written when it was written"
    for patch in (theirs, ours):
        del patch["time"]
    assert patched_pods(theirs) == {"tolerations": [own]}
    assert own in patched_pods(ours)["tolerations"], "a later entry replaces those of an earlier one"
    assert "affinity" not in patched_pods(ours), "its JobSet would never start"


def test_a_leaderworkerset_goes_by_groups() -> None:
    kind, body = mine("leaderWorkerSet")
    part = adoption_of(kind)
    assert part.abilities(body).resize
    bigger = moved(kind, held(kind, body, HERE, GPU_POOL), replace(THERE, placement=Placement("a100", 3, 3)), A100)
    assert (bigger["spec"]["replicas"], bigger["spec"]["leaderWorkerTemplate"]["size"]) == (1, 3)
    group = body["spec"]["leaderWorkerTemplate"]
    group["leaderTemplate"] = copy.deepcopy(group["workerTemplate"])
    body["spec"]["replicas"] = 3
    here, there = (replace(one, placement=replace(one.placement, chips=6, replicas=6)) for one in (HERE, THERE))
    assert not part.abilities(body).resize, "who has several groups says how many there are, and how big they are"
    stopped = held(kind, body, here, GPU_POOL)
    assert stopped["spec"]["replicas"] == 0 and part.adopted(stopped).replicas == 6, "it is as big as it was"
    moved_there = moved(kind, stopped, there, A100)
    assert (moved_there["spec"]["replicas"], part.adopted(moved_there).replicas) == (3, 6)
    assert moved_there["spec"]["leaderWorkerTemplate"]["size"] == 2
    for name in ("leaderTemplate", "workerTemplate"):
        pods = moved_there["spec"]["leaderWorkerTemplate"][name]["spec"]
        assert pods["nodeSelector"] == A100.node_selector
    with pytest.raises(InvalidTemplate, match="8 pods are not to be divided among 3 groups"):
        moved(kind, stopped, replace(there, placement=Placement("a100", 8, 8)), A100)


def test_a_held_object_says_so_by_one_annotation() -> None:
    kind, body = mine(next(iter(KINDS)))
    note = held(kind, body, HERE, None)["metadata"]["annotations"][ANNOTATION_HELD]
    assert Placement.from_dict(json.loads(note)) == HERE.placement, "it can be resumed by that alone"


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "8"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["", "a", "key", "limits"]), inner),
    max_leaves=5,
)


@each_movable
@given(data=st.data())
def test_a_forged_note_changes_nothing_else_and_breaks_nothing(field: str, data: st.DataObject) -> None:
    kind, body = mine(field)
    pointers = [
        *adoption_of(kind).settings(body),
        "",
        "/spec",
        "/spec/template/spec/serviceAccountName",
        "/metadata/labels/x/y",
        "/spec/a/b",
    ]
    stopped = held(kind, body, HERE, GPU_POOL)
    note = json.loads(stopped["metadata"]["annotations"][ANNOTATION_ORIGINAL])
    note["fields"] |= data.draw(st.dictionaries(st.sampled_from(pointers), JSON, max_size=4))
    note["selector"] |= data.draw(st.dictionaries(st.sampled_from(["a", "key"]), JSON, max_size=2))
    stopped["metadata"]["annotations"][ANNOTATION_ORIGINAL] = json.dumps(note)
    adopted_facts(kind, stopped, None)
    try:
        there = moved(kind, stopped, THERE, A100)
    except (Unable, InvalidTemplate):
        return
    for step in operations(stopped, there)[2:]:
        assert re.fullmatch(f"{ALLOWED[field]}|{NOTES}", step["path"]), step


def written(body: Body, manager: str, fields: Body, time: str = "2026-11-28T10:00:00Z") -> Body:
    """The object with an entry of managedFields."""
    entry = {"manager": manager, "operation": "Apply", "time": time, "fieldsV1": fields}
    about = body["metadata"]
    return {**body, "metadata": {**about, "managedFields": [*(about.get("managedFields") or ()), entry]}}


@each_movable
def test_who_takes_a_change_back_is_found_with_the_field(field: str) -> None:
    kind, before = mine(field)
    stopped = held(kind, before, HERE, GPU_POOL)
    there = moved(kind, stopped, THERE, A100)
    assert undone(kind, before) is undone(kind, stopped) is undone(kind, there) is None
    resumes = copy.deepcopy(stopped)
    suspend(kind, resumes, False)
    name = "replicas" if field == "leaderWorkerSet" else "suspend"
    resumes = written(resumes, "rightpool", {"f:spec": {}})
    resumes = written(resumes, "argocd-controller", {"f:spec": {f"f:{name}": {}}}, "2026-11-28T09:00:00Z")
    assert undone(kind, resumes) == ("argocd-controller", f"/spec/{name}")
    pointer = next(one for one in adoption_of(kind).settings(there) if one.endswith("/nodeSelector"))
    back = copy.deepcopy(there)
    put(back, pointer, at(before, pointer))
    roles = {'k:{"name":"workers"}': {"f:template": {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}}}}
    inner: Body = {"f:spec": {"f:nodeSelector": {}}}
    owned: dict[str, Body] = {
        "job": {"f:template": inner},
        "jobSet": {"f:replicatedJobs": roles},
        "trainJob": {"f:runtimePatches": {}},
        "leaderWorkerSet": {"f:leaderWorkerTemplate": {"f:workerTemplate": inner}},
    }
    own = {"f:spec": owned[field]}
    if field == "trainJob":
        pointer = "/spec/runtimePatches"  # the outer one is named first
    back = written(written(back, "kustomize-controller", own), "kubectl-edit", {"f:metadata": {"f:labels": {}}})
    assert undone(kind, back) == ("kustomize-controller", pointer)
    nobody = written(copy.deepcopy({**back, "metadata": {**there["metadata"]}}), "kubectl-edit", {"f:metadata": {}})
    assert undone(kind, nobody) == ("kubectl-edit", pointer), "what is gone is nobody's: who has written last"
    assert undone(kind, {**back, "metadata": there["metadata"]}) == ("", pointer)
