"""A server whose user no longer allows where it is, and that can't run where it is to go: it answers on where it was,
says so, and tries again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import BatchPromise, Phase
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.commands import EnsureRevision, commands
from rightpool.planning.moves.surge import LONGEST_SURGE_SECONDS
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.decision import Decision
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, DAY, NOW, changed, fleet, plan, spec
from tests.unit.planning.test_server_move import SAME, batched, sides, window
from tests.unit.planning.test_surge import TEMPLATE, server

COOLDOWN = 900.0


def leaving(**sections: object) -> Job:
    """One that answers on A100, which its user has just taken from the pools that he allows."""
    job, allowed = server(), {"pools": {"allow": ["a10g"]}}
    workload = {"chipsPerReplica": 2, "replicas": {"min": 2}, "port": 8000, "template": TEMPLATE}
    made = spec(
        workload={"server": workload | {"metrics": {"port": 8002}}},
        elasticity={},
        checkpoint={},
        progress=None,
        targets={"latency": {"p99": "50ms"}},
        placement=allowed,
        **sections,
    )
    assert job.state.revision is not None
    return changed(replace(job, spec=made, generation=2), revision=replace(job.state.revision, generation=1))


def decision(job: Job, now: float) -> Decision:
    return plan(fleet([job], now=now)).assessments[job.key].decision


def cycle(job: Job, now: float) -> Job:
    return advance(job, plan(fleet([job], now=now)).assessments[job.key], AUTO, now, decision_text)


def text_of(job: Job, now: float) -> str:
    return decision_text(job, plan(fleet([job], now=now)).assessments[job.key], now)


def sharing(job: Job, now: float) -> Job:
    job = cycle(cycle(job, now), now)
    migration = job.state.migration
    assert migration is not None and migration.demanded
    there = RevisionState(migration.target.revision, True, active=2, running=2)
    job = cycle(changed(job, revisions={1: job.observed.revisions[1], there.revision: there}), now)
    assert job.state.migration is not None and job.state.migration.phase is Phase.SHARING
    return job


def failed(job: Job, now: float) -> Job:
    """All that it answers there are errors."""
    job = sharing(job, now)
    wrong = sides(window(300, 0, 300, at=now + 15), window(300, at=now + 15))
    job = cycle(changed(job, sides=wrong), now + 60)
    assert job.state.history[-1].outcome is Outcome.ROLLED_BACK
    return changed(job, sides=(), revisions={1: job.observed.revisions[1]})


def test_it_answers_on_where_it_was_and_tries_again_after_the_cooldown() -> None:
    job, back = failed(leaving(), NOW), NOW + 60.0
    for now in (back, back + COOLDOWN - 1.0):
        held = decision(job, now)
        assert (held.action, held.reason) == (Action.HOLD, Reason.NO_FEASIBLE_POOL)
        assert cycle(job, now).state.migration is None
        assert [one.ref.revision for one in commands(job) if isinstance(one, EnsureRevision)] == [1]
    assert decision(job, back + COOLDOWN).action is Action.MOVE


def test_it_says_where_it_answers_why_and_what_to_do() -> None:
    text = text_of(failed(leaving(), NOW), NOW + 60.0)
    assert text == (
        "stays on a100, which is not allowed: a10g is tried again in 15 min, since 100.0% of 900 requests there "
        "failed; correct the cause or allow a100"
    )
    assert len(text) <= 160


def test_each_further_try_waits_twice_as_long() -> None:
    job, now, waits = leaving(), NOW, []
    for _ in range(9):
        job = failed(job, now)
        until = job.state.avoid[-1].until
        assert until is not None
        waits.append(until - now - 60.0)
        now = until
    assert waits[:3] == [COOLDOWN, 2 * COOLDOWN, 4 * COOLDOWN]
    assert waits[-1] == DAY
    assert job.state.moves == 0, "its user's word uses up no moves"


@pytest.mark.parametrize("cooldown", ["0s", "1h"])
def test_without_a_cooldown_it_is_no_loop_either(cooldown: str) -> None:
    job = failed(leaving(adaptation={"cooldown": cooldown}), NOW)
    until = job.state.avoid[-1].until
    window = job.spec.profiling.window.total_seconds()
    assert until == NOW + 60.0 + (window if cooldown == "0s" else 3600.0)


def test_what_does_not_start_is_tried_again_as_soon() -> None:
    job = cycle(cycle(leaving(), NOW), NOW)
    late = NOW + LONGEST_SURGE_SECONDS + 1.0
    job = cycle(job, late)
    assert job.state.history[-1].outcome is Outcome.FAILED
    assert decision(job, late + COOLDOWN - 1.0).action is Action.HOLD
    assert decision(job, late + COOLDOWN).action is Action.MOVE


def test_an_edit_of_its_program_is_tried_at_once() -> None:
    job = replace(failed(leaving(), NOW), workload_hash="corrected", generation=3)
    assert decision(job, NOW + 61.0).action is Action.UPDATE


def test_its_users_word_is_not_undone_for_batches_that_take_longer() -> None:
    job = sharing(leaving(), NOW)
    migration = job.state.migration
    assert migration is not None
    job = changed(job, migration=replace(migration, batches=BatchPromise(0.010, 0.001, 1.2)))
    job = cycle(changed(job, sides=sides(batched(window(1000), 0.021), SAME)), NOW + 60)
    assert not job.state.history
