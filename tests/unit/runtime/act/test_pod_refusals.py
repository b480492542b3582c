"""Why pods can't be made is read from the Events of their child, and rarely."""

from __future__ import annotations

from typing import Any

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.resources import EVENTS, PODS
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import AskWhyUnmade, commands
from rightpool.runtime.act import refusals
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
    jobs = [changed(first, uid=f"uid-{number}") for number in range(refusals.REQUESTS_PER_CYCLE + 3)]
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
    assert [cycle for cycle, _ in asked].count(0) == refusals.REQUESTS_PER_CYCLE
    assert len(asked) == len(set(asked)) == len(jobs)


def test_who_has_all_pods_is_not_asked_about(world: World) -> None:
    job = started(world)
    assert any(isinstance(command, AskWhyUnmade) for command in commands(job))
    world.store.observe(PODS, "ADDED", pod())
    job = world.read()
    assert not any(isinstance(command, AskWhyUnmade) for command in commands(job))
    revisions = job.observed.revisions
    assert with_unmade(revisions, job.state.revision, "no quota") is revisions


def test_forged_events_are_neither_read_to_the_end_nor_kept_whole(world: World) -> None:
    """A tenant may write as many as he likes, each of a megabyte: they are of his own namespace's job, and no more."""
    job = started(world)
    for number in range(5 * refusals.EVENTS_READ):
        refuse(world, f"forged-{number}", "forged " * 20_000, f"2999-01-15T08:00:{number % 60:02d}Z")
    read: list[int] = []
    page = world.cluster.page

    def counted(*arguments: Any, **options: Any) -> Any:
        found = page(*arguments, **options)
        read.append(len(found.items))
        return found

    world.cluster.page = counted  # type: ignore[method-assign]
    world.run(job)
    world.clock = 11.0
    world.run(job)
    words = world.executor.why_unmade(job)
    assert read == [refusals.EVENTS_READ]
    assert words is not None and len(words) == refusals.LONGEST_WORDS
    world.store.observe(PODS, "ADDED", pod())
    job = world.read()
    assert with_unmade(job.observed.revisions, job.state.revision, words) is job.observed.revisions


def test_an_event_without_a_form_says_nothing(world: World) -> None:
    job = started(world)
    world.cluster.put(EVENTS, {"metadata": {"name": "a", "uid": "a"}, "series": None, "message": None})
    world.cluster.put(EVENTS, {"metadata": {"name": "b", "uid": "b"}, "message": {"no": "text"}, "lastTimestamp": 7})
    world.run(job)
    world.clock = 11.0
    world.run(job)
    assert len(world.executor.why_unmade(job) or "") <= refusals.LONGEST_WORDS
