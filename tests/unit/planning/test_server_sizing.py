"""Replicas of a server: the floor that the record asks for, and the fewest that hold its limit."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rightpool.api.status import PlaceSize
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.servers.floor import floors, usual_peaks
from rightpool.planning.offers.servers.sizing import (
    LatencyTarget,
    mean_load,
    sized,
    why_not_held,
)
from rightpool.prediction.columns import Floats
from rightpool.prediction.server import LoadLine
from rightpool.profiles.demand import SLOT

DAY = 5760  # windows
LINE = LoadLine(0.010, 0.001, (1e-3, 1e-3, 0.0), 32.0, 32.0)  # 762 requests/s in full batches
TARGET = LatencyTarget(0.080, 0.99)


def daily(days: int, mean: float = 2000.0) -> Floats:
    """A day's wave, from half to one and a half of the mean, in counts of windows."""
    wave = 1.0 + 0.5 * np.sin(np.arange(days * DAY) / DAY * 2 * math.pi)
    return np.random.default_rng(3).poisson(mean * wave * SLOT).astype(float)


def test_the_floor_follows_the_same_hour_of_days_before() -> None:
    counts = np.full(3 * DAY, 15.0)
    counts[DAY // 2] = 1500.0  # one window at noon of the first day
    asked = floors(counts)
    assert asked[DAY // 2 : DAY // 2 + 240].max() == 100.0  # and the hour after it
    assert asked[DAY + DAY // 2] == 100.0
    assert asked[DAY + DAY // 2 - 200] == 100.0
    assert asked[DAY + DAY // 4] == 1.0
    assert asked[0] == 0.0


def test_a_week_before_does_not_count_for_ever() -> None:
    counts = np.full(9 * DAY, 15.0)
    counts[DAY // 2] = 1500.0
    asked = floors(counts)
    assert asked[7 * DAY + DAY // 2] == 100.0
    assert asked[8 * DAY + DAY // 2] == 1.0


def test_the_usual_peak_knows_its_own_day() -> None:
    counts = np.full(2 * DAY, 15.0)
    counts[DAY + 100] = 1500.0
    assert usual_peaks(counts)[100] == 100.0
    assert usual_peaks(counts)[DAY // 2] == 1.0


@cache
def usual() -> PlaceSize:
    """Over two days."""
    found = sized("a", LINE, daily(2), TARGET)
    assert found is not None
    return found


def test_as_few_replicas_hold_as_the_peak_needs() -> None:
    found = usual()
    assert why_not_held(found, TARGET) is None
    assert 0.6 * LINE.capacity < found.servable < LINE.capacity
    assert found.replicas == math.ceil(usual_peaks(daily(2)).max() / found.servable)
    assert found.probability >= 0.9
    # The floor follows the day: cheaper than the peak's replicas all day.
    assert found.hours is not None and found.hours < found.replicas / 3600 / 2000.0 * 1e6
    assert found.spare > 1.0


def test_headroom_and_doubt_cost_replicas() -> None:
    roomy = sized("a", LINE, daily(2), replace(TARGET, headroom=1.5))
    vague = sized("a", replace(LINE, doubt=(0.04, 0.04, 0.0)), daily(2), TARGET)
    assert roomy is not None and vague is not None
    assert roomy.replicas >= math.floor(1.4 * usual().replicas)
    assert vague.servable < usual().servable


def test_what_can_not_be_held_says_why() -> None:
    assert sized("a", LINE, daily(1)[:100], TARGET) is None
    assert sized("a", LINE, np.full(DAY, np.nan), TARGET) is None
    shorter = replace(TARGET, limit=0.010)
    slow = sized("a", LINE, daily(1), shorter)
    assert slow is not None and _reason(slow, shorter) is RejectionReason.TOO_SLOW_ALONE
    assert _reason(usual(), replace(TARGET, most=2)) is RejectionReason.LATENCY_NOT_HELD
    assert _reason(replace(usual(), seen=2.0)) is RejectionReason.LOAD_EXTRAPOLATED


def _reason(size: PlaceSize, target: LatencyTarget = TARGET) -> RejectionReason | None:
    why = why_not_held(size, target)
    return None if why is None else why.reason


@pytest.mark.parametrize(("rate", "load"), [(1.0, 1.0), (500.0, 10.0), (2000.0, 32.0)])
def test_as_many_as_come_meanwhile_are_a_batch(rate: float, load: float) -> None:
    assert mean_load(LINE, rate) == pytest.approx(load, rel=0.01)
