"""The runtime that each TrainJob has for itself: made before it, and given to it before it starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.placement import Placement
from rightpool.cluster.errors import Forbidden
from rightpool.planning.jobs.job import Job
from rightpool.runtime.observe.facts import controller_of
from rightpool.workloads.kinds.train_job import RUNTIMES, TRAIN_JOBS
from tests.unit.runtime.act.world import World
from tests.unit.runtime.makers import Body
from tests.unit.workloads.kinds.test_train_job import runtime

MADE = "create bert-r1 suspend=True"
STARTED = ["replace TrainingRuntime bert-r1", "apply bert-r1 {'suspend': False}"]


@pytest.fixture
def world() -> World:
    made = World()
    made.ref = replace(made.ref, placement=Placement("a10g", 8, 2))
    made.cluster.put(RUNTIMES, {"metadata": {"name": "torch"}, **runtime()})
    return made


def persist(world: World, name: str = "torch", **trainer: Any) -> Job:
    template = {"runtimeRef": {"kind": RUNTIMES.kind, "name": name}, "trainer": {"numNodes": 2, **trainer}}
    return world.persist(workload={"trainJob": {"chipsPerReplica": 4, "template": template}})


def put(world: World, owner: Body) -> None:
    about = {"name": "bert-r1", "uid": "old", "ownerReferences": [{"controller": True, **owner}]}
    world.cluster.put(RUNTIMES, {"metadata": about, "spec": {"old": True}})


def refusal(world: World, job: Job) -> str:
    assert world.run(job) == []
    found = world.executor.refusal(world.read())
    assert found is not None
    return found.message


def test_it_is_made_before_its_child_and_goes_with_it(world: World) -> None:
    assert world.run(persist(world)) == ["create bert-r1 suspend=None", MADE, *STARTED]
    made = world.cluster.objects[RUNTIMES, "bert-r1"]
    assert controller_of(made["metadata"]) == world.cluster.objects[TRAIN_JOBS, "bert-r1"]["metadata"]["uid"]
    assert world.run(world.read()) == []


def test_what_it_is_made_of_must_be_there(world: World) -> None:
    assert refusal(world, persist(world, "nowhere")).startswith("TrainingRuntime nowhere is not there: create it")


def test_what_was_made_before_an_edit_is_made_of_the_edit(world: World) -> None:
    job = persist(world)
    put(world, {"uid": job.uid})
    assert world.run(job) == ["replace TrainingRuntime bert-r1", MADE, *STARTED]
    assert "old" not in world.cluster.objects[RUNTIMES, "bert-r1"]["spec"]


def test_a_webhook_that_does_not_know_it_yet_refuses_nothing(world: World) -> None:
    """Trainer's has a cache, which is behind by seconds where the machine is busy."""
    job, create = persist(world), world.cluster.create
    words = 'spec.runtimeRef: TrainingRuntime.trainer.kubeflow.org "bert-r1" not found: must be created before'

    def behind(resource: Any, manifest: Body, **options: Any) -> Body:
        if resource is TRAIN_JOBS and not options.get("dry_run"):
            raise Forbidden(words)
        return create(resource, manifest, **options)

    world.cluster.create = behind  # type: ignore[method-assign]
    assert world.run(job) == ["create bert-r1 suspend=None"]
    assert world.executor.refusal(world.read()) is None
    world.cluster.create = create  # type: ignore[method-assign]
    assert MADE in world.run(world.read()), "it is tried again at once"


def test_that_of_an_earlier_child_is_waited_for(world: World) -> None:
    job = persist(world)
    put(world, {"apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind, "name": "bert-r1", "uid": "gone"})
    assert world.run(job) == [] and world.executor.refusal(world.read()) is None


def test_one_of_somebody_else_is_left_alone(world: World) -> None:
    job = persist(world)
    put(world, {"kind": "Team", "uid": "theirs"})
    assert "bert-r1 exists and is not this ProfiledJob's" in refusal(world, job)
    assert world.cluster.objects[RUNTIMES, "bert-r1"]["spec"] == {"old": True}
