"""A Profile: a job's behaviour over a window on one Revision."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final, NamedTuple

from rightpool.api.traits import UNKNOWN_TRAITS, ModelTraits
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit
from rightpool.profiles.consistency import Inconsistency, inconsistencies
from rightpool.profiles.sample import PER_STEP, Field, Quality, RevisionKey
from rightpool.profiles.statistics import stationary_from, tenths
from rightpool.profiles.window import Window

# Optimizer steps that are always warm-up: compilation, allocator growth, cuDNN's search for algorithms.
WARM_UP_STEPS: Final = 5
# Share of the window that readings must cover for a steady profile.
FULL: Final = 0.8
# Hysteresis: a steady profile stays steady down to this share of the window, and until this multiple of the time after
# which a reading is too old. Late measurements on a busy machine do not change the verdict with every scrape.
STILL_FULL: Final = 0.7
STILL_FRESH: Final = 2.0
# From this share of the time on, processes of others take so much of a chip that its counters are not the job's.
SHARED: Final = 0.05
# Readings required to determine steadiness.
MIN_READINGS: Final = 3

# Fields that describe a state: their value is the newest reading.
_STATE: Final = frozenset(
    {
        Field.SAMPLES,
        Field.STEPS,
        Field.CHECKPOINT_TIMESTAMP,
        Field.CHECKPOINT_SECONDS,
        Field.PODS,
        Field.XID,
        Field.REPAIR,
        Field.UNCORRECTED_ERRORS,
        Field.MEMORY_RETRIES,
        Field.UNUSED_CHIPS,
    }
)
# Fields with a limit: their value is the highest reading.
_PEAK: Final = frozenset({Field.MEMORY_USED})
# Of all pods together: invalid if the reading of one is missing.
_SUMS: Final = frozenset({Field.SAMPLES_PER_SECOND, Field.SAMPLES, Field.STEPS_PER_SECOND})

_QUALITIES: Final = (Quality.MEASURED, Quality.DERIVED)
_NUMBERS: Final = 3  # of a reading: value, low, high
_PLACES: Final[dict[tuple[Field, ...], Mapping[Field, int]]] = {}


class Steadiness(StrEnum):
    """Whether decisions may use the window, and otherwise why not."""

    STEADY = "Steady"
    WARMING_UP = "WarmingUp"  # too few steps, or the step time still falls
    STALE = "Stale"  # the newest reading is too old
    ABSENT = "Absent"  # there was no reading yet


class Reading(NamedTuple):
    """One field over the window. A tuple, because a fleet has hundreds of thousands."""

    value: float
    """The median, except for three kinds of fields. States (steps, checkpoints, pods, health): the newest. Memory: the
    highest, because that must fit. Throughput: the mean, because cost per sample counts all the time that is paid,
    and because counters that increase by whole steps make rates over short times vary."""

    low: float
    """10th percentile."""

    high: float
    """90th percentile."""

    quality: Quality
    """Whether it is measured or derived."""


def _places(fields: tuple[Field, ...]) -> Mapping[Field, int]:
    """Where the numbers of each field begin. One for all profiles with these fields, in this order."""
    found = _PLACES.get(fields)
    if found is None:
        found = _PLACES[fields] = {one: _NUMBERS * number for number, one in enumerate(fields)}
    return found


class PackedReadings(Mapping[Field, Reading]):
    """The readings of a profile that is kept, in one array; each is made anew when it is asked for. Eighteen as tuples
    of floats take 3.1 kB, and packed 0.6: ten thousand jobs keep a profile each."""

    __slots__ = ("_derived", "_numbers", "_places")

    def __init__(self, readings: Mapping[Field, Reading]) -> None:
        self._places = _places(tuple(readings))
        self._numbers = array("d", [number for reading in readings.values() for number in reading[:_NUMBERS]])
        derived = (
            _QUALITIES.index(one.quality) << place
            for place, one in zip(self._places.values(), readings.values(), strict=True)
        )
        self._derived = sum(derived)

    def __getitem__(self, field: Field) -> Reading:
        found: Reading | None = self.get(field)
        if found is None:
            raise KeyError(field)
        return found

    def get(self, field: Field, default: Any = None, /) -> Any:
        """As of a dictionary. Mapping's own raises an error for each field that is missing."""
        place = self._places.get(field)
        if place is None:
            return default
        numbers, quality = self._numbers, _QUALITIES[self._derived >> place & 1]
        return Reading(numbers[place], numbers[place + 1], numbers[place + 2], quality)

    def rows(self) -> Iterator[tuple[Field, float, float, float]]:
        """Each field with its value, low and high: what is compared for every job needs no Reading."""
        numbers = self._numbers.tolist()
        return zip(self._places, numbers[::_NUMBERS], numbers[1::_NUMBERS], numbers[2::_NUMBERS], strict=True)

    def __contains__(self, field: object) -> bool:
        return field in self._places

    def __iter__(self) -> Iterator[Field]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@value_object
class Profile:
    """The behaviour of one Revision over a window."""

    key: RevisionKey
    """The Revision that was measured."""

    chips: int
    """Chips of the Revision."""

    steadiness: Steadiness
    """Whether decisions may use it, and otherwise why not."""

    window: float
    """Length of the window, seconds."""

    covered: float
    """Share of the window that readings cover, 0–1."""

    newest: float | None
    """Unix seconds of the newest sample; None if there is none."""

    pods: int
    """Pods in the newest sample."""

    expected: int
    """Pods of the Revision."""

    readings: Mapping[Field, Reading]
    """Readings by field; a missing field is absent."""

    traits: ModelTraits = UNKNOWN_TRAITS
    """What the program says of its model: precision, parameters, batch, parallelism."""

    set_aside: Mapping[Field, Inconsistency] = field(default_factory=dict)
    """Fields that were read, and are missing because they contradict others."""

    def value(self, field: Field) -> float | None:
        """The value of a field over the window (`Reading.value`); None if it is missing."""
        reading = self.readings.get(field)
        return None if reading is None else reading.value

    @property
    def unit(self) -> WorkUnit:
        """What its throughput counts. StepCount decides it; a window has readings in one unit alone."""
        steps = Field.STEPS_PER_SECOND in self.readings and Field.SAMPLES_PER_SECOND not in self.readings
        return WorkUnit.STEPS if steps else WorkUnit.SAMPLES

    @property
    def throughput(self) -> Reading | None:
        """Units of work a second; None where it was not measured."""
        samples = self.readings.get(Field.SAMPLES_PER_SECOND)
        return self.readings.get(Field.STEPS_PER_SECOND) if samples is None else samples

    @property
    def joules_per_unit(self) -> float | None:
        """Energy of all chips for a unit of work; None where power or throughput was not measured."""
        power, rate = self.value(Field.POWER), self.throughput
        return None if power is None or rate is None or rate.value <= 0.0 else power * self.chips / rate.value

    @property
    def shared(self) -> float | None:
        """Share of the time that processes of others take of a chip, where it is enough to distort what is measured."""
        others = self.value(Field.OTHERS)
        return others if others is not None and others >= SHARED else None

    @property
    def complete(self) -> bool:
        """Whether it is sufficient for decisions: steady, with readings of all pods, with a throughput, and of chips
        that nobody else uses."""
        return (
            self.steadiness is Steadiness.STEADY
            and self.pods >= self.expected
            and (Field.SAMPLES_PER_SECOND in self.readings or Field.STEPS_PER_SECOND in self.readings)
            and self.shared is None
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
    before: Profile | None = None,
    warm: bool = False,
) -> Profile:
    """Build the profile of the last `window` seconds before `now` (Unix seconds).

    The warm-up is excluded: the first steps, and all samples before the step time is stationary. A reading covers the
    time since the previous one, up to the age at which it would be stale. The profile is steady if readings cover
    enough of the window; otherwise it has the readings too. `before` is the previous profile, for hysteresis.
    `warm`: the warm-up is known to be over, so that a step time that falls is the job's own.
    """
    was_steady = before is not None and before.steadiness is Steadiness.STEADY
    times = samples.times
    first = next((index for index, at in enumerate(times) if at > now - window), len(times))
    begin = _after_warm_up(samples, first, warm=warm)
    steady = begin is not None
    usable = first if begin is None else begin
    covered = _coverage(times[usable:], window, interval) if begin is not None else 0.0
    newest = samples.newest
    if newest is None:
        steadiness = Steadiness.ABSENT
    elif now - newest > stale_after(interval) * (STILL_FRESH if was_steady else 1.0):
        steadiness = Steadiness.STALE
    elif not steady or covered < (STILL_FULL if was_steady else FULL):
        steadiness = Steadiness.WARMING_UP
    else:
        steadiness = Steadiness.STEADY
    column = samples.column(Field.PODS)
    pods = column[-1] if column else math.nan
    readings = _readings(samples, usable, expected_pods)
    aside = inconsistencies(readings, () if before is None else before.set_aside)
    if aside:
        readings = {name: reading for name, reading in readings.items() if name not in aside}
    return Profile(
        key=key,
        chips=chips,
        steadiness=steadiness,
        window=window,
        covered=covered,
        newest=newest,
        pods=0 if math.isnan(pods) else int(pods),
        expected=expected_pods,
        readings=readings,
        traits=samples.traits,
        set_aside=aside,
    )


def _after_warm_up(samples: Window, first: int, *, warm: bool) -> int | None:
    """Index of the first sample after the warm-up, `first` or later; None during the warm-up."""
    steps = samples.column(Field.STEPS)
    while first < len(steps) and steps[first] < WARM_UP_STEPS:  # False where missing
        first += 1
    series = samples.column(Field.STEP_SECONDS, first)
    sign, present = 1.0, [index for index, value in enumerate(series) if value == value]
    if not present:
        sign, series = -1.0, samples.column(Field.SAMPLES_PER_SECOND, first)  # rises as steps become faster
        present = [index for index, value in enumerate(series) if value == value]
    if not present:
        return first if len(steps) - first >= MIN_READINGS else None
    if len(present) < MIN_READINGS:
        # Steps that take longer than a few readings: there is nothing to compare, and they are no warm-up any more. Of
        # faster ones there are no rates until their counters are as old as the time that a rate is taken over.
        count = len(steps) - first
        slow = count >= MIN_READINGS and steps[first] >= WARM_UP_STEPS and steps[-1] - steps[first] < count
        return first if slow else None
    if warm:
        return first
    times = samples.times[first:]
    apart = (times[present[-1]] - times[present[0]]) / (len(present) - 1)
    start = stationary_from([sign * series[index] for index in present], max(1.0, samples.span / apart))
    if start is None:
        return None
    return first + present[start] if start else first


def _coverage(times: Sequence[float], window: float, interval: float) -> float:
    """Share of the window that these readings cover, 0–1."""
    if not times:
        return 0.0
    limit = stale_after(interval)
    covered = min(interval, limit) + sum(min(after - before, limit) for before, after in pairwise(times))
    return min(1.0, covered / window)


def _readings(samples: Window, start: int, expected_pods: int) -> dict[Field, Reading]:
    pods = samples.column(Field.PODS, start)
    derived = samples.derived(start)
    readings: dict[Field, Reading] = {}
    for name, values in samples.columns(start):
        if name in _SUMS:
            values = [value for value, count in zip(values, pods, strict=True) if not count < expected_pods]
        if (total := sum(values)) != total:  # one is missing
            values = [value for value in values if value == value]
        if not values:
            continue
        quality = Quality.DERIVED if name in derived else Quality.MEASURED
        newest = values[-1]
        values.sort()
        if values[0] == values[-1]:  # many never change: sizes, limits, states, counters of faults
            readings[name] = Reading(newest, newest, newest, quality)
            continue
        low, value, high = tenths(values)
        if name in _STATE:
            value = newest
        elif name in _PEAK:
            value = values[-1]
        elif name in _SUMS:
            value = min(max(sum(values) / len(values), values[0]), values[-1])  # a rounded sum may lie outside
        readings[name] = Reading(value, low, high, quality)
    readings.update(_per_step(readings))
    return readings


def _per_step(readings: Mapping[Field, Reading]) -> dict[Field, Reading]:
    """Bytes of a step over each link: the rate times the step time."""
    step = readings.get(Field.STEP_SECONDS)
    found = {}
    for rate, made in PER_STEP.items():
        reading = readings.get(rate)
        if reading is not None and step is not None:
            seconds = step.value
            found[made] = Reading(
                reading.value * seconds, reading.low * seconds, reading.high * seconds, Quality.DERIVED
            )
    return found
