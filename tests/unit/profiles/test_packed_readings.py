"""Packed readings are the readings: nobody can tell them from the dictionary that they were made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.likeness import alike, expected_range
from rightpool.profiles.profile import PackedReadings, Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey

NUMBERS = st.floats(allow_nan=False)
READINGS = st.dictionaries(
    st.sampled_from(Field), st.builds(Reading, NUMBERS, NUMBERS, NUMBERS, st.sampled_from(Quality))
)


@given(READINGS)
def test_they_are_the_mapping_that_they_were_made_of(readings: dict[Field, Reading]) -> None:
    packed = PackedReadings(readings)
    assert packed == readings
    assert list(packed.items()) == list(readings.items())
    assert list(packed.rows()) == [(field, *reading[:3]) for field, reading in readings.items()]
    for field in Field:
        assert packed.get(field) == readings.get(field)
        assert packed.get(field, 1) == readings.get(field, 1)
        assert (field in packed) == (field in readings)


@given(READINGS, READINGS)
def test_they_are_equal_where_the_readings_are(one: dict[Field, Reading], other: dict[Field, Reading]) -> None:
    assert (PackedReadings(one) == PackedReadings(other)) == (one == other)


POSITIVE = st.floats(0.0, 1e6)
MEASURED = st.dictionaries(
    st.sampled_from(Field), st.builds(Reading, POSITIVE, POSITIVE, POSITIVE, st.sampled_from(Quality))
)


@given(MEASURED, MEASURED)
def test_profiles_are_judged_the_same_with_them(one: dict[Field, Reading], other: dict[Field, Reading]) -> None:
    plain, new = profile(one), profile(other)
    packed = profile(PackedReadings(one))
    assert alike(new, packed) == alike(new, plain)
    assert alike(packed, new) == alike(plain, new)
    assert expected_range(packed) == expected_range(plain)
    for name in ("throughput", "complete", "unit", "joules_per_unit"):
        assert getattr(packed, name) == getattr(plain, name)


def profile(readings: dict[Field, Reading] | PackedReadings) -> Profile:
    return Profile(
        key=RevisionKey("ml", "bert", 1),
        chips=8,
        steadiness=Steadiness.STEADY,
        window=300.0,
        covered=1.0,
        newest=1.7e9,
        pods=1,
        expected=1,
        readings=readings,
    )
