"""An object whose groups save nothing is changed while it runs, and its controller starts one after the other anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.choices import CheckpointMode
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.planning.jobs.abilities import Abilities
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal
from rightpool.planning.moves.commands import Adopt, HoldObject, TurnObject, commands
from tests.unit.planning.jobs import AUTO, NOW, changed
from tests.unit.planning.test_only_watched import step
from tests.unit.planning.test_users_word import RUNS, moving

GROUPS = Abilities("LeaderWorkerSet", resize=False, affinity=True, by_group=True)
TURNED = replace(RUNS, revision=2)
FOUR_GROUPS = Placement("a10g", 4, 4)


def turning(*, mode: str = "None", able: Abilities = GROUPS, **fields: Any) -> Job:
    job = moving(Phase.DRAINING, RUNS)
    checkpoint = job.spec.checkpoint.model_copy(update={"mode": CheckpointMode(mode)})
    return changed(job, able=able, spec=job.spec.model_copy(update={"checkpoint": checkpoint}), **fields)


def test_it_is_never_stopped_and_is_there_once_it_is_changed() -> None:
    job = turning()
    migration = job.state.migration
    assert migration is not None
    assert commands(job) == (Adopt(), TurnObject(migration.target))
    assert step(job).state.migration == migration, "it is waited for"
    there = step(changed(job, revisions={2: TURNED})).state
    assert there.migration is not None and there.migration.phase is Phase.STARTING
    assert there.revision is not None and there.revision.placement == migration.target.placement


def test_what_is_planned_begins_without_a_save() -> None:
    job = moving(Phase.PLANNED, RUNS)
    spec = turning().spec
    begun = step(changed(job, able=GROUPS, spec=spec, object_checked=2)).state.migration
    assert begun is not None and begun.phase is Phase.DRAINING


@pytest.mark.parametrize("other", [{"mode": "Signal"}, {"able": GROUPS._replace(by_group=False)}])
def test_what_saves_or_is_one_group_is_stopped_first(other: dict[str, Any]) -> None:
    job = turning(**other)
    here = job.state.revision
    assert here is not None and commands(job) == (Adopt(), HoldObject(here))


def test_in_its_own_pool_it_is_stopped_first() -> None:
    job = turning()
    here, migration = job.state.revision, job.state.migration
    assert here is not None and migration is not None
    target = replace(migration.target, placement=Placement(here.placement.pool, 4, 1))
    assert commands(changed(job, migration=replace(migration, target=target))) == (Adopt(), HoldObject(here))


def test_what_is_refused_stays_as_it_is() -> None:
    refusal = ChildRefusal(2, 1, Reason.CHANGE_REFUSED, "field is immutable", 0.0)
    state = step(turning(object_refusal=refusal)).state
    assert state.migration is None and state.history[-1].outcome is Outcome.HELD
    assert [(one.pool, one.message) for one in state.avoid] == [("a10g", "field is immutable")]


def test_it_goes_back_in_the_same_way() -> None:
    refusal = ChildRefusal(2, 1, Reason.CHANGE_REFUSED, "no", 0.0)
    starting = changed(moving(Phase.STARTING, replace(TURNED, running=0)), able=GROUPS, spec=turning().spec)
    back = step(changed(starting, object_refusal=refusal))
    migration = back.state.migration
    assert migration is not None and migration.rolling_back and migration.phase is Phase.DRAINING
    assert commands(back) == (Adopt(), TurnObject(migration.target))
    kept = replace(refusal, revision=migration.target.revision)
    ended = step(changed(back, object_refusal=kept)).state
    assert ended.migration is None and ended.history[-1].outcome is Outcome.FAILED
    assert ended.revision is not None and ended.revision.revision == 2, "it is where it was sent"


def test_each_group_has_the_start_deadline_for_itself() -> None:
    first = changed(moving(Phase.STARTING, replace(TURNED, running=0)), able=GROUPS, spec=turning().spec)
    migration, at, deadline = first.state.migration, NOW, AUTO.start_deadline.total_seconds()
    assert migration is not None
    job = changed(first, migration=replace(migration, target=replace(migration.target, placement=FOUR_GROUPS)))
    for running in (1, 2, 3):
        at += 0.9 * deadline
        job = step(changed(job, revisions={2: replace(TURNED, active=4, running=running)}), at)
        assert job.state.migration is not None and job.state.migration.phase_since == at
    back = step(changed(job, revisions={2: replace(TURNED, active=4, running=3)}), at + deadline + 1.0).state.migration
    assert back is not None and back.rolling_back and back.up == 0
