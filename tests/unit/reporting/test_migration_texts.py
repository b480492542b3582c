"""What is said of a migration that did not get where it was to. tests/unit/planning says when it does not."""

from __future__ import annotations

import pytest

from rightpool.api.placement import Placement
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.moves.setback import (
    ChipsTaken,
    EndUnknown,
    FailedWhenSaving,
    GangDisrupted,
    MetricsUnread,
    NeverStarted,
    NoStep,
    NothingAnswered,
    NothingProven,
    NotRunning,
    ProgramFailed,
    Setback,
    StaysCold,
    StoppedAnswering,
    StoppedByQueue,
    TakenInHand,
    UserAct,
)
from rightpool.planning.moves.trace_setback import (
    InvalidRequest,
    NoProfiler,
    NothingToTrace,
    StoppedTooSoon,
    TookTooLong,
    TraceSetback,
)

SENTENCES: list[tuple[Setback, str]] = [
    (NotRunning(600.0, "no node", None), "not running after 10 min: no node"),
    (NotRunning(600.0, None, None), "not running after 10 min: no reason known"),
    (NotRunning(600.0, "no node", "research"), "not running after 10 min: queue research has not admitted it"),
    (
        NotRunning(600.0, None, None, no_room="a100"),
        "not running after 10 min: no reason known; there is no room on a100, where it came from",
    ),
    (NotRunning(60.0, "no node", None, returning=True), "on the way back: not running after 60 s: no node"),
    (StaysCold("warm-up failed: HTTP 400"), "no request of users went there: warm-up failed: HTTP 400"),
    (StaysCold(None), "no request of users went there: no reason known"),
    (StoppedAnswering("exit 1"), "no replica there answers any more: exit 1"),
    (StoppedAnswering(None), "no replica there answers any more: no reason known"),
    (
        NothingAnswered(120.0),
        "it answered no request there, and 120 where it is: see that it counts them there, and that clients do not "
        "keep their connections",
    ),
    (
        MetricsUnread(300.0),
        "requests went there, and no metrics of it were read for 5 min: see that its pods have the same page there, "
        "and no NetworkPolicy is in the way",
    ),
    (NeverStarted("no node"), "the job did not start there: no node"),
    (NeverStarted(None), "the job did not start there: no reason known"),
    (ProgramFailed("exit 1"), "exit 1"),
    (ProgramFailed(None), "the Revision failed"),
    (
        ChipsTaken(Placement("a100", 8, 1), 900.0),
        "others got 8 chips of a100 while its save was waited for (15 min): the job runs on, and goes when there is "
        "room and it saves in time",
    ),
    (FailedWhenSaving(), "the program failed after a save was asked for"),
    (
        GangDisrupted(1, 1_800_000_000.0),
        "Kubernetes took a pod of r1 away at 2027-01-15T08:00:00Z, and the others failed without it; all start again, "
        "and no failure counts",
    ),
    (EndUnknown(2), "the pods of r2 have ended, and Kubernetes does not say how; nothing is moved"),
    (
        StoppedByQueue("research"),
        "queue research has stopped it, and a day was not enough for a verdict; the job stays",
    ),
    (
        TakenInHand(UserAct.CHANGED),
        "somebody else has changed the object while it was moved; it stays as it is",
    ),
    (
        TakenInHand(UserAct.KEPT),
        "adoption.change lets nothing be done to the object any more; it stays as it is",
    ),
    (NoStep(3600.0), "no step within 60 min after the move, though its pods run and are read"),
    (NoStep(3600.0, True), "no step within 60 min after its first ones there, though its pods run and are read"),
    (
        NothingProven(1800.0, None),
        "no complete profile within 30 min after the move, so nothing can be proven; the job stays",
    ),
    (
        NothingProven(1800.0, WorkUnit.STEPS),
        "no throughput in steps/s, as before the move, within 30 min after the move, so nothing can be proven; the job "
        "stays",
    ),
]


@pytest.mark.parametrize(("setback", "text"), SENTENCES)
def test_what_is_said_of_a_setback(setback: Setback, text: str) -> None:
    assert setback.text() == text


def test_each_is_said() -> None:
    assert {type(setback).__name__ for setback, _ in SENTENCES} == {kind.__name__ for kind in Setback.__subclasses__()}


@pytest.mark.parametrize(
    ("setback", "text"),
    [
        (NoProfiler(), "spec.profiling.mode is Off, so no profiler is in the pods"),
        (StoppedTooSoon(ended=True), "the job has ended before its trace was complete"),
        (StoppedTooSoon(ended=False), "the job was stopped or moved before its trace was complete"),
        (TookTooLong(600.0, None), "no trace within 10 min: traces of other jobs came first"),
        (TookTooLong(600.0, "pod-1 is silent"), "no trace within 10 min: pod-1 is silent"),
        (TookTooLong(600.0, ""), "no trace within 10 min"),
    ],
)
def test_what_is_said_of_a_trace_that_is_not_taken(setback: TraceSetback, text: str) -> None:
    assert setback.text() == text


def test_what_the_user_can_do_about_a_trace_is_said() -> None:
    assert "ID, ID:RANK or ID:all" in InvalidRequest().text()
    assert "ask again, with another id" in NothingToTrace().text()
