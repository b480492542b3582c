"""EnsureRevision: the checks before a child is created and started."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.api.migration import Phase
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.planning.moves.commands import EndRevision, EnsureRevision, RequestCheckpoint, commands
from tests.unit.planning.jobs import changed
from tests.unit.runtime.act.world import World, migration
from tests.unit.runtime.makers import child, pod


def test_a_child_is_created_suspended_and_then_started(world: World) -> None:
    assert world.run(world.persist()) == ["create bert-r1 suspend=True", "apply bert-r1 {'suspend': False}"]
    assert world.run(world.read()) == [], "what complies is left alone"


def test_a_child_of_a_queued_job_is_started_by_the_queue(world: World) -> None:
    assert world.run(world.persist(queueName="research")) == ["create bert-r1 suspend=True"]
    assert world.run(world.read()) == []


@pytest.mark.parametrize("term", [None, 0])
def test_pods_of_another_revision_block_the_creation(world: World, term: int | None) -> None:
    body = world.cluster.put(PODS, pod(0, metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"}))
    world.store.observe(PODS, "ADDED", body)
    assert world.run(world.persist(), term) == []
    del world.cluster.objects[PODS, "pod-1"]
    world.store.observe(PODS, "DELETED", body)
    assert len(world.run(world.read(), term)) == 2


@pytest.mark.parametrize("term", [None, 0])
def test_unobserved_pods_of_another_revision_block_the_start(world: World, term: int | None) -> None:
    world.cluster.put(PODS, pod(0))
    assert world.run(world.persist(), term) == ["create bert-r1 suspend=True"]
    assert world.run(world.read()) == []
    del world.cluster.objects[PODS, "pod-1"]
    assert world.run(world.read()) == ["apply bert-r1 {'suspend': False}"]


@pytest.mark.parametrize("term", [None, 0])
def test_a_queued_child_is_not_created_while_other_pods_run(world: World, term: int | None) -> None:
    world.cluster.put(PODS, pod(0))
    assert world.run(world.persist(queueName="research"), term) == []


@pytest.mark.parametrize("term", [None, 0])
def test_a_former_leader_writes_nothing(world: World, term: int | None) -> None:
    job = world.persist()
    world.leader = False
    assert world.run(job, term) == []


def test_a_new_term_of_the_leader_creates_nothing_without_reading_the_status(world: World) -> None:
    job, term = world.persist(), world.fence.term
    world.transitions += 2  # another took the Lease, and lost it
    assert world.run(job, term) == []
    assert len(world.run(job)) == 2, "the next cycle reads what is asked for now"


def test_after_our_own_write_the_status_is_read_before_the_start(world: World) -> None:
    job = world.persist()
    world.cluster.objects[PROFILED_JOBS, "bert"]["metadata"]["uid"] = "another"
    assert world.run(job, world.fence.term) == ["create bert-r1 suspend=True"], "which the garbage collector ends"


def test_a_command_that_the_status_does_not_require_is_not_carried_out(world: World) -> None:
    job = world.persist()
    world.ref = replace(world.ref, revision=5)
    world.persist()
    assert world.run(job) == []


def test_a_recreated_job_does_not_get_the_old_jobs_child(world: World) -> None:
    job = world.persist()
    body = world.cluster.objects[PROFILED_JOBS, "bert"]
    body["metadata"]["uid"] = "another"
    assert world.run(job) == []


def test_no_child_is_created_without_its_pool(world: World) -> None:
    job = world.persist()
    gone = changed(job, pool_problem="pool a10g is gone: declare it again")
    assert not any(world.executor.needed(gone, command) for command in commands(gone))
    assert all(world.executor.needed(job, command) for command in commands(job))


def test_a_child_of_an_earlier_attempt_is_adopted(world: World) -> None:
    world.cluster.put(JOBS, child(suspend=True))
    assert world.run(world.persist()) == ["apply bert-r1 {'suspend': False}"]


def test_a_late_start_does_not_recreate_a_deleted_child(world: World) -> None:
    job = world.persist()
    world.store.observe(JOBS, "ADDED", child(suspend=True))  # as the store still has it
    job = changed(job, revisions=world.store.revisions(job.key, job.uid))
    assert world.run(job) == []
    assert (JOBS, "bert-r1") not in world.cluster.objects


def test_these_states_have_the_expected_commands(world: World) -> None:
    assert commands(world.persist()) == (EnsureRevision(world.read().state.revision, False),)  # type: ignore[arg-type]
    world.store.observe(JOBS, "ADDED", child())
    assert commands(world.persist(migration(world, Phase.DRAINING))) == (EndRevision(1),)
    checkpointing = commands(world.persist(migration(world, Phase.CHECKPOINTING)))
    assert RequestCheckpoint(1, "d-2") in checkpointing
