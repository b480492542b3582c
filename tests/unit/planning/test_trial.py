"""What a move brings whose outcome is not known, as trials are valued by it."""

from __future__ import annotations

import numpy as np
import pytest

from rightpool.planning.offers.trial import Stakes

# Dollars: of the work of the horizon, of that until a verdict, of a restart.
STAKES = Stakes(1000.0, 60.0, 2.0)


def by_sum(stakes: Stakes, mean: float, sd: float) -> float:
    """The same, outcome by outcome."""
    z = np.linspace(-8.0, 8.0, 200_001)
    x, likely = mean + sd * z, np.exp(-(z**2) / 2.0)
    saved = 1.0 - np.exp(x)
    brought = np.where(x < 0.0, stakes.work * saved, stakes.tried * saved - stakes.restart) - stakes.restart
    return float(likely @ brought / likely.sum())


@pytest.mark.parametrize("sd", [0.05, 0.25, 0.5])
@pytest.mark.parametrize("mean", [-0.4, -0.05, 0.0, 0.3])
def test_it_is_the_mean_over_all_that_may_come_of_it(mean: float, sd: float) -> None:
    found = STAKES.move(np.array([mean]), sd)
    assert found[0] == pytest.approx(by_sum(STAKES, mean, sd), rel=1e-3, abs=0.01)


def test_without_doubt_it_is_what_comes_of_it() -> None:
    better, worse = STAKES.move(np.array([-0.1, 0.1]), 0.0)
    assert better == pytest.approx(1000.0 * (1.0 - np.exp(-0.1)) - 2.0)
    assert worse == pytest.approx(60.0 * (1.0 - np.exp(0.1)) - 4.0)


@pytest.mark.parametrize("left", [0.0, 0.1, 0.2])
def test_what_is_shown_before_changes_the_choice_and_not_the_mean(left: float) -> None:
    """The values after all that a trial may show have the value of before as their mean."""
    mean, sd = -0.05, 0.25
    z = np.linspace(-6.0, 6.0, 4001)
    likely = np.exp(-(z**2) / 2.0)
    after = STAKES.move(mean + np.sqrt(sd**2 - left**2) * z, left)
    before = STAKES.move(np.array([mean]), sd)[0]
    assert likely @ after / likely.sum() == pytest.approx(before, abs=0.2)
    assert likely @ np.maximum(after, 0.0) / likely.sum() > before
