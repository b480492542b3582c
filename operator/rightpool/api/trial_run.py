"""A trial that is under way."""

from __future__ import annotations

from operator import not_
from typing import Annotated

from pydantic import Field

from rightpool.api.placement import Placement
from rightpool.api.record import INLINE, Record
from rightpool.api.units import HOUR, Count, Dollars, Seconds, Size, UnixTime
from rightpool.api.value_object import value_object


@value_object
class TrialRun(Record):
    """A ProfiledJob of its own, which runs the program of another one elsewhere for some minutes."""

    number: Size
    """N of the ProfiledJob `<job>-t<N>`."""

    placement: Annotated[Placement, INLINE]
    """Where, and how big it is."""

    since: UnixTime
    """When it was decided on."""

    measures: Seconds
    """Seconds that are measured."""

    cost_per_hour: Dollars | None = None
    """Dollars for its chips. Absent where no price is known."""

    vendor: str | None = None
    """Whose variant of the program is run. Absent: none is."""

    chip: str | None = None
    """Key of its chips in the catalog. Absent: not known."""

    load: Annotated[Count, Field(exclude_if=not_)] = 0
    """Requests at once, at most, that a server gets. Absent: it is none."""

    def spent(self, now: float) -> float:
        """Dollars for its chips since it was decided on; 0 where no price is known."""
        return (self.cost_per_hour or 0.0) * max(0.0, now - self.since) / HOUR
