"""The window: order, bounds, rejected samples, and that it never mixes runs of a Revision."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.window import Window


def sample(at: float, **fields: float) -> Sample:
    return Sample(at, {Field[name.upper()]: value for name, value in fields.items()})


def test_samples_are_kept_as_they_were() -> None:
    window = Window()
    first = Sample(10.0, {Field.CHIP_BUSY: 0.9, Field.STEPS: 5.0})
    second = Sample(20.0, {Field.CHIP_BUSY: 0.8, Field.POWER: 300.0}, frozenset({Field.POWER}))
    assert window.append(first)
    assert window.append(second)
    assert list(window.samples()) == [first, second]
    assert len(window) == 2
    assert window.newest == 20.0
    assert list(window.times) == [10.0, 20.0]
    assert list(window.column(Field.CHIP_BUSY)) == [0.9, 0.8]
    assert math.isnan(window.column(Field.POWER)[0])
    assert list(window.column(Field.CHIP_BUSY, 1)) == [0.8]
    assert window.derived() == window.derived(1) == {Field.POWER}
    assert window.derived(2) == frozenset()


def test_an_empty_window() -> None:
    window = Window()
    assert len(window) == 0 and window.newest is None and not list(window.samples())
    window.trim(100.0)
    assert window.version == 0


def test_old_and_repeated_samples_are_refused() -> None:
    window = Window()
    assert window.append(sample(10.0, chip_busy=0.5))
    version = window.version
    assert not window.append(sample(10.0, chip_busy=0.9))
    assert not window.append(sample(9.0, chip_busy=0.9))
    assert window.version == version
    assert list(window.column(Field.CHIP_BUSY)) == [0.5]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_missing(bad: float) -> None:
    window = Window()
    assert window.append(sample(10.0, chip_busy=bad, power=100.0))
    assert list(window.samples()) == [sample(10.0, power=100.0)]
    assert not window.append(sample(20.0, chip_busy=bad))
    assert not window.append(sample(bad, power=100.0))
    assert not window.append(Sample(30.0, {}))
    assert len(window) == 1


def test_processes_that_start_anew_start_the_window_anew() -> None:
    window = Window()
    window.append(sample(10.0, steps=100.0, step_seconds=0.2))
    window.append(sample(20.0, step_seconds=0.2))
    window.append(sample(30.0, steps=3.0, step_seconds=4.0))
    assert list(window.times) == [30.0]
    window.append(sample(40.0, steps=3.0))
    assert list(window.times) == [30.0, 40.0], "no step is no restart"


def test_a_returning_pod_is_no_restart() -> None:
    window = Window()
    window.append(sample(10.0, steps=100.0, pods=2.0))
    window.append(sample(20.0, steps=112.0, pods=1.0))
    window.append(sample(30.0, steps=110.0, pods=2.0))
    assert len(window) == 3, "the pod that was silent is two steps behind"
    window.append(sample(40.0, steps=119.0, pods=2.0))
    window.append(sample(50.0, steps=4.0, pods=1.0))
    assert list(window.times) == [50.0]
    window.append(sample(60.0, steps=3.0, pods=1.0))
    assert list(window.times) == [60.0], "the same pods never go back"


def test_it_is_bounded() -> None:
    window = Window(capacity=3)
    for at in range(10):
        window.append(sample(float(at), power=float(at)))
    assert list(window.times) == [7.0, 8.0, 9.0]
    with pytest.raises(ValueError, match="at least 1"):
        Window(0)


def test_trimming() -> None:
    window = Window()
    for at in range(5):
        window.append(sample(float(at), power=1.0))
    version = window.version
    window.trim(2.0)
    assert list(window.times) == [2.0, 3.0, 4.0]
    assert window.version == version + 1
    window.trim(1.0)
    assert window.version == version + 1
    window.trim(99.0)
    assert window.newest is None


def test_ten_thousand_jobs_fit() -> None:
    window = Window()
    few = list(Field)[:20]  # as many as most sources know
    for at in range(31):
        window.append(Sample(float(at), dict.fromkeys(few, 1.0 + at)))
    assert sum(sys.getsizeof(part) for part in (window, window._cells)) < 7_000, "bytes: 70 MB for 10,000"


def test_a_field_that_appears_later_is_missing_before() -> None:
    window = Window()
    window.append(Sample(1.0, {Field.POWER: 300.0}, frozenset({Field.POWER})))
    window.append(Sample(2.0, {Field.STEPS: 5.0, Field.CLOCK: 0.5}, frozenset({Field.CLOCK})))
    assert [dict(one.values) for one in window.samples()] == [{Field.POWER: 300.0}, {Field.STEPS: 5, Field.CLOCK: 0.5}]
    assert window.derived() == {Field.POWER, Field.CLOCK} and window.derived(1) == {Field.CLOCK}
    assert math.isnan(window.column(Field.CLOCK)[0]) and len(window.column(Field.XID, 1)) == 1
    columns = dict(window.columns())
    assert columns.keys() == {Field.POWER, Field.STEPS, Field.CLOCK}
    assert columns[Field.STEPS][1] == 5.0 and math.isnan(columns[Field.STEPS][0])
    assert all(math.isnan(value) or value in (5.0, 0.5) for [value] in dict(window.columns(1)).values())


samples = st.builds(
    Sample,
    st.floats(0, 1000),
    st.dictionaries(st.sampled_from(list(Field)), st.floats(allow_nan=True, allow_infinity=True), max_size=5),
    st.frozensets(st.sampled_from(list(Field)), max_size=3),
)


@given(st.lists(samples, max_size=40), st.integers(1, 10))
def test_order_bound_and_no_mixing_hold_for_any_stream(stream: list[Sample], capacity: int) -> None:
    window = Window(capacity)
    for entry in stream:
        window.append(entry)
    times = list(window.times)
    assert times == sorted(set(times))
    assert len(times) <= capacity
    if all(Field.PODS not in entry.values for entry in stream):
        steps = [value for value in window.column(Field.STEPS) if value == value]
        assert steps == sorted(steps), "steps that go down belong to another run"
    offered: dict[float, list[Sample]] = {}
    for entry in stream:
        offered.setdefault(entry.at, []).append(entry)
    for kept in window.samples():
        assert any(
            kept.values == {field: value for field, value in source.values.items() if math.isfinite(value)}
            and kept.derived == source.derived & set(kept.values)
            for source in offered[kept.at]
        ), "missing stays missing, and nothing is made up"
