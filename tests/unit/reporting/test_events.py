"""Events: one for what happened, none for what is as it should be."""

from __future__ import annotations

import itertools
from dataclasses import replace

from rightpool.api.action import Action
from rightpool.api.conditions import Condition, Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.rescue import Rescue
from rightpool.api.revision import Revision
from rightpool.api.trace import Trace, TraceRanks, TraceReason, TraceState, TraceSummary
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.threat import Threat
from rightpool.reporting.events import JobEvents
from rightpool.reporting.stored_job import read_job
from tests.unit.planning.jobs import changed
from tests.unit.runtime.makers import profiled_job

REF = Revision(1, Placement("a100", 4, 1), "h", 4, 1, 1.7e9)
TARGET = replace(REF, revision=2, placement=Placement("a10g", 4, 1))
MOVE = Migration(
    "d-2", Action.MOVE, Phase.PLANNED, REF, TARGET, 1.7e9, 1.7e9, Reason.CHEAPER_POOL_MEETS_TARGETS, "67% less"
)

ENTRY = LedgerEntry(
    id="d-2",
    action="Move",
    source=REF.placement,
    target=TARGET.placement,
    predicted_throughput=None,
    baseline_throughput=None,
    realised_throughput=None,
    started_at=1.0,
    finished_at=2.0,
    outcome=Outcome.ROLLED_BACK,
    reason="RolledBack",
)


def job(**fields: object) -> Job:
    return changed(read_job(profiled_job()).job, **fields)


def events_of(
    old: Job,
    new: Job,
    before: tuple[Condition, ...] = (),
    after: tuple[Condition, ...] = (),
    job_events: JobEvents | None = None,
) -> list[tuple[str, bool]]:
    job_events = job_events or JobEvents()
    return [(event.reason, event.warning) for event in job_events.events({}, old, new, before, after)]


def condition(kind: str, status: str, reason: str = "Some") -> Condition:
    return Condition(kind, status, reason)  # type: ignore[arg-type]


def test_a_start_and_each_phase_are_told_once() -> None:
    assert events_of(job(), job(revision=REF)) == [("Starting", False)]
    assert events_of(job(revision=REF), job(revision=REF, migration=MOVE)) == [("CheaperPoolMeetsTargets", False)]
    draining = replace(MOVE, phase=Phase.DRAINING)
    assert events_of(job(revision=REF, migration=MOVE), job(revision=REF, migration=draining)) == [("Draining", False)]
    assert events_of(job(revision=REF, migration=draining), job(revision=REF, migration=draining)) == []


def test_what_the_user_wished_for_is_no_warning_and_its_end_is_told() -> None:
    runs, stopped = condition("Placed", "True", "Running"), condition("Placed", "False", "Suspended")
    job_events = JobEvents()
    assert events_of(job(), job(), (runs,), (condition("Placed", "False", "Stopping"),), job_events) == []
    assert events_of(job(), job(), (runs,), (stopped,), job_events) == [("Suspended", False)]
    assert events_of(job(), job(), (stopped,), (condition("Placed", "False", "Starting"),), job_events) == []
    assert events_of(job(), job(), (stopped,), (runs,), job_events) == [("Running", False)], "a resume is told"


def test_a_job_that_has_to_wait_first_and_then_runs_quietly_makes_three_events() -> None:
    waits, starts, runs = (
        condition("Placed", status, reason)
        for status, reason in (("False", "WaitingForCapacity"), ("False", "Starting"), ("True", "Running"))
    )
    idle, job_events = condition("Efficient", "False", "ChipIdle"), JobEvents()
    made = [
        *events_of(job(), job(), (), (waits,), job_events),
        *events_of(job(), job(revision=REF), (waits,), (starts,), job_events),
        *events_of(job(revision=REF), job(revision=REF), (starts,), (runs,), job_events),
        *events_of(job(revision=REF), job(revision=REF), (runs,), (runs, idle), job_events),
    ]
    assert made == [("WaitingForCapacity", True), ("Starting", False), ("ChipIdle", True)]
    assert events_of(job(), job(revision=REF), (waits,), (starts,)) == [("Starting", False)], "also a new process"
    lost = condition("Placed", "False", "Starting")
    assert events_of(job(revision=REF), job(revision=REF), (runs,), (lost,), job_events) == [("PodsLost", True)]
    assert events_of(job(revision=REF), job(revision=REF), (lost,), (runs,), job_events) == [("Running", False)]


def test_a_rollback_is_a_warning_and_so_is_its_end() -> None:
    back = replace(MOVE, rolling_back=True, abandoned=TARGET, failure=Reason.ROLLED_BACK, failure_message="worse")
    assert events_of(job(revision=TARGET, migration=MOVE), job(revision=TARGET, migration=back)) == [
        ("RollingBack", True)
    ]
    assert events_of(job(revision=TARGET, migration=back), job(revision=REF, history=(ENTRY,))) == [
        ("RolledBack", True)
    ]


def test_what_is_wrong_is_told_once_whatever_is_unknown_in_between() -> None:
    good, bad = condition("CostEfficient", "True", "Cheapest"), condition("CostEfficient", "False", "OverBudget")
    unknown, job_events = condition("CostEfficient", "Unknown"), JobEvents()
    assert events_of(job(), job(), (), (good,), job_events) == []
    assert events_of(job(), job(), (good,), (bad,), job_events) == [("OverBudget", True)]
    assert events_of(job(), job(), (bad,), (unknown,), job_events) == []
    assert events_of(job(), job(), (unknown,), (bad,), job_events) == []
    assert events_of(job(), job(), (bad,), (good,), job_events) == [], "of alternatives only the bad news is news"
    assert events_of(job(), job(), (good,), (bad,), job_events) == [("OverBudget", True)]


def test_a_new_process_repeats_nothing_that_is_stored() -> None:
    bad = condition("TargetsMet", "False", "DeadlineMissed")
    assert events_of(job(), job(), (bad,), (bad,)) == []
    assert events_of(job(), job(), (bad,), (condition("TargetsMet", "True", "TargetsHold"),)) == [
        ("TargetsHold", False)
    ]


def test_what_is_mended_is_told() -> None:
    worse, job_events = condition("Degraded", "True", "Straggler"), JobEvents()
    assert events_of(job(), job(), (), (condition("Degraded", "False", "Healthy"),), job_events) == []
    assert events_of(job(), job(), (), (worse,), job_events) == [("Straggler", True)]
    assert events_of(job(), job(), (worse,), (condition("Degraded", "False", "Healthy"),), job_events) == [
        ("Healthy", False)
    ]


def test_another_reason_for_not_running_is_another_statement() -> None:
    starting, job_events = condition("Placed", "False", "Starting"), JobEvents()
    assert events_of(job(), job(), (), (starting,), job_events) == []
    crashing = condition("Placed", "False", "CrashLoop")
    assert events_of(job(), job(), (starting,), (crashing,), job_events) == [("CrashLoop", True)]
    assert events_of(job(), job(), (crashing,), (starting,), job_events) == []
    assert events_of(job(), job(), (starting,), (crashing,), job_events) == []
    runs = condition("Placed", "True", "Running")
    assert events_of(job(), job(), (crashing,), (runs,), job_events) == [("Running", False)]


def test_a_pod_that_is_lost_is_told_and_so_is_its_return() -> None:
    runs, fewer, job_events = (
        condition("Placed", "True", "Running"),
        condition("Placed", "False", "Starting"),
        JobEvents(),
    )
    assert events_of(job(), job(), (runs,), (fewer,), job_events) == [("PodsLost", True)]
    assert events_of(job(), job(), (fewer,), (fewer,), job_events) == []
    assert events_of(job(), job(), (fewer,), (runs,), job_events) == [("Running", False)]
    draining = replace(MOVE, phase=Phase.DRAINING)
    moving = job(revision=REF, migration=draining)
    assert events_of(moving, moving, (runs,), (fewer,)) == [], "a move's pods end as it says"


def test_a_verified_move_makes_at_most_five_events() -> None:
    job_events, announced = JobEvents(), []
    better = condition("CostEfficient", "False", "CheaperPoolMeetsTargets")
    states = [job(revision=REF), *(job(revision=REF, migration=replace(MOVE, phase=phase)) for phase in Phase)]
    entry = replace(ENTRY, outcome=Outcome.VERIFIED, reason="Delivered")
    states.append(job(revision=TARGET, history=(entry,)))
    before: tuple[Condition, ...] = (condition("Placed", "True", "Running"), condition("Profiled", "True", "Measured"))
    for old, new in itertools.pairwise(states):
        moving = new.state.migration is not None
        after = (
            condition("Placed", "False" if moving else "True", "Starting" if moving else "Running"),
            condition("Profiled", "False" if moving else "True", "PartialTelemetry" if moving else "Measured"),
            better if moving else condition("CostEfficient", "True", "Cheapest"),
            condition("Verified", "Unknown" if moving else "True", "Delivered"),
        )
        announced += events_of(old, new, before, after, job_events)
        before = after
    assert announced == [
        ("CheaperPoolMeetsTargets", False),
        ("Draining", False),
        ("WarmingUp", False),
        ("Delivered", False),
    ]


def test_how_every_job_begins_is_no_news() -> None:
    assert events_of(job(), job(), (), (condition("Placed", "False", "Starting"),)) == []
    assert events_of(job(), job(), (), (condition("Profiled", "False", "WarmingUp"),)) == []


def test_the_end_is_told() -> None:
    assert events_of(job(revision=REF), job(revision=REF, finished="Completed")) == [("JobCompleted", False)]
    assert events_of(job(revision=REF), job(revision=REF, finished="Failed")) == [("JobFailed", True)]


def test_a_rescue_has_an_event_when_it_is_asked_for_and_one_for_what_came_of_it() -> None:
    asked = Rescue(1, 2, 1.8e9, "gpu-7")
    saved, unsaved = replace(asked, saved_at=1.8e9 + 9, over=True), replace(asked, over=True)
    assert events_of(job(), job(rescue=asked)) == [("SaveRequested", True)]
    assert events_of(job(rescue=asked), job(rescue=asked)) == []
    assert events_of(job(rescue=asked), job(rescue=saved)) == [("Saved", False)]
    assert events_of(job(rescue=asked), job(rescue=unsaved)) == [("NotSaved", True)]
    assert events_of(job(rescue=saved), job(rescue=replace(saved, pods=1))) == []
    assert events_of(job(rescue=saved), job()) == []
    (event,) = JobEvents().events({}, job(), job(rescue=asked), (), ())
    assert event.note == "2 pods are about to be lost (node gpu-7 is drained): the program is asked to save"
    by = "default-scheduler: preempting to accommodate a higher priority pod"
    preempted = changed(job(rescue=Rescue(1, 1, 1.8e9)), threat=Threat(1, cause=by))
    (event,) = JobEvents().events({}, job(), preempted, (), ())
    assert event.note == f"1 pod is about to be lost ({by}): the program is asked to save" and len(event.note) <= 160


def test_a_lost_pod_and_a_resume_have_an_event() -> None:
    job_events, runs = JobEvents(), condition("Placed", "True", "Running")
    lost, off = condition("Placed", "False", "Starting"), condition("Placed", "False", "Suspended")
    steps = [(runs, lost), (lost, runs), (runs, off), (off, lost), (lost, runs)]
    announced = [events_of(job(), job(), (before,), (after,), job_events) for before, after in steps]
    assert announced == [[("PodsLost", True)], [("Running", False)], [("Suspended", False)], [], [("Running", False)]]


def test_a_trace_has_an_event_when_it_is_over() -> None:
    waiting = Trace("now", TraceState.WAITING, 1.8e9, 0, revision=1)
    taken = replace(waiting, state=TraceState.CAPTURED, pod="bert-r1-0", finished_at=1.8e9)
    failed = replace(waiting, state=TraceState.FAILED, reason=TraceReason.NO_STEPS, message="none", finished_at=1.8e9)
    assert events_of(job(), job(trace=waiting)) == []
    assert events_of(job(trace=waiting), job(trace=taken)) == [("TraceCaptured", False)]
    assert events_of(job(trace=taken), job(trace=taken)) == []
    assert events_of(job(trace=waiting), job(trace=failed)) == [("NoSteps", True)]
    assert events_of(job(), job(trace=failed)) == [("NoSteps", True)], "refused at once"
    costly = replace(taken, summary=TraceSummary("Device", 0.3, 2, cost=0.354))
    (event,) = JobEvents().events({}, job(trace=waiting), job(trace=costly), (), ())
    assert "was taken in pod bert-r1-0, and cost the program 0.354 s" in event.note
    every = replace(taken, rank=None, ranks=TraceRanks(captured=7, failed=1, pods=2))
    (event,) = JobEvents().events({}, job(trace=waiting), job(trace=every), (), ())
    assert "of all ranks was taken (7 captured, 1 failed)" in event.note
    again = replace(failed, id="again", since=1.9e9)
    assert events_of(job(trace=failed), job(trace=again)) == [("NoSteps", True)]


def test_the_end_of_throttling_is_told() -> None:
    events, running = JobEvents(), job()
    throttled = condition("Efficient", "False", "Throttled")
    healthy = condition("Efficient", "True", "EfficientEnough")
    assert events_of(running, running, (healthy,), (throttled,), events) == [("Throttled", True)]
    assert events_of(running, running, (throttled,), (healthy,), events) == [("EfficientEnough", False)]
    assert events_of(running, running, (healthy,), (healthy,), events) == []
