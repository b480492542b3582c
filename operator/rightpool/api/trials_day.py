"""What the trials of a job have cost in a day."""

from __future__ import annotations

from rightpool.api.record import Record
from rightpool.api.units import DAY, Count, Dollars
from rightpool.api.value_object import value_object


@value_object
class TrialsDay(Record):
    """A day of UTC, and the trials that were over in it."""

    day: Count
    """Days since 1970."""

    cost: Dollars
    """Dollars for the chips of these trials."""

    @classmethod
    def at(cls, now: float, cost: float = 0.0) -> TrialsDay:
        """The day of a Unix time."""
        return cls(int(now // DAY), cost)

    def and_before(self, before: TrialsDay | None) -> TrialsDay:
        """With what the same day has had before."""
        return self if before is None or before.day != self.day else TrialsDay(self.day, self.cost + before.cost)
