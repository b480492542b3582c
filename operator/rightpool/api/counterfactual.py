"""The counterfactual: where a job would be without its moves, and what its work would cost there."""

from __future__ import annotations

from dataclasses import replace
from operator import not_
from typing import Annotated

from pydantic import Field

from rightpool.api.placement import Placement
from rightpool.api.record import Record
from rightpool.api.units import NO_MONEY, WORD, Balance, Count, Dollars, Quantity, UnixTime, write_money
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples


def _free(dollars: float) -> bool:
    return write_money(dollars) == NO_MONEY  # as it would be read


def _whole(factor: float) -> bool:
    return factor == 1.0


@value_object
class Counterfactual(Record):
    """Where a job would be without its moves. Absent while it is there.

    saved = savedBefore + dollars ÷ speed − (spent − spentBefore).
    """

    placement: Placement
    """Where it was before the first move that the user did not ask for, since the last edit."""

    cost_per_hour: Quantity | None = None
    """Dollars an hour there, at the pool's price of today. Absent where that is unknown."""

    per_hour: Annotated[Quantity, Field(exclude_if=not_)] = 0.0
    """The same for as many of the chips as are at work here now. Absent while none are, and where nothing compares."""

    since: UnixTime | None = None
    """When the job's steps had caught up here, later by as long as it was stopped since. From then dollars counts."""

    dollars: Annotated[Dollars, Field(exclude_if=_free)] = 0.0
    """What the hours of work here would have cost there."""

    faded: Annotated[Quantity, Field(exclude_if=_whole)] = 1.0
    """The job's rate ÷ what it would be, were its pool as it was at the verdict. Absent: 1."""

    speed: Quantity | None = None
    """Throughput there ÷ here. Absent until the move is verified."""

    predicted: Quantity | None = None
    """Throughput there ÷ here, as it was predicted before the move."""

    predicted_doubt: Quantity = 0.0
    """Standard deviation of the logarithm of that."""

    windows: Annotated[Count, Field(exclude_if=not_)] = 0
    """Windows that baseline was taken over. Absent: one."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What baseline counts: Samples or Steps. Absent: Samples."""

    baseline: Quantity | None = None
    """Throughput there around measuredAt, units a second; of a server the requests that a replica took there."""

    baseline_at: Annotated[UnixTime | None, Field(alias="measuredAt")] = None
    """The middle of the time in which that was measured, later by as long as the job was stopped since."""

    rate: Quantity | None = None
    """Throughput here around rateMeasuredAt, in the hours after since, units a second. Absent until the move is
    verified."""

    rate_at: Annotated[UnixTime | None, Field(alias="rateMeasuredAt")] = None
    """The middle of the time in which that was measured, later by as long as the job was stopped since."""

    rate_windows: Annotated[Count, Field(exclude_if=not_)] = 0
    """Windows that rate was taken over. Absent: one."""

    readings: Count = 0
    """How often speed was measured. Of later readings more is known of how the job varies and drifts."""

    spent_before: Annotated[Dollars, Field(exclude_if=_free)] = 0.0
    """Dollars spent before dollars began to count."""

    saved_before: Annotated[Balance, Field(exclude_if=_free)] = 0.0
    """Dollars saved before dollars began to count."""

    nearby: Annotated[Quantity | None, Field(alias="byWindows")] = None
    """Throughput there ÷ here by the windows right before the move and right after it. Absent where these are not
    known one by one."""

    baseline_age: Annotated[Quantity | None, Field(alias="measuredAge")] = None
    """How long the job had run there at measuredAt, seconds. Absent: longer than what may be a slow start."""

    speed_doubt: Annotated[Quantity, Field(exclude_if=not_)] = 0.0
    """Standard deviation of the logarithm of speed."""

    def uncounted(self) -> Counterfactual:
        """The same after the job has left: once it has come back, amounts are counted anew."""
        return replace(self, since=None, per_hour=0.0, dollars=0.0, spent_before=0.0, saved_before=0.0)

    def later(self, seconds: float) -> Counterfactual:
        """The same after the job was stopped for so long: neither it nor its rate went on meanwhile."""
        return replace(
            self,
            since=None if self.since is None else self.since + seconds,
            baseline_at=None if self.baseline_at is None else self.baseline_at + seconds,
            rate_at=None if self.rate_at is None else self.rate_at + seconds,
        )
