"""What goes to and fro is told once in each direction, and then not until it has held still for a while."""

from __future__ import annotations

from rightpool.api.conditions import Condition, ConditionType, Reason
from rightpool.runtime.lull import LULL_SECONDS, Lull

MEASURED = ("True", Reason.MEASURED)
STALE = ("False", Reason.STALE_TELEMETRY)
UNREADABLE = ("Unknown", Reason.TELEMETRY_UNAVAILABLE)


class Job:
    """Writes what is not held, as the operator does."""

    def __init__(self, verdict: tuple[str, Reason], kind: ConditionType = ConditionType.PROFILED) -> None:
        self.lull, self.now, self.kind = Lull(), 0.0, kind
        self.said = self.condition(verdict)

    def condition(self, verdict: tuple[str, Reason]) -> Condition:
        status, reason = verdict
        return Condition(self.kind.value, status, reason.value)  # type: ignore[arg-type]

    def finds(self, verdict: tuple[str, Reason], after: float = 30.0) -> bool:
        """Whether it is told."""
        self.now += after
        found = self.condition(verdict)
        if self.lull.holds("uid", [self.said], [found], self.now):
            return False
        self.lull.told("uid", [self.said], [found], self.now)
        self.said = found
        return True


def test_once_in_each_direction() -> None:
    job = Job(MEASURED)
    assert job.finds(STALE)
    assert job.finds(MEASURED)
    assert [job.finds(STALE) for _ in range(5)] == [False] * 5


def test_what_lasts_is_told_after_the_lull() -> None:
    job = Job(MEASURED)
    assert job.finds(STALE) and job.finds(MEASURED)
    assert not job.finds(STALE, after=LULL_SECONDS - 1)
    assert job.finds(STALE, after=1)


def test_what_seldom_changes_is_always_told() -> None:
    job = Job(MEASURED)
    assert all(job.finds(verdict, after=LULL_SECONDS) for verdict in (STALE, MEASURED) * 4)


def test_another_verdict_is_told_at_once() -> None:
    job = Job(MEASURED)
    assert job.finds(STALE) and job.finds(MEASURED)
    assert job.finds(("False", Reason.WARMING_UP))


def test_that_measurements_cannot_be_read_is_told_each_time() -> None:
    job = Job(MEASURED)
    assert all(job.finds(verdict) for verdict in (UNREADABLE, MEASURED) * 4)


def test_where_a_job_is_is_told_each_time() -> None:
    job = Job(("True", Reason.RUNNING), ConditionType.PLACED)
    assert all(job.finds(verdict) for verdict in (("False", Reason.STARTING), ("True", Reason.RUNNING)) * 4)


def test_a_change_of_something_else_is_told_with_it() -> None:
    job = Job(MEASURED)
    assert job.finds(STALE) and job.finds(MEASURED)
    failed = Condition("Failed", "True", Reason.JOB_FAILED.value)
    assert not job.lull.holds("uid", [job.said], [job.condition(STALE), failed], job.now)
