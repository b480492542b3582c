"""RequestCheckpoint: which pods get the request, and how their responses are reported."""

from __future__ import annotations

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.api.migration import Phase
from rightpool.api.rescue import Rescue
from rightpool.cluster.resources import PODS
from tests.unit.runtime.act.world import World, migration
from tests.unit.runtime.makers import child, pod


def test_a_foreign_pod_gets_no_token(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod(uid="pod-2", owner="", status={"podIP": "10.0.0.66"}))
    world.store.observe(PODS, "ADDED", pod(uid="pod-1"))
    world.run(world.persist(migration(world, Phase.CHECKPOINTING)))
    assert world.sidecars.asked == [(("pod-1", "10.0.0.7"),)]


def test_every_pod_is_asked_for_a_checkpoint_and_missing_responses_are_reported(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod())
    job = world.persist(migration(world, Phase.CHECKPOINTING))
    world.sidecars.problems = {"pod-1": "HTTP 503"}
    world.run(job)
    assert world.sidecars.asked == [(("pod-1", "10.0.0.7"),)]
    assert world.executor.checkpoint_error(job) == "1 of 1 pods did not take the request (pod-1: HTTP 503)"
    world.sidecars.problems = {}
    world.run(job)
    assert world.executor.checkpoint_error(job) is None


def test_what_pods_answer_is_logged_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """They are asked again in each cycle, until the program saves or its time is over."""
    caplog.set_level("INFO", logger="rightpool.runtime.act.checkpointer")
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod())
    job = world.persist(migration(world, Phase.CHECKPOINTING))
    for problem in ("HTTP 409", "HTTP 409", "HTTP 503"):
        world.sidecars.problems = {"pod-1": problem}
        world.run(job)
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == ["HTTP 409)", "HTTP 503)"]


def test_a_program_that_saves_by_itself_is_not_asked(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod())
    job = world.persist(migration(world, Phase.CHECKPOINTING), checkpoint={"mode": "Periodic"})
    world.run(job)
    assert world.sidecars.asked == []


def test_pods_that_are_evicted_are_asked_while_they_end(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod(metadata={"deletionTimestamp": "2027-01-15T08:00:00Z"}))
    world.store.observe(PODS, "ADDED", pod(uid="pod-2", status={"podIP": "10.0.0.8"}))
    job = world.persist(rescue=Rescue(1, 1, 1.8e9))
    world.run(job)
    assert world.sidecars.asked == [(("pod-1", "10.0.0.7"), ("pod-2", "10.0.0.8"))]
