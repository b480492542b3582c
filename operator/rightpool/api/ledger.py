"""The ledger: every decision with what it promised and what it delivered."""

from __future__ import annotations

from enum import StrEnum
from operator import not_
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.action import Action
from rightpool.api.placement import Placement
from rightpool.api.record import Record
from rightpool.api.units import WORD, Dollars, Figure, Quantity, Size, WholeUnixTime
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples

MAX_HISTORY: Final = 7
"""As many as a status of 12 KiB has room for."""
MAX_MESSAGES: Final = 2
"""Newest entries that keep their message: it is a third of an entry, and its numbers stand beside it."""


class Outcome(StrEnum):
    """How a Migration ended."""

    VERIFIED = "Verified"  # delivered, or at least no worse than before
    ROLLED_BACK = "RolledBack"  # undone
    FAILED = "Failed"  # neither proven nor undone: the job runs where it was moved to
    HELD = "Held"  # given up before anything was touched
    SUPERSEDED = "Superseded"  # the user's edit or the job's end came first
    CARRIED_OUT = "CarriedOut"  # what the user asked for was done; it promised nothing


def measured_cost_per_million(throughput: float | None, cost_per_hour: float | None) -> float | None:
    """Dollars per million units of work; None where one of them is unknown or nothing is processed."""
    if cost_per_hour is None or throughput is None or throughput <= 0:
        return None
    return cost_per_hour / 3600 / throughput * 1e6


def _is_one(count: int) -> bool:
    return count == 1


@value_object
class LedgerEntry(Record):
    """A decision with what it promised and what it delivered."""

    id: str
    """Decision id."""

    action: Annotated[Action, WORD]
    """Start, Move, Resize or Update."""

    source: Annotated[Placement, Field(alias="from")]
    """The placement before."""

    target: Annotated[Placement, Field(alias="to")]
    """The placement after."""

    started_at: WholeUnixTime
    """When the decision was taken."""

    finished_at: WholeUnixTime
    """When it was over."""

    outcome: Outcome
    """How it ended."""

    reason: str = ""
    """Why, in one CamelCase word."""

    message: Annotated[str, Field(exclude_if=not_)] = ""
    """The evidence in numbers. Absent of all but the newest two."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What throughput counts: Samples or Steps. Absent: Samples."""

    source_cost_per_hour: Annotated[Quantity | None, Field(alias="fromPerHour")] = None
    """Dollars an hour of `from`. Absent where the price is unknown."""

    target_cost_per_hour: Annotated[Quantity | None, Field(alias="toPerHour")] = None
    """Dollars an hour of `to`. Absent where the price is unknown."""

    predicted_throughput: Annotated[Quantity | None, Field(alias="predicted")] = None
    """Promised throughput, units a second."""

    baseline_throughput: Annotated[Quantity | None, Field(alias="baseline")] = None
    """Throughput before."""

    healthy_baseline_throughput: Annotated[Quantity | None, Field(alias="healthyBaseline")] = None
    """Throughput before, had no fault throttled its chips, by prediction. Absent: none did."""

    realised_throughput: Annotated[Quantity | None, Field(alias="realised")] = None
    """Delivered throughput."""

    source_chip: Annotated[str | None, Field(alias="fromChip")] = None
    """Key of the chips before in the catalog of then. Absent: not known."""

    target_chip: Annotated[str | None, Field(alias="toChip")] = None
    """Key of the chips after. Absent: not known."""

    source_work: Annotated[Figure | None, Field(alias="fromWork")] = None
    """Share of the step that was work on the chips before, 0-1; the rest was waiting. Absent: no counter told."""

    target_work: Annotated[Figure | None, Field(alias="toWork")] = None
    """The same after."""

    throttled: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether a fault throttled the chips of the new placement when realised was measured. Absent: no."""

    doubt: Figure | None = None
    """By how much realised ÷ baseline may be off: standard deviation of its logarithm, from how the windows differ. Of
    an Update only where the user changed the size alone; realised follows when it was measured."""

    attempts: Annotated[Size, Field(exclude_if=_is_one)] = 1
    """How often in a row the same was tried and held for the same reason; only the last time is kept."""

    lost_seconds: Figure = 0.0
    """Seconds from the end of the old Revision until the steps of the new one had caught up, over both ways, and those
    in which a program that hangs there has done nothing."""

    cost: Dollars = 0.0
    """What the move itself cost, dollars: what was paid in lostSeconds."""

    @property
    def resized(self) -> bool:
        """Whether the user or the fleet's plan changed the size alone, so that what was before compares with what is
        after."""
        return self.outcome is Outcome.CARRIED_OUT and self.doubt is not None

    @property
    def baseline_cost_per_million(self) -> float | None:
        """Dollars for a million units before."""
        return measured_cost_per_million(self.baseline_throughput, self.source_cost_per_hour)

    @property
    def predicted_cost_per_million(self) -> float | None:
        """Promised dollars for a million units, at the price of when the move left."""
        return measured_cost_per_million(self.predicted_throughput, self.target_cost_per_hour)

    @property
    def realised_cost_per_million(self) -> float | None:
        """Delivered dollars for a million units."""
        return measured_cost_per_million(self.realised_throughput, self.target_cost_per_hour)

    @property
    def hung(self) -> bool:
        """Whether the program did nothing there: that says nothing of the speed of a place, nor how long a restart
        takes."""
        return self.realised_throughput == 0.0

    @property
    def prediction_error(self) -> float | None:
        """Measured throughput against the predicted one: -0.1 is 10% slower. None where one of them is not known, and
        where the program hung."""
        if not self.predicted_throughput or self.realised_throughput is None or self.hung:
            return None
        return self.realised_throughput / self.predicted_throughput - 1.0
