"""Conditions of a job that moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import ConditionType, Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.pause import Pause
from rightpool.api.placement import Placement
from rightpool.cli.state import state_of
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.ending import end_migration
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import StoredJob, packed
from tests.unit.planning.jobs import NOW, POOLS, changed, running, spec
from tests.unit.reporting.test_conditions import CHEAPER_POOL, condition_of, context, status_and_reason


def test_a_move_that_waits_while_its_job_is_suspended_says_so() -> None:
    job = running(made=spec(suspend=True))
    here = job.state.revision
    assert here is not None
    there = replace(here, revision=2, placement=Placement("a10g", 4, 1))
    move = Migration("d-1", Action.MOVE, Phase.VERIFYING, here, there, NOW - 900, NOW - 600, CHEAPER_POOL, "why")
    stopped = RevisionState(2, exists=True, suspended=True)
    pause = Pause(Reason.SUSPENDED, NOW - 60, stopping=True)
    job = changed(job, migration=move, revision=there, revisions={2: stopped}, pause=pause)
    assert status_and_reason(ConditionType.PLACED, job) == ("False", "Suspended")
    condition = condition_of(ConditionType.MIGRATING, job)
    assert condition.status == "True"
    assert "is Verifying: the job is stopped, and the move goes on when it runs again" in condition.message
    assert status_and_reason(ConditionType.VERIFIED, job) == ("Unknown", Reason.VERIFICATION_PENDING)
    body = draft_status(StoredJob(job, packed({}), None, ""), job, context(job, POOLS)).body
    stored = StoredJob(job, packed(body), None, "")
    assert state_of(stored, stored.status) == "Suspended"


def test_a_verdict_is_told_while_the_job_goes_back() -> None:
    job = running()
    here = job.state.revision
    assert here is not None
    there, back = replace(here, revision=2, placement=Placement("a10g", 4, 1)), replace(here, revision=3)
    move = Migration("d-1", Action.MOVE, Phase.STARTING, here, back, NOW - 900, NOW - 60, CHEAPER_POOL)
    undone = replace(move, rolling_back=True, abandoned=there, failure=Reason.ROLLED_BACK, failure_message="26% worse")
    job = changed(job, migration=undone, revision=back)
    assert status_and_reason(ConditionType.MIGRATING, job) == ("True", Reason.ROLLING_BACK)
    verified = condition_of(ConditionType.VERIFIED, job)
    assert (verified.status, verified.reason) == ("False", Reason.ROLLED_BACK)
    assert verified.message == "d-1: 26% worse"


@pytest.mark.parametrize("reason", [Reason.DELIVERED, Reason.LATENCY_HELD, Reason.TOO_FEW_REQUESTS])
def test_a_move_that_is_kept_for_what_it_was_made_for_is_verified(reason: Reason) -> None:
    job = running()
    here = job.state.revision
    assert here is not None
    move = Migration("d-1", Action.MOVE, Phase.HOLDING, here, here, NOW - 900, NOW - 60, CHEAPER_POOL)
    job = end_migration(changed(job, migration=move), move, Outcome.VERIFIED, reason, NOW)
    assert status_and_reason(ConditionType.VERIFIED, job) == ("True", reason)


def test_a_move_by_weights_says_its_share() -> None:
    job = running()
    here = job.state.revision
    assert here is not None
    there = replace(here, revision=2, placement=Placement("a10g", 4, 1))
    move = Migration("d-1", Action.MOVE, Phase.SHARING, here, there, NOW - 900, NOW - 600, CHEAPER_POOL, share=25)
    shown = condition_of(ConditionType.MIGRATING, changed(job, migration=move))
    assert "of a10g, Sharing 25%" in shown.message
