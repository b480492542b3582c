"""Rate series: what a program does at one place, in windows one after the other, as numbers alone."""

from __future__ import annotations

from typing import Final

from rightpool.api.value_object import value_object
from rightpool.api.variation import Variation

FEWEST_WINDOWS: Final = 3
"""Fewer tell nothing of a place: one may be an evaluation."""
MOST_WINDOWS: Final = 24
"""A place is looked at for so many windows."""


@value_object
class RateSeries:
    """How fast a program is at one place. More is better."""

    mean: float
    """Units a second, over all windows that count."""
    windows: int = 1
    """How many these are."""
    rates: tuple[float, ...] = ()
    """The newest of these, one by one, the newest last; none where they are not known."""
    recent: tuple[float, ...] = ()
    """All newest windows there, also those that do not count, as of a slow start."""
    seconds: float = 300.0
    """How long a window is."""
    price: float | None = None
    """Dollars an hour. None: unknown."""
    variation: Variation | None = None
    """How such windows differ by themselves."""
    starting: bool = False
    """Whether it is slow as it is at first wherever it starts, so that later windows may be faster."""
    closed: bool = False
    """Whether windows count by their age, and none that comes after these."""

    @property
    def newest(self) -> float:
        """Units a second in the newest window that counts."""
        return self.rates[-1] if self.rates else self.mean
