"""Why pods can't be made is read from the Events of their child, and rarely."""

from __future__ import annotations

from typing import Any

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.resources import EVENTS, PODS
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import AskWhyUnmade, commands
from rightpool.runtime.act import pod_refusals
from rightpool.runtime.observe.revisions import with_unmade
from tests.unit.planning.jobs import changed
from tests.unit.runtime.act.world import World
from tests.unit.runtime.makers import child, pod

QUOTA = 'Error creating: pods "bert-r1-0-x" is forbidden: failed quota: compute: must specify limits.cpu for: x'
OLDER = 'Error creating: pods "bert-r1-0-y" is forbidden: exceeded quota: compute'


def refuse(world: World, name: str, message: str, at: str) -> None:
    body: dict[str, Any] = {"metadata": {"name": name, "uid": name}, "message": message, "lastTimestamp": at}
    world.cluster.put(EVENTS, body)


def started(world: World) -> Job:
    """Its child runs, and has no pod."""
    world.persist()
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    return world.read()


def listed(world: World) -> int:
    return sum(request == "LIST events" for request in world.cluster.requests)


def test_the_newest_event_says_why(world: World) -> None:
    job = started(world)
    refuse(world, "new", QUOTA, "2027-01-15T08:00:09Z")
    refuse(world, "old", OLDER, "2027-01-15T08:00:01Z")
    world.run(job)
    assert listed(world) == 0, "pods of a Job come within a second or so"
    world.clock = 11.0
    world.run(job)
    assert listed(world) == 1
    words = world.executor.why_unmade(job)
    assert words == QUOTA.removeprefix("Error creating: ")
    world.run(job)
    assert listed(world) == 0, "not in each cycle"
    (state,) = with_unmade(job.observed.revisions, job.state.revision, words).values()
    assert state.blocked == words and state.prevented and state.unmade
    world.clock = 72.0
    world.cluster.objects = {key: body for key, body in world.cluster.objects.items() if key[0] is not EVENTS}
    world.run(job)
    assert listed(world) == 1 and world.executor.why_unmade(job) is None
    world.executor.forget({job.uid})
    assert world.executor.why_unmade(job) is None


def test_of_many_jobs_that_start_few_are_asked_about_in_a_cycle(world: World) -> None:
    first = started(world)
    jobs = [changed(first, uid=f"uid-{number}") for number in range(pod_refusals.REQUESTS_PER_CYCLE + 3)]
    for number, job in enumerate(jobs):
        about = {"name": f"bert-r1-{number}"}  # the store knows children by their owner
        body = child(owner=job.uid, uid=f"job-{number}")
        world.store.observe(JOBS, "ADDED", {**body, "metadata": body["metadata"] | {"annotations": about}})
    command = AskWhyUnmade(1)
    for job in jobs:
        assert not world.executor.needed(job, command)
    world.clock = 11.0
    asked = []
    for cycle in range(2):
        world.executor.begin()
        for job in jobs:
            if world.executor.needed(job, command):
                world.executor.carry_out(job, command, world.pools)
                asked.append((cycle, job.uid))
    assert [cycle for cycle, _ in asked].count(0) == pod_refusals.REQUESTS_PER_CYCLE
    assert len(asked) == len(set(asked)) == len(jobs)


def test_who_has_all_pods_is_not_asked_about(world: World) -> None:
    job = started(world)
    assert any(isinstance(command, AskWhyUnmade) for command in commands(job))
    world.store.observe(PODS, "ADDED", pod())
    job = world.read()
    assert not any(isinstance(command, AskWhyUnmade) for command in commands(job))
    revisions = job.observed.revisions
    assert with_unmade(revisions, job.state.revision, "no quota") is revisions
