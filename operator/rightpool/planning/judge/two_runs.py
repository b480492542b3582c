"""Two runs of a program of which nothing more will be measured, such as before and after a change of it.

Unlike a place that is looked at again with every window, these are judged once, and by what was measured alone: nothing
was promised, and no money goes back and forth. How sure a mean is, is told by how repeats of its run differ, else by
parts of it (batch means: Law and Kelton, "Simulation modeling and analysis"): a few long ones, since windows side by
side are alike. A few repeats that happen to agree do not say that the program has no noise: they are taken to differ by
USUAL_SD at least, as in `verdict.tolerance`, and by what such windows of a job were seen to differ for longer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from rightpool.planning.judge.difference import Difference, compare
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.judge.verdict import BETTER_Z, NOISE_FLOOR, TOLERATED, UNDONE_Z, Rule, Verdict, does_nothing
from rightpool.profiles.steadiness import PRIOR_FREEDOM, doubt_of_ratio, quantile_of_t

USUAL_SD: Final = 0.02
"""By how much a run is usually off: standard deviation of the logarithm of its rate. On two busy cores it was 0.03 (12
pairs of equal runs), on two GPUs beside busy cores 0.04, on a GPU of its own less than 0.01."""
_PARTS: Final = 5
_FEWEST_REPEATS: Final = 3  # two say too little of how they differ
_LEAST_SD: Final = 1e-6  # windows that are all alike


class Repeats(NamedTuple):
    """The same two programs, run several times."""

    before: Sequence[float]
    """Units a second of each run of the first."""
    after: Sequence[float]
    """The same of the second."""
    in_turns: bool
    """Whether each run met the same machine as the one of the other program with its number."""


ONCE: Final = Repeats((0.0,), (0.0,), in_turns=False)
"""Nothing was repeated."""


def difference_of_runs(before: RateSeries, after: RateSeries, repeats: Repeats = ONCE) -> Difference:
    """By how much what a unit takes differs. `before` did something; both have three windows at least."""
    found = compare(before, after, None)
    if after.mean <= 0.0:
        return found
    counts = len(repeats.before), len(repeats.after)
    usual = USUAL_SD * math.sqrt(math.fsum(1.0 / count for count in counts)), PRIOR_FREEDOM
    sd, freedom = max(usual, _seen(before, after))
    found = replace(found, usual_sd=sd, usual_freedom=freedom)
    if min(counts) < _FEWEST_REPEATS or min(*repeats.before, *repeats.after) <= 0.0:
        parts = [_doubt_of_mean(one.rates) for one in (before, after)]
        sd, freedom = math.hypot(*(one for one, _ in parts)), math.fsum(freedom for _, freedom in parts)
        return replace(found, sd=max(sd, _LEAST_SD), freedom=freedom)
    early, late = ([math.log(rate) for rate in rates] for rates in (repeats.before, repeats.after))
    found = replace(found, measured=statistics.fmean(early) - statistics.fmean(late))
    if repeats.in_turns:
        sd, freedom = _doubt_of_repeats([one - other for one, other in zip(early, late, strict=True)]), counts[0] - 1.0
    else:
        sd, freedom = math.hypot(_doubt_of_repeats(early), _doubt_of_repeats(late)), min(counts) - 1.0
    return replace(found, sd=max(sd, _LEAST_SD), freedom=freedom)


def _seen(before: RateSeries, after: RateSeries) -> tuple[float, float]:
    """By how much two means of so many windows were seen to differ on one place, a standard deviation, and its degrees
    of freedom; 0 where none were. Longer spans than were seen are not taken to be less sure for that."""
    variation = after.variation
    if variation is None or not variation.spans:
        return 0.0, PRIOR_FREEDOM
    longest = variation.spans[-1].windows
    return doubt_of_ratio(variation, min(before.windows, longest), min(after.windows, longest), USUAL_SD)


def _doubt_of_repeats(logs: Sequence[float]) -> float:
    """Standard deviation of their mean."""
    return statistics.stdev(logs) / math.sqrt(len(logs))


def _doubt_of_mean(rates: Sequence[float]) -> tuple[float, float]:
    """Standard deviation of the mean, as a share of it, and its degrees of freedom."""
    parts = min(_PARTS, len(rates))
    ends = [len(rates) * number // parts for number in range(parts + 1)]
    means = [statistics.fmean(rates[first:last]) for first, last in pairwise(ends)]
    return statistics.stdev(means) / math.sqrt(parts) / statistics.fmean(means), parts - 1.0


def doubt(difference: Difference, z: float) -> float:
    """So many standard deviations of what was measured, by Student's t: as it differs by itself, or usually."""
    by_itself = quantile_of_t(z, difference.freedom) * difference.sd
    return max(by_itself, quantile_of_t(z, difference.usual_freedom) * difference.usual_sd)


def faster(difference: Difference) -> Verdict | None:
    """Surely, and by more than noise."""
    surely = max(NOISE_FLOOR, doubt(difference, UNDONE_Z))
    return Verdict.BETTER if difference.measured < -surely else None


def slower(difference: Difference) -> Verdict | None:
    """Surely, and likely by more than is tolerated."""
    least = max(math.log1p(TOLERATED) + doubt(difference, BETTER_Z), doubt(difference, UNDONE_Z))
    return Verdict.WORSE if difference.measured > least else None


def no_slower(difference: Difference) -> Verdict | None:
    """It is likely no slower by more than is tolerated."""
    return Verdict.SAME if difference.measured + doubt(difference, BETTER_Z) <= math.log1p(TOLERATED) else None


OF_TWO_RUNS: Final[tuple[Rule, ...]] = (does_nothing, faster, slower, no_slower)
"""What none of them answers is Open: more has to be measured."""
