"""A new kind of child needs only its entries in the registry and in spec.workload."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import kopf
import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import JOBS, Resource
from rightpool.api.migration import Phase
from rightpool.api.model import ApiModel
from rightpool.api.pause import Pause
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.template import PodTemplate
from rightpool.api.workload import Workload
from rightpool.cluster.client import Listing
from rightpool.cluster.resources import PODS, SERVICES, WORKLOADS
from rightpool.contract import LABEL_JOB, LABEL_REVISION, LABEL_ROLE, SIDECAR_CONTAINER
from rightpool.handlers.feeds import register_feeds
from rightpool.hardware.pool import Pool
from rightpool.planning.books.holding import holding
from rightpool.planning.jobs.abilities import Abilities
from rightpool.planning.jobs.contradiction import UnplacedRevision
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.readiness import not_evaluated
from rightpool.planning.offers.shape import Shape
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.health import completed, failed
from rightpool.reporting.conditions.placed import placed
from rightpool.runtime.observe.relist import Relister
from rightpool.workloads.injection import Injection
from rightpool.workloads.kinds.kind import ChildState, Failures, Kind
from rightpool.workloads.kinds.registry import KINDS, naming_of
from rightpool.workloads.metadata import as_new, child_metadata
from rightpool.workloads.names import ANNOTATION_HELD, child_name
from rightpool.workloads.overlay import workload_on
from rightpool.workloads.owner import Owner
from rightpool.workloads.placed import place_template, template_settings, template_shaped
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.pods import pod_templates
from rightpool.workloads.rendezvous import Hosts
from tests.unit.planning.jobs import changed
from tests.unit.runtime.act.world import World, migration
from tests.unit.runtime.makers import Body, pod
from tests.unit.workloads.samples import env_of

WIDGETS = Resource("batch.example", "v1", "Widget", "widgets")
WORKERS = {"spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]}}
DRIVER = {"spec": {"containers": [{"name": "driver", "image": "example.com/driver:1"}]}}
INDEX = "metadata.labels['widget-index']"


class Widget(ApiModel):
    """A driver beside workers, each with a template of its own, in words of its own."""

    driver: PodTemplate
    workers: PodTemplate
    accelerators: int = 1
    size: int = 1
    retries: int = 3
    keep: int | None = None

    @property
    def chips_per_replica(self) -> int:
        return self.accelerators

    @property
    def replicas(self) -> int:
        return self.size


class AdoptedWidgets:
    """Widgets that somebody else has made."""

    def adopted(self, body: Mapping[str, Any]) -> Widget:
        return Widget.model_validate(body["spec"])

    def members(self, body: Mapping[str, Any]) -> tuple[str, str]:
        return "widget-name", str(body["metadata"]["name"])

    def trained(self, body: Mapping[str, Any], role: str) -> Mapping[str, str]:
        return {"widget-name": str(body["metadata"]["name"]), "widget-role": role}

    def role_of(self, pod: Mapping[str, Any]) -> str:
        return str(pod["labels"]["widget-role"])

    def abilities(self, body: Mapping[str, Any]) -> Abilities:
        return Abilities("Widget", resize=False, affinity=False)

    def settings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return template_settings(body["spec"]["workers"], "/spec/workers", ("nodeSelector", "tolerations"))

    def change(self, body: Mapping[str, Any], ref: Revision, pool: Pool) -> dict[str, Any]:
        changed = copy.deepcopy(dict(body))
        place_template(changed["spec"]["workers"], ref, pool, affinity=False)
        return changed

    def anew(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return as_new(body)

    def shaped(self, pointer: str, value: Any) -> bool:
        return template_shaped(pointer, value)


class WidgetKind(Kind[Widget]):
    """Suspended is 0 workers; ended is a phase; its pods are those of Jobs that it makes, and have its name and uid in
    labels, as those of a JobSet have. It makes a Service itself."""

    field = "widget"
    resource = WIDGETS
    optional = True
    adoption = AdoptedWidgets()

    def pod_sets(self, workload: Widget) -> tuple[PodSet, ...]:
        workers = PodSet("workers", workload.workers, None, workload.size, workload.accelerators)
        return PodSet("driver", workload.driver, chips=0), workers

    def with_template(self, workload: Widget, template: Mapping[str, Any]) -> Widget:
        return workload.model_copy(update={"workers": template})

    def lifetime(self, workload: Widget) -> int | None:
        return workload.keep

    def build(
        self,
        owner: Owner,
        workload: Widget,
        queue_name: str | None,
        ref: Revision,
        pool: Pool,
        injection: Injection | None,
        suspend: bool = False,
    ) -> dict[str, Any]:
        child, replicas = child_name(owner.name, ref.revision), ref.placement.replicas
        hosts = Hosts(f"{child}-net", [f"{child}-workers-0-{index}" for index in range(replicas)])
        templates = pod_templates(owner, self.pod_sets(workload), ref, pool, injection, hosts, INDEX)
        return {
            "apiVersion": WIDGETS.api_version,
            "kind": WIDGETS.kind,
            "metadata": child_metadata(templates["workers"], owner, ref, queue_name),
            "spec": {"size": 0 if suspend else replicas, "retries": workload.retries, **templates},
        }

    def made_of(self, body: Mapping[str, Any]) -> tuple[tuple[Resource, Mapping[str, Any]], ...]:
        about = body["metadata"]
        made = {"name": f"{about['name']}-workers", "namespace": about["namespace"]}
        return ((JOBS, {"metadata": made, "spec": {"template": body["spec"]["workers"]}}),)

    def observe(self, body: Mapping[str, Any]) -> ChildState:
        status = body.get("status") or {}
        phase, stopped = status.get("phase"), body["spec"]["size"] == 0
        failures = Failures(status.get("retried", 0), body["spec"]["retries"], "retries")
        return ChildState(
            suspended=stopped,
            succeeded=phase == "Finished",
            failed=phase == "Broken",
            failures=failures,
            role="workers",
        )

    def expiry(self, seconds: int) -> dict[str, Any]:
        return {"spec": {"lifetime": seconds}}

    def suspension(self, suspend: bool, placement: Placement, unit: int) -> dict[str, Any]:
        return {"spec": {"size": 0 if suspend else placement.replicas}}

    def owner_of(self, pod: Mapping[str, Any], child: str) -> str:
        labels: Mapping[str, str] = pod.get("labels") or {}
        return labels.get("widget-uid", "") if labels.get("widget-name") == child else ""


class Either(Workload):
    """With the field that `api/` would have."""

    widget: Widget | None = None


class Spec(ProfiledJobSpec):
    workload: Either


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setitem(KINDS, "widget", WidgetKind())
    monkeypatch.setattr("rightpool.reporting.stored_job.ProfiledJobSpec", Spec)
    made = World()
    made.ref = replace(made.ref, placement=Placement("a10g", 8, 2))
    return made


def widget(**fields: Any) -> dict[str, Any]:
    return {"widget": {"accelerators": 4, "size": 2, "driver": DRIVER, "workers": WORKERS, **fields}}


def persist(world: World, *arguments: Any, **spec: Any) -> Job:
    return world.persist(*arguments, **{"workload": widget(), **spec})


def started(world: World) -> Body:
    """A Widget that runs, with one of its pods."""
    world.run(persist(world))
    body = world.cluster.objects[WIDGETS, "bert-r1"]
    world.store.observe(PODS, "ADDED", world.cluster.put(PODS, own_pod(body)))
    return body


def own_pod(widget: Body, role: str = "workers", **fields: Any) -> Body:
    body, name = pod(**fields), widget["metadata"]["name"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-{role}", "uid": "between", "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    body["metadata"]["labels"] |= {"widget-name": name, "widget-uid": widget["metadata"]["uid"], LABEL_ROLE: role}
    return body


def see(world: World, *pods: Body) -> RevisionState:
    for each in pods:
        world.store.observe(PODS, "ADDED", world.cluster.put(PODS, each))
    return world.read().observed.revisions[1]


def test_it_is_built_and_started(world: World) -> None:
    assert world.run(persist(world)) == ["create bert-r1 suspend=None", "apply bert-r1 {'size': 2}"]
    assert not [kind for kind, _ in world.cluster.objects if kind is SERVICES], "it makes its own"
    spec = world.cluster.objects[WIDGETS, "bert-r1"]["spec"]
    workers, driver = spec["workers"], spec["driver"]
    [trainer] = workers["spec"]["containers"]
    assert trainer["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert env_of(trainer)["MASTER_ADDR"] == "bert-r1-workers-0-0.bert-r1-net.research.svc"
    assert workers["spec"]["initContainers"][0]["name"] == SIDECAR_CONTAINER
    assert workers["spec"]["nodeSelector"] == {"pool": "a10g"}
    assert workers["metadata"]["labels"][LABEL_ROLE] == "workers"
    assert world.run(world.read()) == []
    [container] = driver["spec"]["containers"]
    assert {"resources", "env", "volumeMounts"}.isdisjoint(container)
    assert {"nodeSelector", "initContainers", "tolerations"}.isdisjoint(driver["spec"])
    labels = driver["metadata"]["labels"]
    assert (labels[LABEL_JOB], labels[LABEL_REVISION], labels[LABEL_ROLE]) == ("bert", "1", "driver")


def test_what_is_wrong_with_a_template_names_its_pods(world: World) -> None:
    assert world.run(persist(world, workload=widget(driver={"spec": {"containers": []}}))) == []
    refusal = world.executor.refusal(world.read())
    assert refusal is not None and refusal.message.startswith("driver: template.spec.containers must hold")


def test_an_edit_of_either_template_is_an_edit(world: World) -> None:
    made_of = persist(world).workload_hash
    image = {"spec": {"containers": [{"name": "driver", "image": "example.com/driver:2"}]}}
    hashes = {persist(world, workload=widget(**edit)).workload_hash for edit in ({"driver": image}, {"workers": image})}
    assert len({made_of, *hashes}) == 3
    assert persist(world, workload=widget(accelerators=2, size=4)).workload_hash == made_of


def test_a_variant_is_laid_over_the_template_of_the_workers(world: World) -> None:
    patch = {"spec": {"containers": [{"name": "trainer", "image": "example.com/tpu:1"}]}}
    job = persist(world, placement={"variants": [{"vendor": "Google", "template": patch}]})
    [variant] = job.variants
    laid = workload_on(job.spec, "Google").chosen
    assert isinstance(laid, Widget) and laid.driver == DRIVER
    assert laid.workers["spec"]["containers"][0]["image"] == "example.com/tpu:1"
    assert variant.workload_hash != job.workload_hash


def test_its_size_is_that_of_the_workers(world: World) -> None:
    job = persist(world, workload=widget(accelerators=4, size=3))
    shape = Shape.of(job)
    assert (shape.chips_per_replica, shape.replicas, job.spec.min_chips, job.spec.max_chips) == (4, 3, 12, 12)


def test_a_driver_stands_in_for_no_worker(world: World) -> None:
    body = started(world)
    seen = see(world, own_pod(body, "driver", uid="driver-1"))
    assert (seen.active, seen.others, seen.running, seen.on_nodes) == (2, 1, 1, 1)
    assert seen.nodes == {"node-1": 1}
    assert not seen.all_running(2)
    assert holding(world.read()).chips == 4
    assert [found.name for found in world.store.pods(world.read().key, 1)] == ["pod-1"], "it has no sidecar to ask"
    seen = see(world, own_pod(body, uid="pod-2"))
    assert seen.all_running(2) and seen.running == 2
    assert holding(world.read()).chips == 8
    assert holding(world.read()).cost_per_hour == 4.0


def test_what_keeps_its_driver_waiting_is_no_reason_to_go_elsewhere(world: World) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/9 nodes"}
    body = started(world)
    seen = see(world, own_pod(body, "driver", uid="driver-1", status={"conditions": [condition]}))
    assert (seen.blocked, seen.unready) == (None, "Unschedulable: 0/9 nodes")


def test_how_often_it_may_fail_is_said_in_its_words(world: World) -> None:
    body = started(world)
    body["status"] = {"retried": 2}
    ended = {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-21T10:00:00Z"}
    status = {"containerStatuses": [{"name": "trainer", "state": {"terminated": ended}}]}
    world.store.observe(WIDGETS, "MODIFIED", world.cluster.put(WIDGETS, body))
    crash = see(world, own_pod(body, uid="pod-2", phase="Failed", status=status)).crash
    assert crash is not None and (crash.count, crash.allowed) == (2, 3)
    message = placed(world.read(), Context(None, None, True, crash.at + 1.0)).message
    assert "of 3 allowed" in message and "the limit is retries" in message
    failed = own_pod(body, "driver", uid="driver-1", phase="Failed", status=status)
    assert len(see(world, failed).pod_failures) == 1, "a driver is no peer of the workers"


def test_without_its_definition_a_job_waits_and_says_for_what(world: World) -> None:
    world.store.turn_off({WIDGETS})
    job = persist(world)
    assert world.run(job) == world.cluster.requests == []
    job = changed(job, refusal=world.executor.refusal(job))
    found = placed(job, Context(None, None, True, 1.8e9))
    assert (found.status, found.reason) == ("False", Reason.KIND_NOT_INSTALLED)
    assert found.message.startswith("widgets.batch.example is not installed")
    for state in (job.state, replace(job.state, revision=None)):
        decision = not_evaluated(job.with_state(state))
        assert decision == Decision(Action.HOLD, Reason.KIND_NOT_INSTALLED), "it takes no chips from others"


def test_it_is_observed_with_its_pods(world: World) -> None:
    body = started(world)
    job = world.read()
    seen = job.observed.revisions[1]
    assert (seen.exists, seen.suspended, seen.active, seen.running, seen.foreign_pod) == (True, False, 1, 1, None)
    assert [found.name for found in world.store.pods(job.key, 1)] == ["pod-1"]
    for version, phase in ((2000, "Broken"), (2001, "Finished")):
        newer = {**body["metadata"], "resourceVersion": str(version)}
        world.store.observe(WIDGETS, "MODIFIED", {**body, "metadata": newer, "status": {"phase": phase}})
        ended = world.store.revisions(job.key, job.uid)[1]
        assert (ended.failed, ended.succeeded) == (phase == "Broken", phase == "Finished")


def test_no_pod_of_another_revision_runs_beside_it(world: World) -> None:
    world.cluster.put(PODS, pod(0))
    assert not [write for write in world.run(persist(world)) if write.startswith("apply")]


def test_it_is_suspended_and_goes_on(world: World) -> None:
    started(world)
    assert world.run(persist(world, suspend=True)) == [], "it has pods that are asked for a save first"
    paused = persist(world, suspend=True, pause=Pause(Reason.SUSPENDED, 1.8e9, stopping=True))
    assert world.run(paused) == ["apply bert-r1 {'size': 0}"]
    assert world.run(persist(world)) == ["apply bert-r1 {'size': 2}"]


def test_in_a_queue_it_is_held(world: World) -> None:
    world.run(persist(world, queueName="research"))
    world.cluster.absent.add(WORKLOADS)
    stopped = Pause(Reason.SUSPENDED, 1.7e9, stopping=True)
    held = f"apply bert-r1 {{'{ANNOTATION_HELD}': 'true'}}"
    assert world.run(persist(world, queueName="research", suspend=True, pause=stopped)) == [held], "it has no pods"
    [made] = (body for (resource, _), body in world.cluster.objects.items() if resource == WIDGETS)
    made["spec"]["size"] = 2
    world.store.observe(WIDGETS, "MODIFIED", world.cluster.put(WIDGETS, made))
    assert world.run(world.read()) == [held, "apply bert-r1 {'size': 0}"], "Kueue, which is gone, had admitted it"


def test_its_pods_are_told_from_those_of_an_earlier_one(world: World) -> None:
    body = started(world)
    body["metadata"]["uid"] = "earlier"
    earlier = own_pod(body)
    earlier["metadata"] |= {"name": "pod-2", "uid": "pod-2"}
    world.store.observe(PODS, "ADDED", world.cluster.put(PODS, earlier))
    seen = world.read().observed.revisions[1]
    assert (seen.active, seen.running) == (2, 1)


def test_it_is_ended(world: World) -> None:
    started(world)
    assert world.run(persist(world, migration(world, Phase.DRAINING))) == ["delete bert-r1"]


def test_it_is_named_in_messages(world: World) -> None:
    started(world)
    job = world.read()
    context = Context(None, None, True, 1.8e9)
    ended = job.with_state(replace(job.state, finished="Completed"))
    assert [found.message for found in (completed(ended, context), failed(ended, context)) if found] == [
        "the child Widget succeeded"
    ]
    text = UnplacedRevision(1, None).text(naming_of(job.spec.workload, job.key.name))
    assert text.endswith("delete its Widget bert-r1 to start anew")


def test_it_is_listed_and_watched(world: World) -> None:
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    register_feeds(registry, settings, world.store)
    assert settings.watching.label_selectors["batch.example", "v1", "widgets"] == LABEL_JOB

    class Lister:
        asked: dict[str, str | None] = {}

        def pages(
            self,
            resource: Resource,
            namespace: str | None = None,
            *,
            labels: str | None = None,
            fields: str | None = None,
        ) -> Iterator[Listing]:
            self.asked[resource.plural] = labels
            yield Listing([], "1", "")

    Relister(Lister(), world.store, interval=60.0, missing=tuple, progress=int).run()
    assert Lister.asked["widgets"] == LABEL_JOB
