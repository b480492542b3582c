"""Comparison of profiles within tolerances."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.likeness import SAME_RATIO, SAME_READING, alike, expected_range
from rightpool.profiles.profile import PackedReadings, Profile, Reading, Steadiness, build_profile
from rightpool.profiles.sample import Field, Quality, Sample
from tests.unit.profiles.windows import KEY, profile, window


def with_reading(made: Profile, field: Field, value: float) -> Profile:
    return replace(made, readings={**made.readings, field: Reading(value, value, value, Quality.MEASURED)})


BASE = profile(2, samples_per_second=1000.0, chip_busy=0.7, steps=100.0)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (BASE, True),
        (with_reading(BASE, Field.SAMPLES_PER_SECOND, 1019.0), True),
        (with_reading(BASE, Field.SAMPLES_PER_SECOND, 1021.0), False),
        (with_reading(BASE, Field.CHIP_BUSY, 0.709), True),
        (with_reading(BASE, Field.CHIP_BUSY, 0.72), False),
        (with_reading(BASE, Field.STEPS, 5.0), True),
        (with_reading(BASE, Field.INPUT_WAIT, 0.0), False),
        (replace(BASE, steadiness=Steadiness.STALE), False),
        (replace(BASE, pods=0), False),
        (replace(BASE, expected=2), False),
        (None, False),
    ],
)
def test_alike(other: Profile | None, same: bool) -> None:
    assert alike(BASE, other) is same
    assert alike(other, BASE) is same


def near(one: Reading | None, other: Reading | None) -> bool:
    if one is None or other is None:
        return one is other
    tolerance = max(SAME_READING * abs(other.value), SAME_RATIO if abs(other.value) <= 1.0 else 0.0)
    differences = [abs(one.value - other.value), abs(one.low - other.low) / 2, abs(one.high - other.high) / 2]
    return max(differences) <= tolerance


LEVELS = st.sampled_from([0.0, 0.4, 0.405, 0.42, 0.9, 1.0, 1.01, 1.02, 1.03, 50.0, 50.9, 51.1, 53.0])
READINGS = st.builds(Reading, LEVELS, LEVELS, LEVELS, st.sampled_from(Quality))
FIELDS = st.sampled_from([Field.CHIP_BUSY, Field.POWER, Field.STEPS, Field.CHECKPOINT_TIMESTAMP])


@given(st.dictionaries(FIELDS, READINGS), st.dictionaries(FIELDS, READINGS), st.booleans())
def test_profiles_are_alike_where_each_reading_is(
    one: dict[Field, Reading], other: dict[Field, Reading], packed: bool
) -> None:
    """All but the counters, and each field of either."""
    before = replace(BASE, readings=PackedReadings(other) if packed else other)
    expected = all(near(one.get(field), other.get(field)) for field in (Field.CHIP_BUSY, Field.POWER))
    assert alike(replace(BASE, readings=one), before) is expected


def test_absent_profiles_are_alike() -> None:
    assert alike(None, None)


def test_a_field_that_was_missing_is_outside_the_range() -> None:
    samples = window(31, 10.0, 1000.0, samples_per_second=10.0)
    bounds = samples.bounds(dict.fromkeys(dict(samples.columns()), (-math.inf, math.inf)))
    assert samples.within(bounds)
    samples.append(Sample(1310.0, {Field.STEPS: 131.0, Field.SAMPLES_PER_SECOND: 10.0, Field.TEMPERATURE: 60.0}))
    assert not samples.within(bounds)


@given(st.floats(1e-3, 1e6), st.floats(0.9, 1.1))
def test_a_sample_outside_the_range_is_noticed(rate: float, change: float) -> None:
    """Samples like those of a steady window are in its range, and samples beyond the tolerance are not."""
    samples = window(31, 10.0, 1000.0, samples_per_second=rate)
    built = build_profile(KEY, 1, samples, window=300.0, interval=10.0, expected_pods=1, now=1300.0)
    bounds = samples.bounds(expected_range(built))
    assert samples.within(bounds)
    samples.append(Sample(1310.0, {Field.STEPS: 131.0, Field.SAMPLES_PER_SECOND: rate * change}))
    if abs(change - 1.0) > 1.01 * SAME_READING:
        assert not samples.within(bounds)
    if abs(change - 1.0) < 0.99 * SAME_READING:
        assert samples.within(bounds)
