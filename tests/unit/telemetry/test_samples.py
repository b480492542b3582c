"""Which values of a source are taken, and which source comes first."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.sample import Field
from rightpool.telemetry.samples import admissible, sample_of
from rightpool.telemetry.sources.source import SourceReading

FIELDS = st.sampled_from([Field.CHIP_BUSY, Field.POWER, Field.STEP_SECONDS, Field.STEPS, Field.PODS])
VALUES = st.sampled_from([0.0, 1e-15, 0.5, 1.0, 1.01, 1.5, 300.0, -1.0, 1e19, math.inf, math.nan]) | st.floats()
READINGS = st.builds(SourceReading, st.none() | st.just(1000.0), st.dictionaries(FIELDS, VALUES), st.frozensets(FIELDS))


@given(st.lists(READINGS, max_size=4))
def test_each_field_is_of_the_first_that_measures_it_else_of_the_first_that_derives_it(
    readings: list[SourceReading],
) -> None:
    before = [dict(reading.values) for reading in readings]
    sample = sample_of(readings, 40.0)
    admitted = {
        field: [
            (field in reading.derived, value)
            for reading in readings
            if field in reading.values and (value := admissible(field, reading.values[field])) is not None
        ]
        for field in Field
    }
    values = {field: min(found, key=lambda one: one[0]) for field, found in admitted.items() if found}
    if sample is None:
        assert not values or all(reading.at is None for reading in readings)
    else:
        assert sample.values == {field: value for field, (_, value) in values.items()}
        assert sample.derived == {field for field, (derived, _) in values.items() if derived}
    assert all(repr(dict(reading.values)) == repr(kept) for reading, kept in zip(readings, before, strict=True))


def test_a_save_that_no_clock_can_have_dated_is_none() -> None:
    """A node's clock may be ahead; what a status can't even hold would keep the job from being stopped or moved."""
    ahead = {at: sample_of([SourceReading(1e9, {Field.CHECKPOINT_TIMESTAMP: at, Field.STEPS: 1.0})]) for at in SAVES}
    assert [sample is not None and Field.CHECKPOINT_TIMESTAMP in sample.values for sample in ahead.values()] == [
        True,
        True,
        False,
        False,
    ]


SAVES = (1e9 - 60.0, 1e9 + 90.0, 1e9 + 1e6, 1e18)
