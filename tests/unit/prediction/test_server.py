"""Lines of seconds by load: fitted, moved to another chip, and drawn from."""

import math

import numpy as np
import pytest

from rightpool.prediction.server import DRAWS, INSIDE_SD, OUTSIDE, LoadLine, fit

LOADS = np.array([1.0, 3.0, 8.0, 20.0])


def test_windows_at_several_loads_tell_both_parts() -> None:
    line = fit(LOADS, 0.010 + 0.001 * LOADS, np.full(4, 100.0), 32.0)
    assert (line.fixed, line.each) == pytest.approx((0.010, 0.001), rel=0.02)
    assert line.seen == 20.0
    assert line.capacity == pytest.approx(32 / 0.042, rel=0.02)


def test_one_load_tells_its_own_time_and_no_other() -> None:
    line = fit(np.array([8.0]), np.array([0.02]), np.array([10.0]), 64.0)
    assert line.seconds(8.0) == pytest.approx(0.02, rel=0.02)
    assert line.sd(8.0) == pytest.approx(INSIDE_SD, abs=0.03)
    assert line.sd(64.0) > 0.4


def test_seconds_above_what_was_seen_are_less_certain() -> None:
    line = fit(LOADS, 0.010 + 0.001 * LOADS, np.full(4, 100.0), 64.0)
    assert line.sd(20.0) < line.sd(30.0) < line.sd(40.0)
    assert line.sd(40.0) == pytest.approx(OUTSIDE * line.off, rel=0.05)
    assert line.off == pytest.approx(INSIDE_SD / math.sqrt(2.0), rel=0.01)  # two windows more than a line has ends
    draws = line.draws()
    times = np.log(draws.fixed + draws.each * 64.0)
    assert np.std(times) == pytest.approx(line.sd(64.0), rel=0.25)
    assert len(times) == DRAWS


def test_windows_without_numbers_do_not_count() -> None:
    loads = np.append(LOADS, [np.nan, 5.0, 7.0])
    seconds = np.append(0.010 + 0.001 * LOADS, [0.5, np.nan, 0.0])
    found = fit(loads, seconds, np.full(7, 100.0), 32.0)
    assert found == fit(LOADS, 0.010 + 0.001 * LOADS, np.full(4, 100.0), 32.0)


@pytest.mark.parametrize("stays", [0.0, 0.5, 1.0])
def test_a_faster_chip_leaves_the_hosts_part(stays: float) -> None:
    here = LoadLine(0.01, 0.001, (1e-4, 1e-4, 0.0), 32.0, 32.0)
    there = here.elsewhere(2.0, 0.2, stays)
    assert there.each == 0.0005
    assert there.fixed == pytest.approx(0.01 * (stays + (1 - stays) / 2))
    assert there.sd(32.0) > here.sd(32.0)
    assert (there.sd(1.0) > here.sd(1.0) + 0.02) == (stays < 1.0)
