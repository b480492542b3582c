"""Events: one for what happened, none for what is as it should be."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.conditions import Condition, Reason
from rightpool.hardware.placement import Placement
from rightpool.planning.decision import Action
from rightpool.planning.ledger import LedgerEntry, Outcome
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.revision import RevisionRef
from rightpool.planning.snapshot import JobState
from rightpool.runtime.announcements import announcements
from rightpool.runtime.jobs import read_job
from tests.unit.runtime.makers import profiled_job

REF = RevisionRef(1, Placement("a100", 4, 1), "h", (4, 1), 1.7e9)
TARGET = replace(REF, revision=2, placement=Placement("a10g", 4, 1))
MOVE = Migration(
    "d-2", Action.MOVE, Phase.PLANNED, REF, TARGET, 1.7e9, 1.7e9, Reason.CHEAPER_POOL_MEETS_TARGETS, "67% less"
)


def job(**fields: object) -> JobState:
    return replace(read_job(profiled_job()).state, **fields)  # type: ignore[arg-type]


def said(
    old: JobState, new: JobState, before: tuple[Condition, ...] = (), after: tuple[Condition, ...] = ()
) -> list[tuple[str, bool]]:
    return [(event.reason, event.warning) for event in announcements({}, old, new, before, after)]


def condition(kind: str, status: str, reason: str = "Some") -> Condition:
    return Condition(kind, status, reason)  # type: ignore[arg-type]


def test_a_start_and_each_phase_are_told_once() -> None:
    assert said(job(), job(ref=REF)) == [("Starting", False)]
    assert said(job(ref=REF), job(ref=REF, migration=MOVE)) == [("CheaperPoolMeetsTargets", False)]
    draining = replace(MOVE, phase=Phase.DRAINING)
    assert said(job(ref=REF, migration=MOVE), job(ref=REF, migration=draining)) == [("Draining", False)]
    assert said(job(ref=REF, migration=draining), job(ref=REF, migration=draining)) == []


def test_what_the_user_wished_for_is_no_warning() -> None:
    runs = (condition("Placed", "True", "Running"),)
    for reason, warning in (("Suspended", False), ("Stopping", False), ("JobCompleted", False), ("JobFailed", True)):
        assert said(job(), job(), runs, (condition("Placed", "False", reason),)) == [(reason, warning)]


def test_a_rollback_is_a_warning_and_so_is_its_end() -> None:
    back = replace(MOVE, rolling_back=True, abandoned=TARGET, failure=Reason.ROLLED_BACK, failure_message="worse")
    assert said(job(ref=TARGET, migration=MOVE), job(ref=TARGET, migration=back)) == [("RollingBack", True)]
    entry = LedgerEntry(
        id="d-2",
        action="Move",
        source=REF.placement,
        target=TARGET.placement,
        predicted_samples_per_second=None,
        predicted_cost_per_million=None,
        baseline_samples_per_second=None,
        baseline_cost_per_million=None,
        realised_samples_per_second=None,
        realised_cost_per_million=None,
        started_at=1.0,
        finished_at=2.0,
        outcome=Outcome.ROLLED_BACK,
        reason="RolledBack",
    )
    assert said(job(ref=TARGET, migration=back), job(ref=REF, history=(entry,))) == [("RolledBack", True)]


def test_conditions_that_flip_are_told_and_those_that_begin_well_are_not() -> None:
    good, bad = condition("CostEfficient", "True", "Cheapest"), condition("CostEfficient", "False", "OverBudget")
    assert said(job(), job(), (), (good,)) == []
    assert said(job(), job(), (), (bad,)) == [("OverBudget", True)]
    assert said(job(), job(), (good,), (bad,)) == [("OverBudget", True)]
    assert said(job(), job(), (bad,), (good,)) == [("Cheapest", False)]
    assert said(job(), job(), (bad,), (condition("CostEfficient", "Unknown"),)) == []
    assert said(job(), job(), (), (condition("Degraded", "True", "Straggler"),)) == [("Straggler", True)]
    assert said(job(), job(), (), (condition("Degraded", "False", "Healthy"),)) == []


def test_how_every_job_begins_is_no_news() -> None:
    assert said(job(), job(), (), (condition("Placed", "False", "Starting"),)) == []
    assert said(job(), job(), (), (condition("Profiled", "False", "WarmingUp"),)) == []


def test_the_end_is_told() -> None:
    assert said(job(ref=REF), job(ref=REF, finished="Completed")) == [("JobCompleted", False)]
    assert said(job(ref=REF), job(ref=REF, finished="Failed")) == [("JobFailed", True)]
