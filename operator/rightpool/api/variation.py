"""How the rate of a job varies by itself, from one window to the next: a few numbers that survive a restart."""

from __future__ import annotations

import math
from operator import not_
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.model import ATOMIC
from rightpool.api.record import Record
from rightpool.api.units import WORD, Count, Figure, Quantity, UnixTime
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples

MAX_RECENT: Final = 24
MAX_SPANS: Final = 8
USUAL_WINDOW: Final = 300.0
"""Seconds that windows last where a status does not say so."""
# What is stored has six digits: a window is no longer for that.
_ROUNDED: Final = 1e-3


def _is_usual(seconds: float) -> bool:
    return seconds == USUAL_WINDOW


@value_object
class SpanDifference(Record):
    """By how much two spans of the same length differ, one right after the other, on one Revision."""

    windows: Count
    """Length of each of the two, in windows."""

    pairs: Quantity
    """How many such pairs were seen; old ones are forgotten slowly."""

    variance: Figure
    """Mean square of the logarithm of the ratio of their rates."""


@value_object
class SlowStart(Record):
    """How the job is slower at first wherever it starts, as with a cache that is cold then."""

    seconds: Quantity
    """How long."""

    lost_seconds: Figure
    """Time at its usual rate that does the work which is missing then, seconds."""

    revision: Count
    """The first of the Revisions since which every start that was looked at was slow."""

    def in_windows(self, window: float) -> int:
        """How many windows of so many seconds it touches."""
        return math.ceil(self.seconds / window - _ROUNDED)


@value_object
class Variation(Record):
    """What the newest windows of a Revision were measured at, and how much such measurements differ by themselves."""

    revision: Count
    """Which Revision `recent` is of."""

    as_of: UnixTime
    """End of the newest window."""

    recent: Annotated[tuple[Quantity, ...], Field(max_length=MAX_RECENT, json_schema_extra=ATOMIC)] = ()
    """Throughput of the newest windows, units a second, one after the other, the newest last."""

    spans: Annotated[tuple[SpanDifference, ...], Field(max_length=MAX_SPANS, json_schema_extra=ATOMIC)] = ()
    """Differences by length, the shortest first. They are the job's, whatever its Revision."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What `recent` counts: Samples or Steps. Absent: Samples."""

    throttled: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether a fault throttled the chips in all windows of `recent`. Absent: in none of them."""

    slow_start: SlowStart | None = None
    """How slowly the job starts. Absent: it does not, or it has not run for two hours anywhere."""

    window_seconds: Annotated[Quantity, Field(exclude_if=_is_usual)] = USUAL_WINDOW
    """How long the windows of `recent` and `spans` are. Absent: five minutes."""

    forgotten: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether earlier windows of this Revision were counted and do not compare with `recent`, as those of another
    length. Absent: none were."""
