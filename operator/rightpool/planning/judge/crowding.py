"""Crowding: what a pool leaves of the rate that is predicted for it, by how much of it is in use.

Jobs of one pool may share what no counter of theirs shows: storage, a network, the power of a rack. A move between
pools of the same chips is predicted to leave a job as fast as it is; what moves have delivered instead, and how much of
the pool was in use then, is kept with the pool. Who comes next finds at least that use, and gets what these got.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from rightpool.api.outcome import MoveOutcome
from rightpool.api.units import DAY

# How far a pool may be from what is predicted of it before anything is measured: standard deviation of the logarithm.
_USUAL: Final = 0.20
# By how much a pool changes in a day by itself; it grows with the root of the time.
_CHANGE_A_DAY: Final = 0.15
# Verdicts at this share of a use count for it, too.
_ALIKE: Final = 0.75
# What is missing counts in such steps: less is nothing.
_STEP: Final = 0.02


class Crowding(NamedTuple):
    """What a pool leaves, by its use; each holds up to the next one."""

    in_use: tuple[int, ...] = ()
    """Chips in use, the fewest first."""
    left: tuple[float, ...] = ()
    """Rate of a job ÷ what is predicted for it, at most 1."""

    def at(self, in_use: int) -> float:
        """What is left where so many chips are in use."""
        place = bisect_right(self.in_use, in_use)
        return self.left[place - 1] if place else 1.0


def crowding(outcomes: Mapping[str, Iterable[MoveOutcome]], now: float) -> dict[str, Crowding]:
    """By pool, only of those that leave a job less than is predicted. now: Unix seconds."""
    found = {pool: _of_pool(of_pool, now) for pool, of_pool in outcomes.items()}
    return {pool: made for pool, made in found.items() if min(made.left, default=1.0) < 1.0}


def _of_pool(outcomes: Iterable[MoveOutcome], now: float) -> Crowding:
    seen = []
    for outcome in outcomes:
        if outcome.ratio:
            age = max(now - outcome.finished_at, 0.0) / DAY
            variance = (outcome.doubt or 0.0) ** 2 + _CHANGE_A_DAY**2 * _power_of_two(age)
            seen.append((outcome.in_use, math.log(outcome.ratio), 1.0 / max(variance, 1e-6)))
    uses = tuple(sorted({use for use, _, _ in seen}))
    return Crowding(
        uses, tuple(_left([entry[1:] for entry in seen if _ALIKE * use <= entry[0] <= use]) for use in uses)
    )


def _left(alike: list[tuple[float, float]]) -> float:
    """By logarithms of ratios and their weights, and by what pools are usually like."""
    mean = math.fsum(log * weight for log, weight in alike) / (
        math.fsum(weight for _, weight in alike) + 1.0 / _USUAL**2
    )
    return math.exp(min(_STEP * round(mean / _STEP), 0.0))


def _power_of_two(days: float) -> float:
    """The largest that is not more, so that days change nothing from cycle to cycle; 0 below one."""
    return 0.0 if days < 1.0 else 2.0 ** math.floor(math.log2(days))
