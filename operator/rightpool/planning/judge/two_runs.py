"""Two runs of a program of which nothing more will be measured, such as before and after a change of it.

Unlike a place that is looked at again with every window, these are judged once, and by what was measured alone: nothing
was promised, and no money goes back and forth. How sure a mean is, is told by parts of its run (batch means: Law and
Kelton, "Simulation modeling and analysis"): a few long ones, since windows side by side are alike.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from rightpool.planning.judge.difference import Difference, compare
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.judge.verdict import BETTER_Z, NOISE_FLOOR, TOLERATED, UNDONE_Z, Rule, Verdict, does_nothing
from rightpool.profiles.steadiness import quantile_of_t

_PARTS: Final = 5
_LEAST_SD: Final = 1e-6  # windows that are all alike


def difference_of_runs(before: RateSeries, after: RateSeries) -> Difference:
    """By how much what a unit takes differs. `before` did something; both have three windows at least."""
    found = compare(before, after, None)
    if after.mean <= 0.0:
        return found
    doubts = [_doubt_of_mean(one.rates) for one in (before, after)]
    sd = max(math.hypot(*(one for one, _ in doubts)), _LEAST_SD)
    return replace(found, sd=sd, freedom=math.fsum(freedom for _, freedom in doubts))


def _doubt_of_mean(rates: Sequence[float]) -> tuple[float, float]:
    """Standard deviation of the mean, as a share of it, and its degrees of freedom."""
    parts = min(_PARTS, len(rates))
    ends = [len(rates) * number // parts for number in range(parts + 1)]
    means = [statistics.fmean(rates[first:last]) for first, last in pairwise(ends)]
    return statistics.stdev(means) / math.sqrt(parts) / statistics.fmean(means), parts - 1.0


def doubt(difference: Difference, z: float) -> float:
    """So many standard deviations of what was measured, by Student's t."""
    return quantile_of_t(z, difference.freedom) * difference.sd


def faster(difference: Difference) -> Verdict | None:
    """Surely, and by more than noise."""
    surely = max(NOISE_FLOOR, doubt(difference, UNDONE_Z))
    return Verdict.BETTER if difference.measured < -surely else None


def slower(difference: Difference) -> Verdict | None:
    """Surely, and by more than is tolerated."""
    surely = max(math.log1p(TOLERATED), doubt(difference, UNDONE_Z))
    return Verdict.WORSE if difference.measured > surely else None


def no_slower(difference: Difference) -> Verdict | None:
    """It is likely no slower by more than is tolerated."""
    return Verdict.SAME if difference.measured + doubt(difference, BETTER_Z) <= math.log1p(TOLERATED) else None


OF_TWO_RUNS: Final[tuple[Rule, ...]] = (does_nothing, faster, slower, no_slower)
"""What none of them answers is Open: more has to be measured."""
