"""EndRevision: the checks before a child of this job or of an earlier one is deleted."""

from __future__ import annotations

from typing import Any

from rightpool.api.kubernetes import JOBS
from rightpool.api.migration import Phase
from rightpool.cluster.resources import PODS, PROFILED_JOBS, SERVICES
from tests.unit.planning.jobs import changed
from tests.unit.runtime.act.world import World, migration
from tests.unit.runtime.makers import child, pod, profiled_job


def test_a_revision_that_succeeded_is_not_ended(world: World) -> None:
    world.store.observe(JOBS, "ADDED", child())
    job = world.persist(migration(world, Phase.DRAINING))
    world.cluster.put(JOBS, child(status={"conditions": [{"type": "Complete", "status": "True"}]}))
    assert world.run(job) == []
    assert world.store.revisions(job.key, job.uid)[1].succeeded, "the next cycle knows"


def test_a_revision_is_deleted_once(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    job = world.persist(migration(world, Phase.DRAINING))
    assert world.run(job) == ["delete bert-r1"]
    assert world.run(job) == []
    assert (SERVICES, "bert-r1") not in world.cluster.objects


def earlier(world: World, revision: int = 3, **more: Any) -> None:
    """A Job of a ProfiledJob that had this one's name and is gone, with a pod."""
    leftover = world.cluster.put(JOBS, child(revision, owner="uid-0", uid="job-0", **more))
    world.store.observe(JOBS, "ADDED", leftover)
    world.cluster.put(PODS, pod(revision, owner="job-0"))


def test_a_child_of_an_earlier_job_is_ended_before_a_start(world: World) -> None:
    earlier(world)
    job = world.persist()
    assert world.run(job) == ["delete bert-r3"], "the garbage collector may have missed it, and it would run for ever"
    assert world.run(job) == [], "asked for once; its pod is still there"
    del world.cluster.objects[PODS, "pod-1"]
    world.store.observe(JOBS, "DELETED", world.cluster.objects.pop((JOBS, "bert-r3")))
    assert world.run(world.read()) == ["create bert-r1 suspend=True", "apply bert-r1 {'suspend': False}"]


def test_a_child_of_an_earlier_job_with_the_same_name_is_ended(world: World) -> None:
    earlier(world, 1, status={"conditions": [{"type": "Failed", "status": "True"}]})
    assert world.run(world.persist()) == ["delete bert-r1"], "also one that has ended: its name is needed"


def test_a_child_of_a_later_job_is_not_ended_as_an_earlier_ones(world: World) -> None:
    earlier(world)
    job = world.persist()
    world.cluster.objects[PROFILED_JOBS, "bert"]["metadata"]["uid"] = "uid-0"  # our job was deleted and recreated
    assert world.run(job) == []


def test_a_child_with_an_owner_of_another_name_is_not_ended(world: World) -> None:
    body = child(3, owner="uid-0", uid="job-0")
    body["metadata"]["ownerReferences"][0]["name"] = "gpt"
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, body))
    assert not [write for write in world.run(world.persist()) if write.startswith("delete")]


def test_an_earlier_jobs_child_is_ended_while_this_job_waits_for_its_chips(world: World) -> None:
    earlier(world)
    world.cluster.put(PROFILED_JOBS, profiled_job())
    assert world.read().state.revision is None
    assert world.run(world.read()) == ["delete bert-r3"]


def test_a_former_leader_ends_no_child_of_an_earlier_job(world: World) -> None:
    earlier(world)
    job = world.persist()
    world.leader = False
    assert world.run(job) == []


def test_a_child_expires_only_after_its_end_was_recorded(world: World) -> None:
    template = {"spec": {"containers": [{"name": "trainer", "image": "x"}]}}
    work = {"chipsPerReplica": 4, "replicas": 1, "template": template, "ttlSecondsAfterFinished": 60}
    world.run(world.persist(workload={"job": work}))
    over = {"conditions": [{"type": "Complete", "status": "True"}]}
    body = world.cluster.put(JOBS, {**world.cluster.objects[JOBS, "bert-r1"], "status": over})
    world.store.observe(JOBS, "MODIFIED", body)
    assert world.executor.expiring(world.read()) is None, "not before the status says so"
    done = changed(world.read(), finished="Completed")
    found = world.executor.expiring(done)
    assert found is not None
    world.cluster.writes.clear()
    world.executor.expire(done, found)
    assert world.cluster.writes == ["apply bert-r1 {'suspend': False, 'ttlSecondsAfterFinished': 60}"]
    assert world.executor.expiring(done) is None
