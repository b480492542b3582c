"""Noise: around 1, as variable as its name says, and the same for the same seed."""

import numpy as np
import pytest

from rightpool.simulation.noise import NOISES, drifting

STEP = 10.0
DAY = 8640


@pytest.mark.parametrize("name", NOISES)
def test_the_same_for_the_same_seed(name: str) -> None:
    one, same, other = (NOISES[name](np.random.default_rng(seed), DAY, STEP) for seed in (1, 1, 2))
    assert len(one) == DAY
    assert (one == same).all()
    assert (one != other).any()
    assert (one >= 0.0).all()


@pytest.mark.parametrize(
    ("name", "sd"), [("quiet", 0.005), ("white", 0.2), ("blocks-5m", 0.2), ("blocks-30m", 0.2), ("ar-10m", 0.15)]
)
def test_how_variable(name: str, sd: float) -> None:
    series = NOISES[name](np.random.default_rng(1), 7 * DAY, STEP)
    assert np.mean(series) == pytest.approx(1.0, abs=0.03)
    assert np.std(series) == pytest.approx(sd, rel=0.15)


def test_blocks_last_as_long_as_they_say() -> None:
    series = NOISES["blocks-10m"](np.random.default_rng(1), DAY, STEP)
    changes = np.flatnonzero(np.abs(np.diff(series)) > 0.2)
    assert (np.diff(changes) % 60 == 0).all()


def test_drift_is_four_percent_an_hour() -> None:
    series = drifting(np.random.default_rng(1), DAY, STEP)
    assert abs(np.log(series[-1] / series[0])) == pytest.approx(0.96, abs=0.05)


def test_pauses_process_nothing() -> None:
    series = NOISES["evaluation"](np.random.default_rng(1), DAY, STEP)
    assert 0.04 < np.mean(series == 0.0) < 0.21
