"""A promise and what was measured: how likely it is broken, and how much each counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.planning.judge.promise import BROKEN, BROKEN_SD, Promise

logs, doubts = st.floats(-5.0, 5.0), st.floats(1e-6, 2.0)


def density(value: float, variance: float) -> float:
    return math.exp(-(value**2) / (2.0 * variance)) / math.sqrt(2.0 * math.pi * variance)


def test_what_is_measured_tells_whether_it_is_broken_by_bayes_theorem() -> None:
    promise, measured, sd = Promise(0.1, 0.1), -0.3, 0.08
    kept = (1.0 - BROKEN) * density(measured - 0.1, 0.1**2 + sd**2)
    broken = BROKEN * density(measured - 0.1, 0.1**2 + BROKEN_SD**2 + sd**2)
    assert promise.broken(measured, sd) == pytest.approx(broken / (kept + broken))


@pytest.mark.parametrize(("sd", "least", "most"), [(0.01, 0.99, 1.0), (0.1, 0.3, 0.9), (0.4, 0.0, 0.15)])
def test_a_third_less_than_promised_is_proof_of_a_steady_job_alone(sd: float, least: float, most: float) -> None:
    assert least <= Promise(0.0, 0.05).broken(math.log(0.7), sd) <= most


@given(logs, logs, doubts, doubts, doubts)
def test_the_further_from_it_the_likelier_it_is_broken(
    promised: float, measured: float, nearer: float, doubt: float, sd: float
) -> None:
    promise = Promise(promised, doubt)
    near, far = (promise.broken(promised + away, sd) for away in (measured, measured * (1.0 + nearer)))
    assert 0.0 <= near <= far <= 1.0
    assert promise.broken(promised - measured, sd) == pytest.approx(near), "one way as the other"
    assert promise.broken(promised, sd) <= BROKEN


@given(logs, doubts, doubts, st.floats(1.0, 10.0))
def test_what_is_less_sure_counts_for_less(measured: float, doubt: float, sd: float, more: float) -> None:
    promise = Promise(0.0, doubt)
    assert 0.0 <= promise.weight(sd * more) <= promise.weight(sd) <= 1.0
    expected = promise.expected_weight(measured, sd)
    assert promise.weight(sd) - 1e-12 <= expected <= 1.0
