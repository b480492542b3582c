"""A job that is about to lose pods is asked for a save: once for each pod, whatever happens in between."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.migration import Phase
from rightpool.api.rescue import Rescue
from rightpool.api.status import ProfiledJobStatus
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.threat import Threat
from rightpool.planning.moves.commands import RequestCheckpoint, commands
from rightpool.planning.moves.rescues import with_rescue

from .jobs import NOW, changed, running, spec
from .world import moved, on_a100

ONE = Threat(1, "node-1")


def asked(job: Job) -> list[RequestCheckpoint]:
    return [command for command in commands(job) if isinstance(command, RequestCheckpoint)]


def test_a_drained_node_triggers_one_save() -> None:
    job = with_rescue(running(threat=ONE, checkpoint_at=NOW - 60), NOW)
    assert job.state.rescue == Rescue(1, 1, NOW, "node-1", saved_before=NOW - 60)
    assert asked(job) == [RequestCheckpoint(1, f"rescue-{NOW:.0f}", ending=True)]
    assert with_rescue(job, NOW + 10) is job, "nothing is written while it saves"
    saved = with_rescue(changed(job, checkpoint_at=NOW + 20), NOW + 21)
    assert saved.state.rescue is not None and (saved.state.rescue.saved_at, saved.state.rescue.over) == (NOW + 20, True)
    assert asked(saved) == []
    assert with_rescue(saved, NOW + 86_400) is saved, "a node may be cordoned for days"


def test_a_program_that_does_not_save_is_not_asked_for_ever() -> None:
    job = with_rescue(running(threat=ONE, made=spec(checkpoint={"timeout": "60s"})), NOW)
    over = with_rescue(job, NOW + 61)
    assert over.state.rescue is not None and (over.state.rescue.saved_at, over.state.rescue.over) == (None, True)
    assert asked(over) == [] and with_rescue(over, NOW + 1000) is over


def test_another_pod_in_danger_is_another_reason() -> None:
    job = with_rescue(changed(with_rescue(running(threat=ONE), NOW), checkpoint_at=NOW + 1), NOW + 2)
    second = with_rescue(changed(job, threat=Threat(2, "node-1")), NOW + 100)
    assert second.state.rescue is not None and second.state.rescue.since == NOW + 100
    assert second.state.rescue.saved_before == NOW + 1
    fewer = with_rescue(changed(job, threat=None), NOW + 100)
    assert fewer.state.rescue is None
    again = with_rescue(changed(fewer, threat=ONE), NOW + 200)
    assert again.state.rescue is not None and again.state.rescue.since == NOW + 200


@pytest.mark.parametrize(
    "job",
    [
        running(threat=ONE, made=spec(checkpoint={"mode": "None"})),
        running(threat=ONE, made=spec(checkpoint={"mode": "Periodic"})),
        running(threat=ONE, made=spec(suspend=True)),
        changed(running(threat=ONE), revision=replace(running().state.revision, since=None)),  # type: ignore[type-var]
    ],
    ids=["cannot save", "saves by itself", "suspended, which asks itself", "has never run"],
)
def test_who_is_not_asked(job: Job) -> None:
    assert with_rescue(job, NOW) is job


def test_a_move_that_asks_itself_is_not_disturbed() -> None:
    world = moved(on_a100())
    world.live()
    world.cycle()
    migration = world.job.state.migration
    assert migration is not None and migration.phase is Phase.CHECKPOINTING
    job = changed(world.observed(), threat=ONE)
    assert with_rescue(job, world.now) is job


def test_it_is_asked_anew_after_a_crash_and_not_twice_by_id() -> None:
    """The same request by the next operator has the same id, which the sidecar takes for the same request."""
    world = on_a100()
    world.answers = False
    world.persist(with_rescue(changed(world.observed(), threat=ONE), world.now))
    stored = ProfiledJobStatus.from_dict(ProfiledJobStatus(state=world.job.state).to_dict())
    again = world.job.with_state(stored.state)
    assert asked(again) == asked(world.job) != []


@given(st.lists(st.tuples(st.sampled_from([None, 1, 2, 3]), st.booleans(), st.floats(1.0, 400.0)), max_size=30))
def test_a_pod_in_danger_is_one_request(steps: list[tuple[int | None, bool, float]]) -> None:
    """Requests are no more than there were pods that came to be in danger."""
    job, now, requests, dangers, before = running(), NOW, set(), 0, 0
    for pods, saves, seconds in steps:
        now += seconds
        threat = None if pods is None else Threat(pods)
        job = changed(job, threat=threat, **({"checkpoint_at": now} if saves else {}))
        dangers += max(0, (pods or 0) - before)
        before = pods or 0
        job = with_rescue(job, now)
        requests |= {command.id for command in asked(job)}
    assert len(requests) <= dangers
