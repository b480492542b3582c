"""Robust statistics of a few dozen readings, and a test for a shift. Quantiles are interpolated linearly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

# For a normal distribution: standard deviation per median absolute deviation, and standard error of the median per
# standard error of the mean.
_MAD_TO_SD: Final = 1.4826
_MEDIAN_ERROR: Final = 1.2533
# A shift must be both significant (in standard errors) and large enough to matter (relative).
_SIGNIFICANT: Final = 3.0
_MATERIAL: Final = 0.05
_MIN_HALF: Final = 3  # readings in each half
# The same of a few readings, whose spread says little: less in one of them shifts their mean by some percent.
_MATERIAL_OF_FEW: Final = 0.2


def quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of at least one value in ascending order; never outside their range."""
    below, above, part = _between(len(ordered), share)
    low, high = ordered[below], ordered[above]
    if low == high:
        return low
    return min(low + (high - low) * part, high)


@lru_cache(maxsize=1024)
def _between(count: int, share: float) -> tuple[int, int, float]:
    """Indexes of the two of `count` ordered values around a quantile, and its relative distance from the first."""
    position = share * (count - 1)
    below = math.floor(position)
    return below, min(below + 1, count - 1), position - below


def median(values: Sequence[float]) -> float:
    """The median of at least one value."""
    return quantile(sorted(values), 0.5)


def shifted(values: Sequence[float]) -> bool:
    """Whether the later half of a series has another level than the earlier half.

    Compares the halves' medians with their standard error from the median absolute deviation within halves, so that
    single slow readings (a checkpoint, a garbage collection) are no shift. False for too few values.
    """
    half = len(values) // 2
    if half < _MIN_HALF:
        return False
    early, late = values[:half], values[half:]
    before, after = median(early), median(late)
    change = abs(after - before)
    if change <= _MATERIAL * max(abs(before), abs(after)):
        return False
    residuals = [abs(value - before) for value in early] + [abs(value - after) for value in late]
    sd = _MAD_TO_SD * median(residuals)
    error = _MEDIAN_ERROR * sd * math.sqrt(1.0 / len(early) + 1.0 / len(late))
    return change > _SIGNIFICANT * error


def stationary_from(values: Sequence[float]) -> int | None:
    """Index from which a series is stationary; None if even its last readings shift.

    The start advances by eighths until no shift is left, and then past leading readings that differ from the rest: a
    short ramp changes means but not medians. The part before is the warm-up.
    """
    count = len(values)
    if count < 2 * _MIN_HALF:
        return _past_ramp(values, 0, _MATERIAL_OF_FEW) if count else 0
    step = max(1, count // 8)
    start = 0
    while count - start >= 2 * _MIN_HALF:
        if not shifted(values[start:]):
            return _past_ramp(values, start)
        start += step
    return None if start else 0


def _past_ramp(values: Sequence[float], start: int, material: float = _MATERIAL) -> int:
    """The index after the leading readings that differ significantly from the median of the later half."""
    rest = values[start + (len(values) - start) // 2 :]
    level = median(rest)
    spread = _MAD_TO_SD * median([abs(value - level) for value in rest])
    limit = max(material * abs(level), _SIGNIFICANT * spread)
    while start < len(values) - len(rest) and abs(values[start] - level) > limit:
        start += 1
    return start
