"""A Profile: a job's behaviour over a window on one Revision."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from rightpool.profiles.sample import Field, Quality, RevisionKey
from rightpool.profiles.statistics import quantile, stationary_from
from rightpool.profiles.window import Window, bounds

# Optimizer steps that are always warm-up: compilation, allocator growth, cuDNN's search for algorithms.
WARM_UP_STEPS: Final = 5
# Share of the window that readings must cover before it may be believed.
FULL: Final = 0.8
# Readings without which nothing can be said about steadiness.
FEWEST: Final = 3

_FIELDS: Final = tuple(Field)
# Not a spread but a state: the newest reading is the value.
_STATE: Final = frozenset({Field.STEPS, Field.CHECKPOINT_TIMESTAMP, Field.CHECKPOINT_SECONDS, Field.PODS})
# What must fit at the worst moment: the highest reading is the value.
_PEAK: Final = frozenset({Field.MEMORY_USED})
# Counters: another value in every sample says nothing.
_RUNNING: Final = frozenset({Field.STEPS, Field.CHECKPOINT_TIMESTAMP})
# Where a reading has no spread of its own, this much (relative) is none.
_STILL: Final = 0.02
# Sums over pods: meaningless while a pod is silent.
_SUMS: Final = frozenset({Field.SAMPLES_PER_SECOND})


class Steadiness(StrEnum):
    """Whether the window may be believed."""

    STEADY = "Steady"
    WARMING_UP = "WarmingUp"  # too few steps, or the step time still drifts
    STALE = "Stale"  # the newest reading is too old
    ABSENT = "Absent"  # nothing was ever read


@dataclass(frozen=True, slots=True)
class Reading:
    """One field over the window: median, 10th and 90th percentile, and how it came about.

    Three kinds of fields have another value than the median: states (steps, checkpoints, pods) the newest; memory
    the highest, because that is what must fit; throughput the mean, because samples per dollar are samples over all the
    time that was paid, and because counters that move by whole steps make short rates jump around it.
    """

    value: float
    low: float
    high: float
    quality: Quality


@dataclass(frozen=True, slots=True)
class Profile:
    """readings: absent where missing. window: seconds asked for; covered: share of it that readings cover (0–1).

    pods: how many answered in the newest sample, of `expected`. newest: Unix seconds of the newest sample, None if
    there is none.
    """

    key: RevisionKey
    chips: int
    steadiness: Steadiness
    window: float
    covered: float
    newest: float | None
    pods: int
    expected: int
    readings: Mapping[Field, Reading]

    def value(self, field: Field) -> float | None:
        """The median of a field, None where it is missing."""
        reading = self.readings.get(field)
        return None if reading is None else reading.value

    @property
    def complete(self) -> bool:
        """Steady, every pod answered, and throughput known: good enough to decide on."""
        return (
            self.steadiness is Steadiness.STEADY
            and self.pods >= self.expected
            and Field.SAMPLES_PER_SECOND in self.readings
        )


def stale_after(interval: float) -> float:
    """Seconds after which the newest reading is too old, for readings every `interval` seconds."""
    return max(3.0 * interval, 30.0)


def build_profile(
    key: RevisionKey,
    chips: int,
    samples: Window,
    *,
    window: float,
    interval: float,
    expected_pods: int,
    now: float,
) -> Profile:
    """What the samples of one Revision say about the last `window` seconds before `now` (Unix seconds).

    The warm-up is left out: the first steps, and everything before the step time holds still. A reading speaks for the
    time since the one before, up to the age at which it would be stale; the profile is steady once such times cover
    enough of the window. While it is not, the readings are shown all the same.
    """
    times = samples.times
    first = next((index for index, at in enumerate(times) if at > now - window), len(times))
    begin = _after_warm_up(samples, first)
    steady = begin is not None
    usable = first if begin is None else begin
    covered = _coverage(times[usable:], window, interval) if begin is not None else 0.0
    newest = samples.newest
    if newest is None:
        steadiness = Steadiness.ABSENT
    elif now - newest > stale_after(interval):
        steadiness = Steadiness.STALE
    elif not steady or covered < FULL:
        steadiness = Steadiness.WARMING_UP
    else:
        steadiness = Steadiness.STEADY
    answered = samples.column(Field.PODS)
    pods = answered[-1] if answered else math.nan
    return Profile(
        key=key,
        chips=chips,
        steadiness=steadiness,
        window=window,
        covered=covered,
        newest=newest,
        pods=0 if math.isnan(pods) else int(pods),
        expected=expected_pods,
        readings=_readings(samples, usable, expected_pods),
    )


def usual(profile: Profile) -> tuple[array[float], array[float]]:
    """Bounds for `Window.within`: the profile's readings and as much again on either side as they spread.

    A sample within them is one like those that the profile was made from, and hardly changes what it says.
    """
    ranges = {}
    for field, reading in profile.readings.items():
        if field in _RUNNING:
            ranges[field] = (-math.inf, math.inf)
        else:
            slack = 0.0 if field is Field.PODS else max(reading.high - reading.low, _STILL * abs(reading.value))
            ranges[field] = (min(reading.low, reading.value) - slack, max(reading.high, reading.value) + slack)
    return bounds(ranges)


def _after_warm_up(samples: Window, first: int) -> int | None:
    """Index of the first sample after the warm-up, `first` or later; None while it lasts."""
    steps = samples.column(Field.STEPS)
    while first < len(steps) and steps[first] < WARM_UP_STEPS:  # False where missing
        first += 1
    series = samples.column(Field.STEP_SECONDS, first)
    present = [index for index, value in enumerate(series) if value == value]
    if not present:
        series = samples.column(Field.SAMPLES_PER_SECOND, first)
        present = [index for index, value in enumerate(series) if value == value]
    if not present:
        return first if len(steps) - first >= FEWEST else None
    if len(present) < FEWEST:
        return None
    start = stationary_from([series[index] for index in present])
    if start is None:
        return None
    return first + present[start] if start else first


def _coverage(times: Sequence[float], window: float, interval: float) -> float:
    """Share of the window that these readings speak for, 0–1."""
    if not times:
        return 0.0
    limit = stale_after(interval)
    spoken = min(interval, limit) + sum(min(after - before, limit) for before, after in pairwise(times))
    return min(1.0, spoken / window)


def _readings(samples: Window, start: int, expected_pods: int) -> dict[Field, Reading]:
    pods = samples.column(Field.PODS, start)
    derived = samples.derived(start)
    readings: dict[Field, Reading] = {}
    for field in _FIELDS:
        values = samples.column(field, start).tolist()
        if field in _SUMS:
            values = [value for value, answered in zip(values, pods, strict=True) if not answered < expected_pods]
        values = [value for value in values if value == value]
        if not values:
            continue
        newest = values[-1]
        values.sort()
        if field in _STATE:
            value = newest
        elif field in _PEAK:
            value = values[-1]
        elif field in _SUMS:
            value = sum(values) / len(values)
        else:
            value = quantile(values, 0.5)
        quality = Quality.DERIVED if field in derived else Quality.MEASURED
        if values[0] == values[-1]:
            readings[field] = Reading(value, value, value, quality)
        else:
            readings[field] = Reading(value, quantile(values, 0.1), quantile(values, 0.9), quality)
    return readings
