"""Steadiness: how surely the mean of a few windows tells the rate of a job, given how its windows differ.

Readings within one window say little about that: evaluation, epochs, neighbours and sequence lengths last longer than a
window. So spans of 1, 3, 6 and 12 windows are compared with the spans right before them, on one Revision, and the mean
square V of the logarithm of their ratio is kept for each length. This is twice the Allan variance of the rate at that
length, and exactly what a move is judged by: how far two spans differ by themselves with nothing moved between them. It
holds for noise of any correlation time, and grows with the length where the rate drifts.

A mean of m windows then has the variance V(m) / 2, and two means of m and n windows differ by (V(m) + V(n)) / 2.

Where noise lasts, two spans side by side are alike, and V(m) is less than twice the variance of a mean. Two places have
no neighbours in common: see `variance_between_places`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from rightpool.api.estimate import Z80
from rightpool.api.variation import MAX_RECENT, SpanDifference, Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.profiles.profile import Reading

SPANS: Final = (1, 3, 6, 12)
"""Lengths that are compared, in windows."""
# Pairs are forgotten beyond so many: a day of windows of five minutes.
REMEMBERED: Final = 288.0
# Before anything is seen, the means of two windows of a job are taken to be off by this (standard deviation of the
# logarithm), and that counts as much as so many pairs.
PRIOR_SD: Final = 0.05
PRIOR_PAIRS: Final = 3.0
# It is what is usual of jobs, not an estimate from three pairs of this one: so many degrees of freedom.
PRIOR_FREEDOM: Final = 10.0
# What was counted is stored from so many pairs of windows on.
FIRST_KEPT: Final = 12.0
# The same of means over an hour or so.
HOURS_SD: Final = 0.18
# Readings of a window that tell something of their own, of some thirty.
INDEPENDENT_READINGS: Final = 6.0
GOES_ALONG: Final = 0.5
"""Share of the noise that is the program's own, as that of evaluations, and goes where it goes. The rest stays with the
place, as that of neighbours. Nobody knows how much."""
# By how much V may grow where the length doubles: from that of white noise to that of noise that lasts for some hours,
# which can't be told from a drift.
_GROWTH: Final = (0.5, 1.75)
# A span in which nothing was processed differs from others by no more than this factor.
MOST: Final = 20.0


@dataclass(frozen=True, slots=True)
class Pace:
    """The rate of a job by its newest windows."""

    rate: float
    """Units of work a second, the mean of the windows."""

    windows: int
    """How many."""


def counted(
    variation: Variation | None,
    revision: int,
    rate: float,
    at: float,
    window: float,
    unit: WorkUnit = WorkUnit.SAMPLES,
    *,
    throttled: bool = False,
) -> Variation:
    """With one window more, of `window` seconds. rate: its mean, units a second; at: its end, Unix seconds; throttled:
    whether a fault throttled the chips in it.

    What was measured long ago, before the operator was away, in another unit, in windows of another length, or before a
    fault began or was repaired is not compared with what is measured now.
    """
    variation = of_window_length(variation, window)
    spans = () if variation is None else variation.spans
    before: tuple[float, ...] = ()
    forgotten = False
    if variation is not None and variation.revision == revision:
        same = (variation.unit, variation.throttled) == (unit, throttled)
        before = variation.recent if same and at - variation.as_of <= SPANS[-1] * window else ()
        forgotten = variation.forgotten or len(before) < len(variation.recent)
    recent = (*before, rate)[-MAX_RECENT:]
    kept = {span.windows: span for span in spans}
    for length in SPANS:
        if len(recent) < 2 * length:
            break
        late, early = _mean(recent[-length:]), _mean(recent[-2 * length : -length])
        if late > 0.0 or early > 0.0:
            kept[length] = _added(kept.get(length), length, _difference(late, early))
    slow = None if variation is None else variation.slow_start
    lengths = tuple(kept[length] for length in sorted(kept))
    return Variation(revision, at, recent, lengths, unit, throttled, slow, window, forgotten)


def of_window_length(variation: Variation | None, window: float) -> Variation | None:
    """What holds of windows of so many seconds. What was counted of windows of another length is forgotten; how slowly
    the job starts is known in seconds."""
    if variation is None or _same_length(variation.window_seconds, window):
        return variation
    forgotten = variation.forgotten or bool(variation.recent)
    return replace(variation, recent=(), spans=(), window_seconds=window, forgotten=forgotten)


def _same_length(one: float, two: float) -> bool:
    """Whether both are stored as the same number."""
    return math.isclose(one, two, rel_tol=1e-5)


def variance_of_difference(
    variation: Variation | None, windows: int, expected: float = PRIOR_SD
) -> tuple[float, float]:
    """V for spans of so many windows, and its degrees of freedom. expected: by how much two means of that length are
    taken to be off before such spans were seen, a standard deviation of the logarithm.

    Where no spans of that length were seen, the longest shorter one stands in, and `expected` where that is more: a
    longer mean is not taken to be surer than it was seen to be.
    """
    prior = 2.0 * expected**2
    spans = () if variation is None else variation.spans
    fitting = [span for span in spans if span.windows <= max(windows, 1) and span.pairs > 0.0]
    if not fitting:
        return prior, PRIOR_FREEDOM
    span = fitting[-1]
    # Pairs of long spans overlap.
    pairs = max(span.pairs / span.windows, 1.0)
    asked = max(length for length in SPANS if length <= max(windows, 1))
    if span.windows < asked:
        usual = 2.0 * PRIOR_SD**2
        short = (pairs * span.variance + PRIOR_PAIRS * usual) / (pairs + PRIOR_PAIRS)
        return max(short, prior), PRIOR_FREEDOM
    return (pairs * span.variance + PRIOR_PAIRS * prior) / (pairs + PRIOR_PAIRS), pairs + PRIOR_FREEDOM


def variance_between_places(variation: Variation | None, windows: int, expected: float = PRIOR_SD) -> float:
    """V where one of the two spans is of another place: what is the place's own differs there as it does between spans
    that are far apart. windows, expected: as of `variance_of_difference`."""
    variance, _ = variance_of_difference(variation, windows, expected)
    return variance * (GOES_ALONG + (1.0 - GOES_ALONG) / (1.0 - _correlation_of_hours(variation)))


def _correlation_of_hours(variation: Variation | None) -> float:
    """Of the means of two longest spans, one right after the other; 0 until such spans were seen.

    Told by how V grows from half of that length, g: 1/2 for white noise, towards 2 for noise that lasts for longer
    than both. For noise whose correlation falls exponentially it is (2g - 1) / (5 - g) within 0.04.
    """
    spans = {} if variation is None else {span.windows: span for span in variation.spans}
    half, whole = spans.get(SPANS[-1] // 2), spans.get(SPANS[-1])
    if half is None or whole is None or half.variance <= 0.0:
        return 0.0
    least, most = _GROWTH
    growth = max(least, min(most, whole.variance / half.variance))
    return (2.0 * growth - 1.0) / (5.0 - growth)


def pace(
    variation: Variation | None, revision: int, unit: WorkUnit = WorkUnit.SAMPLES, most: int = MAX_RECENT
) -> Pace | None:
    """The rate of this Revision by its newest windows, at most so many; None where no window in this unit is known."""
    if variation is None or variation.revision != revision or variation.unit is not unit or not variation.recent:
        return None
    recent = variation.recent[-most:]
    rate = _mean(recent)
    return Pace(rate, len(recent)) if rate > 0.0 else None


def doubt_of_ratio(
    variation: Variation | None, before: int, after: int, expected: float = PRIOR_SD
) -> tuple[float, float]:
    """Standard deviation of the log of the ratio of two means of so many windows, and its degrees of freedom. expected:
    by how much such means are taken to be off before they were seen."""
    one, freedom = variance_of_difference(variation, before, expected)
    other, more = variance_of_difference(variation, after, expected)
    return math.sqrt((one + other) / 2.0), min(freedom, more)


def doubt_between_places(variation: Variation | None, before: int, after: int, expected: float = PRIOR_SD) -> float:
    """The first of `doubt_of_ratio` where the two means are of two places: see `variance_between_places`."""
    one = variance_between_places(variation, before, expected)
    return math.sqrt((one + variance_between_places(variation, after, expected)) / 2.0)


def doubt_of_rest(variation: Variation | None, windows: int) -> float:
    """Standard deviation of the log of what the rest of a job does, against the mean of so many windows.

    Both are means of a longest span or more; fewer windows are no surer. Until such spans have been seen, they are
    taken to be off by HOURS_SD.
    """
    hour, _ = variance_of_difference(variation, SPANS[-1], HOURS_SD)
    return math.sqrt(hour / 2.0 * (1.0 + min(1.0, SPANS[-1] / windows)))


def window_doubt(reading: Reading) -> float:
    """Standard deviation of the log of the mean of one window, by the spread of its readings alone.

    From the 80% interval of readings, which may reach down to 0, with a few of them taken to tell the same.
    """
    if reading.value <= 0.0:
        return 1.0
    return (reading.high - reading.low) / (2.0 * Z80 * reading.value * math.sqrt(INDEPENDENT_READINGS))


def quantile_of_t(z: float, freedom: float) -> float:
    """Student's t at the probability of the standard normal's z (Wallace, 1959). Within 1% from 5 degrees of freedom
    on; with fewer too much rather than too little, 12% with 2 at 0.5%, so that few observations never look surer than
    they are."""
    wallace = z * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0)
    return math.sqrt(freedom * math.expm1(wallace**2 / freedom))


def worth_keeping(stored: Variation | None, now: Variation | None) -> bool:
    """Whether enough has been counted since the stored numbers to store them for their own sake.

    From an hour of windows on with every doubling, until as many are counted as are remembered: a fleet in which
    nothing happens comes to rest. What a start has shown is stored at once: another process can't look at it again.
    With any other write they are stored anyway.
    """
    if now is None or (stored is not None and stored.as_of >= now.as_of):
        return False
    if _pairs(now) < FIRST_KEPT:
        return False
    if stored is None or not _same_length(stored.window_seconds, now.window_seconds):
        return True
    if _slow_seconds(stored) != _slow_seconds(now):
        return True
    return _pairs(now) >= 2.0 * max(_pairs(stored), FIRST_KEPT / 2.0)


def _slow_seconds(variation: Variation) -> int:
    return 0 if variation.slow_start is None else round(variation.slow_start.seconds)


def _pairs(variation: Variation) -> float:
    return variation.spans[0].pairs if variation.spans else 0.0


def _mean(rates: tuple[float, ...]) -> float:
    return sum(rates) / len(rates)


def _difference(late: float, early: float) -> float:
    """Log of the ratio of two rates, of which one may be 0."""
    if early <= late / MOST:
        return math.log(MOST)
    if late <= early / MOST:
        return -math.log(MOST)
    return math.log(late / early)


def _added(span: SpanDifference | None, length: int, difference: float) -> SpanDifference:
    if span is None:
        return SpanDifference(length, 1.0, difference**2)
    pairs = min(span.pairs + 1.0, REMEMBERED)
    return SpanDifference(length, pairs, span.variance + (difference**2 - span.variance) / pairs)
