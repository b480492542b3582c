"""Statuses that can't be so: nothing is done on them, what runs goes on, and others are planned as ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import MAX_HISTORY, Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.planning.allocate.limits import FleetLimits
from rightpool.planning.allocate.room import reservation
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.commands import commands
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.intent import Intent
from rightpool.reporting.decision_texts import decision_text
from rightpool.workloads.kinds.registry import naming_of
from tests.unit.planning.jobs import AUTO, FOUR, NOW, changed, entry, fleet, fresh, judged, plan, running

R1 = {1: RevisionState(1, True, active=1, running=1)}


def named(job: Job, number: int) -> Revision:
    assert job.state.revision is not None
    return replace(job.state.revision, revision=number)


def moving(job: Job, phase: Phase, source: int, target: int, here: int) -> Job:
    migration = Migration(
        id="d-2",
        action=Action.MOVE,
        phase=phase,
        source=named(job, source),
        target=replace(named(job, target), placement=Placement("a10g", 4, 1)),
        created_at=NOW - 60,
        phase_since=NOW - 60,
        reason=Reason.MOVING,
        message="",
    )
    return changed(job, revision=named(job, here), migration=migration)


FORGED: dict[str, Callable[[Job], Job]] = {
    "a Revision of the past": lambda job: changed(
        job, revision=named(job, 1), revisions={3: replace(R1[1], revision=3)}
    ),
    "a Revision of the future": lambda job: changed(job, revision=named(job, 7)),
    "no placement": lambda job: changed(job, revision=None),
    "a migration without a placement": lambda job: changed(moving(job, Phase.DRAINING, 1, 2, 1), revision=None),
    "a migration that began elsewhere": lambda job: moving(job, Phase.CHECKPOINTING, 5, 6, 1),
    "a migration that has arrived elsewhere": lambda job: moving(job, Phase.STARTING, 1, 2, 1),
    "a migration that drains another": lambda job: moving(job, Phase.DRAINING, 5, 6, 5),
    "a migration that arrived while the old one runs": lambda job: moving(job, Phase.VERIFYING, 1, 2, 2),
    "a migration back in time": lambda job: moving(job, Phase.DRAINING, 1, 1, 1),
    "what can't be read": lambda job: replace(job, unreadable="status.cost.spent: 'NaN' is no number"),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_what_runs_is_left_as_it_is_and_the_word_names_field_and_remedy(forge: Callable[[Job], Job]) -> None:
    job = forge(running())
    wrong = contradiction(job)
    assert wrong is not None and wrong.text(naming_of(job.spec.workload, job.key.name)).startswith("status.")
    assert commands(job) == ()
    for later in (NOW, NOW + 1e6):
        assert advance(job, plan(fleet([job])).assessments[job.key], AUTO, later, decision_text) is job
    if job.state.migration is None:
        assert judged(job).decision.reason is Reason.INVALID_STATUS


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_it_uses_up_nothing_that_others_may_have(forge: Callable[[Job], Job]) -> None:
    forged = forge(running(name="forged"))
    others = [running(name="other", rate=100.0)]
    alone, beside = plan(fleet(others)), plan(fleet([*others, forged]))
    assert beside.assessments[others[0].key].decision == alone.assessments[others[0].key].decision
    assert reservation(forged) == ()
    one = AUTO.model_copy(update={"max_concurrent_migrations": 1})
    assert FleetLimits([forged], one, NOW).concurrency_limit(forged) is None


def test_moves_that_are_still_to_come_hold_nobody_back() -> None:
    ahead = tuple(entry(Outcome.ROLLED_BACK, NOW + 1e9, started_at=NOW - 60.0, id=f"d-{n}") for n in range(MAX_HISTORY))
    there = ahead[0].target
    job = running(history=ahead)
    assert FleetLimits([job], AUTO, NOW).limit_on(Intent.SAVE, job, there) is None
    job = running(history=tuple(replace(e, finished_at=NOW + 1.0) for e in ahead))
    limit = FleetLimits([job], AUTO, NOW).limit_on(Intent.SAVE, job, there)
    assert limit is not None and limit.reason is Reason.POOL_SUSPECTED, "a clock may be ahead by a little"


def test_what_a_late_leader_has_left_is_no_contradiction() -> None:
    """It creates Jobs suspended, and can't start them."""
    job = changed(running(), revisions={2: RevisionState(2, True, suspended=True)})
    assert contradiction(job) is None


def test_what_an_earlier_job_of_the_name_has_left_is_none_either() -> None:
    job = changed(fresh(), revisions={1: RevisionState(1, False, active=1, earlier=True)})
    assert contradiction(job) is None
    assert contradiction(changed(running(FOUR), revisions={})) is None, "its Job was deleted, and is made anew"
