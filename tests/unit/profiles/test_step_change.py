"""By how much a rate changed at one moment, told from windows that differ by themselves."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.step_change import step_change

CHANGE = 0.7


def wandering(draw: np.random.Generator, count: int, lasting: float, sd: float = 0.15) -> np.ndarray:
    """Noise with this correlation time in windows; 0 is white."""
    kept = math.exp(-1.0 / lasting) if lasting else 0.0
    level, found = sd * draw.standard_normal(), []
    for push in (sd * math.sqrt(1.0 - kept**2) * draw.standard_normal(count)).tolist():
        level = kept * level + push
        found.append(1000.0 * math.exp(level))
    return np.array(found)


def errors(lasting: float) -> tuple[float, float, float]:
    """Of noise that goes along with the job: how far the estimate is off, how far plain means are, and how far it says
    that it may be; roots of mean squares."""
    draw = np.random.default_rng(3)
    found = []
    for _ in range(300):
        rates = wandering(draw, 36, lasting)
        rates[12:] *= CHANGE
        change = step_change(rates[:12].tolist(), rates[12:].tolist(), 0.0)
        assert change is not None
        means = math.log(rates[12:].mean() / rates[:12].mean() / CHANGE)
        found.append((change.log - math.log(CHANGE), means, change.sd))
    off, by_means, expected = np.sqrt(np.mean(np.square(found), axis=0)).tolist()
    return off, by_means, expected


def test_where_noise_lasts_the_windows_next_to_the_change_tell_more() -> None:
    off, by_means, expected = errors(12.0)
    assert off < 0.8 * by_means
    assert off < expected < 2.0 * off, "noise of the place is counted in, of which there is none here"


def test_where_it_does_not_all_windows_tell_the_same() -> None:
    off, by_means, expected = errors(0.0)
    assert off == pytest.approx(by_means, rel=0.05)
    assert expected == pytest.approx(off, rel=0.3)


def test_a_drift_is_a_change_by_less_than_means_say() -> None:
    rates = 1000.0 * np.exp(-0.01 * np.arange(48))
    change = step_change(rates[:12].tolist(), rates[12:].tolist(), 0.0)
    assert change is not None
    means = math.log(rates[12:].mean() / rates[:12].mean())
    assert means < change.log * 1.4 < 0.0


def test_a_quiet_job_is_told_by_three_windows() -> None:
    change = step_change([1000.0] * 12, [600.0] * 3, 1.0)
    assert change is not None and change.log == pytest.approx(math.log(0.6))
    assert change.sd < 0.04


def test_nothing_processed_on_one_side_says_nothing() -> None:
    assert step_change([0.0] * 3, [1.0] * 3, 0.0) is None
    assert step_change([1.0] * 3, [0.0] * 3, 0.0) is None
    assert step_change([], [1.0], 0.0) is None


def test_pauses_are_no_noise_that_lasts() -> None:
    assert step_change([1000.0] * 5 + [300.0] + [1000.0] * 6, [1000.0] * 6, 1.0) is None


RATES = st.lists(st.floats(0.7, 1.3), min_size=1, max_size=36)


@given(before=RATES, after=RATES, apart=st.floats(0.0, 1000.0), scale=st.floats(1e-3, 1e9))
def test_whatever_is_measured_gives_a_change_and_the_way_back_its_opposite(
    before: list[float], after: list[float], apart: float, scale: float
) -> None:
    after = [scale * rate for rate in after]
    there = step_change(before, after, apart)
    back = step_change(after[::-1], before[::-1], apart)
    assert there is not None and back is not None
    assert math.isfinite(there.log) and there.sd > 0.0 and math.isfinite(there.sd) and there.freedom > 0.0
    assert back.log == pytest.approx(-there.log, rel=1e-4, abs=1e-4)
    assert back.sd == pytest.approx(there.sd, rel=1e-4)
