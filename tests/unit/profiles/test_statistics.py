"""Quantiles and the test for a shift."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.statistics import median, quantile, shifted, stationary_from

finite = st.floats(-1e12, 1e12)


@given(st.lists(finite, min_size=1, max_size=50), st.floats(0, 1))
def test_quantiles_stay_inside(values: list[float], share: float) -> None:
    assert min(values) <= quantile(sorted(values), share) <= max(values)


@given(st.lists(finite, min_size=1, max_size=50))
def test_the_median_is_the_median(values: list[float]) -> None:
    assert median(values) == pytest.approx(statistics.median(values), rel=1e-9, abs=1e-3)


def noisy(count: int, mean: float, spread: float, seed: int) -> list[float]:
    source = random.Random(seed)
    return [source.gauss(mean, mean * spread) for _ in range(count)]


def test_noise_is_no_shift() -> None:
    assert sum(shifted(noisy(30, 0.2, 0.1, seed)) for seed in range(200)) <= 4


def test_a_shift_is_seen() -> None:
    seen = [shifted(noisy(15, 0.2, 0.05, seed) + noisy(15, 0.24, 0.05, seed + 1000)) for seed in range(200)]
    assert sum(seen) >= 196


def test_single_slow_steps_are_no_shift() -> None:
    values = noisy(30, 0.2, 0.01, 1)
    values[20] = values[28] = 5.0
    assert not shifted(values)
    assert stationary_from(values) == 0


def test_a_small_shift_does_not_matter() -> None:
    assert not shifted([1.0] * 10 + [1.04] * 10)
    assert shifted([1.0] * 10 + [1.06] * 10)


def test_too_few_values_prove_nothing() -> None:
    assert not shifted([1.0, 1.0, 9.0, 9.0])


def test_the_warm_up_is_cut_off() -> None:
    start = stationary_from([9.0, 7.0, 5.0, 4.0] + [1.0] * 28)
    assert start is not None and start <= 8
    start = stationary_from([3.0] * 20 + [1.0] * 20)
    assert start is not None and 15 <= start <= 20
    assert stationary_from([1.0] * 30) == 0


def test_a_drifting_series_has_no_stationary_part() -> None:
    assert stationary_from([1.5**-number for number in range(24)]) is None


@pytest.mark.parametrize(
    ("values", "start"),
    [
        ([0.167, 0.084, 0.084, 0.083], 1),
        ([0.33, 0.167, 0.084, 0.084, 0.083], 2),
        ([1.0, 1.1, 0.95, 1.05], 0),
        ([3.0, 1.0], 1),
        ([1.0], 0),
        ([], 0),
    ],
)
def test_a_ramp_is_cut_off_where_readings_are_few(values: list[float], start: int) -> None:
    assert stationary_from(values) == start


def test_a_short_ramp_is_cut_off_although_medians_do_not_see_it() -> None:
    ramp = [6.5, 6.5, 4.82, 3.76, 2.0, 1.92]
    assert stationary_from([*ramp, *[1.61, 1.6, 1.61, 1.6] * 3]) == len(ramp)
