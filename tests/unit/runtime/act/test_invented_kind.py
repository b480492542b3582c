"""A new kind of child needs only its entries in the registry and in spec.workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import kopf
import pytest

from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import Resource
from rightpool.api.migration import Phase
from rightpool.api.pause import Pause
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.workload import JobWorkload, Workload
from rightpool.cluster.client import Listing
from rightpool.cluster.resources import PODS, SERVICES, WORKLOADS
from rightpool.contract import LABEL_JOB
from rightpool.handlers.feeds import register_feeds
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.contradiction import UnplacedRevision
from rightpool.planning.jobs.job import Job
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.health import completed, failed
from rightpool.reporting.contradiction_texts import contradiction_text
from rightpool.runtime.observe.relist import Relister
from rightpool.workloads.injection import Injection
from rightpool.workloads.kinds.kind import ChildState
from rightpool.workloads.kinds.registry import KINDS
from rightpool.workloads.metadata import child_metadata
from rightpool.workloads.names import ANNOTATION_HELD
from rightpool.workloads.owner import Owner
from rightpool.workloads.pods import Template, pod_template
from tests.unit.runtime.act.world import World, migration
from tests.unit.runtime.makers import Body, pod

WIDGETS = Resource("batch.example", "v1", "Widget", "widgets")
TEMPLATE = {"spec": {"containers": [{"name": "server", "image": "example.com/server:1"}]}}


class WidgetKind:
    """Suspended is 0 replicas, as a Deployment would have it; ended is a phase; its pods are those of a Job that it
    makes, and have its name and uid in labels, as those of a JobSet have."""

    field = "widget"
    resource = WIDGETS
    optional = True

    def build(
        self,
        owner: Owner,
        workload: Template,
        queue_name: str | None,
        ref: Revision,
        pool: Pool,
        injection: Injection | None,
        suspend: bool = False,
    ) -> dict[str, Any]:
        template = pod_template(owner, workload, ref, pool)
        return {
            "apiVersion": WIDGETS.api_version,
            "kind": WIDGETS.kind,
            "metadata": child_metadata(template, owner, ref, queue_name),
            "spec": {"replicas": 0 if suspend else ref.placement.replicas, "template": template},
        }

    def observe(self, body: Mapping[str, Any]) -> ChildState:
        phase = (body.get("status") or {}).get("phase")
        stopped = body["spec"]["replicas"] == 0
        return ChildState(suspended=stopped, succeeded=phase == "Finished", failed=phase == "Broken")

    def expiry(self, seconds: int) -> dict[str, Any]:
        return {"spec": {"lifetime": seconds}}

    def suspension(self, suspend: bool, placement: Placement) -> dict[str, Any]:
        return {"spec": {"replicas": 0 if suspend else placement.replicas}}

    def owner_of(self, pod: Mapping[str, Any], child: str) -> str:
        labels: Mapping[str, str] = pod.get("labels") or {}
        return labels.get("widget-uid", "") if labels.get("widget-name") == child else ""


class Either(Workload):
    """The model that `api/` would have."""

    job: JobWorkload | None = None  # type: ignore[assignment]
    widget: JobWorkload | None = None

    @property
    def chosen(self) -> JobWorkload:
        chosen = self.job or self.widget
        assert chosen is not None
        return chosen


class Spec(ProfiledJobSpec):
    workload: Either


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setitem(KINDS, "widget", WidgetKind())
    monkeypatch.setattr("rightpool.reporting.stored_job.ProfiledJobSpec", Spec)
    made = World()
    made.ref = replace(made.ref, placement=Placement("a10g", 8, 2))
    return made


def persist(world: World, *arguments: Any, **spec: Any) -> Job:
    workload = {"widget": {"chipsPerReplica": 4, "replicas": 2, "template": TEMPLATE}}
    return world.persist(*arguments, workload=workload, **spec)


def started(world: World) -> Body:
    """A Widget that runs, with one of its pods."""
    world.run(persist(world))
    body = world.cluster.objects[WIDGETS, "bert-r1"]
    world.store.observe(PODS, "ADDED", world.cluster.put(PODS, own_pod(body)))
    return body


def own_pod(widget: Body) -> Body:
    body, name = pod(), widget["metadata"]["name"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-workers", "uid": "between", "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    body["metadata"]["labels"] |= {"widget-name": name, "widget-uid": widget["metadata"]["uid"]}
    return body


def test_it_is_built_and_started(world: World) -> None:
    assert world.run(persist(world)) == [
        "create bert-r1 suspend=None",
        "create Service bert-r1",
        "apply bert-r1 {'replicas': 2}",
    ]
    body = world.cluster.objects[WIDGETS, "bert-r1"]
    [container] = body["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    [owner] = world.cluster.objects[SERVICES, "bert-r1"]["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("batch.example/v1", "Widget", "bert-r1-uid")
    assert world.run(world.read()) == []


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
    assert world.run(paused) == ["apply bert-r1 {'replicas': 0}"]
    assert world.run(persist(world)) == ["apply bert-r1 {'replicas': 2}"]


def test_in_a_queue_it_is_held(world: World) -> None:
    world.run(persist(world, queueName="research"))
    world.cluster.absent.add(WORKLOADS)
    stopped = Pause(Reason.SUSPENDED, 1.7e9, stopping=True)
    held = f"apply bert-r1 {{'{ANNOTATION_HELD}': 'true'}}"
    assert world.run(persist(world, queueName="research", suspend=True, pause=stopped)) == [held], "it has no pods"
    [widget] = (body for (resource, _), body in world.cluster.objects.items() if resource == WIDGETS)
    widget["spec"]["replicas"] = 2
    world.store.observe(WIDGETS, "MODIFIED", world.cluster.put(WIDGETS, widget))
    assert world.run(world.read()) == [held, "apply bert-r1 {'replicas': 0}"], "Kueue, which is gone, had admitted it"


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
    text = contradiction_text(UnplacedRevision(1, None), job)
    assert text.endswith("delete its Widget bert-r1 to have the job started anew")


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
