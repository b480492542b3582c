"""Robust statistics of a few dozen readings, and a test for a warm-up. Quantiles are interpolated linearly.

The test is of times, which a warm-up makes longer: a series that rises does so for another reason. Readings may
overlap, as rates do that are taken over longer than readings are apart. Then neighbours are alike by what they share,
and a series of them wanders where there is nothing but noise. So each half of it counts as so many readings as fit into
its time side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

# For a normal distribution: standard deviation per median absolute deviation, and standard error of the median per
# standard error of the mean.
_MAD_TO_SD: Final = 1.4826
_MEDIAN_ERROR: Final = 1.2533
# A fall must be both significant (in standard errors) and large enough to matter (relative).
_SIGNIFICANT: Final = 3.0
_MATERIAL: Final = 0.05
_MIN_HALF: Final = 3  # readings in each half, side by side
# The same of a few readings, whose spread says little: less in one of them shifts their mean by some percent.
_MATERIAL_OF_FEW: Final = 0.2


def quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of at least one value in ascending order; never outside their range."""
    below, above, part = _between(len(ordered), share)
    low, high = ordered[below], ordered[above]
    if low == high:
        return low
    return min(low + (high - low) * part, high)


def tenths(ordered: Sequence[float]) -> tuple[float, float, float]:
    """The quantiles 0.1, 0.5 and 0.9, as `quantile` has them, which takes twice as long for them one by one."""
    (a, b, first), (c, d, second), (e, f, third) = _tenths(len(ordered))
    low, middle, high = ordered[a], ordered[c], ordered[e]
    return (
        min(low + (ordered[b] - low) * first, ordered[b]),
        min(middle + (ordered[d] - middle) * second, ordered[d]),
        min(high + (ordered[f] - high) * third, ordered[f]),
    )


@lru_cache(maxsize=1024)
def _tenths(count: int) -> tuple[tuple[int, int, float], ...]:
    return tuple(_between(count, share) for share in (0.1, 0.5, 0.9))


@lru_cache(maxsize=1024)
def _between(count: int, share: float) -> tuple[int, int, float]:
    """Indexes of the two of `count` ordered values around a quantile, and its relative distance from the first."""
    position = share * (count - 1)
    below = math.floor(position)
    return below, min(below + 1, count - 1), position - below


def median(values: Sequence[float]) -> float:
    """The median of at least one value."""
    return quantile(sorted(values), 0.5)


def fell(values: Sequence[float], overlap: float = 1.0) -> bool:
    """Whether the later half of a series is lower than the earlier half. overlap: see `stationary_from`.

    Compares the halves' medians with their standard error from the median absolute deviation within halves, so that
    single slow readings (a checkpoint, a garbage collection) are no fall. False for too few values.
    """
    half = len(values) // 2
    if _side_by_side(half, overlap) < _MIN_HALF:
        return False
    early, late = values[:half], values[half:]
    before, after = median(early), median(late)
    change = before - after
    if change <= _MATERIAL * max(abs(before), abs(after)):
        return False
    residuals = [abs(value - before) for value in early] + [abs(value - after) for value in late]
    sd = _MAD_TO_SD * median(residuals)
    error = _MEDIAN_ERROR * sd * math.sqrt(sum(1.0 / _side_by_side(len(part), overlap) for part in (early, late)))
    return change > _SIGNIFICANT * error


def _side_by_side(count: int, overlap: float) -> float:
    """How many readings without an overlap fit into the time of so many in a row."""
    return (count - 1) / overlap + 1.0


def stationary_from(values: Sequence[float], overlap: float = 1.0) -> int | None:
    """Index from which a series falls no more; None if even its last readings do.

    The start advances by eighths until no fall is left, and then past leading readings that are higher than the rest: a
    short ramp changes means but not medians. The part before is the warm-up. overlap: the time that a reading is taken
    over, in times between readings; at least 1.
    """
    count = len(values)
    if _side_by_side(count // 2, overlap) < _MIN_HALF:
        return _past_ramp(values, 0, _MATERIAL_OF_FEW) if count else 0
    step = max(1, count // 8)
    start = 0
    while _side_by_side((count - start) // 2, overlap) >= _MIN_HALF:
        if not fell(values[start:], overlap):
            return _past_ramp(values, start)
        start += step
    return None if start else 0


def _past_ramp(values: Sequence[float], start: int, material: float = _MATERIAL) -> int:
    """The index after the leading readings that are significantly higher than the median of the later half."""
    rest = values[start + (len(values) - start) // 2 :]
    level = median(rest)
    spread = _MAD_TO_SD * median([abs(value - level) for value in rest])
    limit = max(material * abs(level), _SIGNIFICANT * spread)
    while start < len(values) - len(rest) and values[start] - level > limit:
        start += 1
    return start
