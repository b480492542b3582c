"""What a job would do without its moves: the measured ratio and the predicted one, each by how sure it is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.counterfactual import Counterfactual
from rightpool.api.placement import Placement
from rightpool.planning.accounting.counterfactual import Level, speed
from rightpool.profiles.steadiness import counted

HOME = Placement("home", 4, 1)
WINDOW = 300.0


def there(measured: float = 1000.0, predicted: float | None = None, doubt: float = 0.05) -> Counterfactual:
    return Counterfactual(
        HOME,
        10.0,
        since=0.0,
        baseline=measured,
        baseline_at=-150.0,
        predicted=predicted,
        predicted_doubt=doubt,
        windows=1,
    )


def ratio(made: Counterfactual, rate: float, spread: float = 0.05, hours: float = 1.0) -> float:
    variation = None
    for number in range(48):
        variation = counted(variation, 2, rate * math.exp(spread * (-1) ** number), number * WINDOW, WINDOW)
    found = speed(made, Level(rate, 0.0), variation, WINDOW, hours * 3600.0)
    assert found is not None
    return found


def test_a_slow_quarter_of_an_hour_before_a_move_is_no_saving() -> None:
    """Of two pools of the same chip one was measured 25% slower, by a job that varies by 20%."""
    assert ratio(there(800.0, predicted=1.0), 1000.0, spread=0.2) == pytest.approx(1.0, abs=0.05)


def test_a_steady_job_is_believed() -> None:
    """A pool of throttled chips: the model knows nothing of it."""
    assert ratio(there(800.0, predicted=1.0), 1000.0, spread=0.001) == pytest.approx(0.8, abs=0.02)


def test_without_a_prediction_the_measurement_counts() -> None:
    assert ratio(there(800.0), 1000.0, spread=0.05) == pytest.approx(0.8, abs=0.01)


def test_the_mean_of_what_is_divided_by_is_not_the_inverse_of_its_mean() -> None:
    """Windows of e^±0.2: 1/r is larger in the mean than 1 over the mean r, by half of the variance of their ratio."""
    assert ratio(there(800.0), 1000.0, spread=0.2) == pytest.approx(0.8 * math.exp(0.4**2 / 2.0), rel=0.01)


@given(st.floats(1.0, 1e6), st.floats(1.0, 1e6), st.floats(0.01, 100.0), st.floats(0.0, 2.0), st.floats(0.0, 0.5))
def test_it_is_between_what_was_measured_and_what_was_predicted(
    before: float, after: float, predicted: float, doubt: float, spread: float
) -> None:
    found = ratio(there(before, predicted, doubt), after, spread)
    low, high = sorted((before / after, predicted))
    assert low * 0.999 <= found <= high * math.exp(2.0 * spread**2 + 0.01)
