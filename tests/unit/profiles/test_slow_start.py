"""What a job does at first wherever it starts is known after two hours, and noise is seldom taken for it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.variation import MAX_RECENT, SlowStart, Variation
from rightpool.profiles.slow_start import known_before, slow_start, windows_after_start, with_start_seen
from rightpool.profiles.steadiness import counted
from rightpool.simulation.noise import NOISES

WINDOW = 300.0
COLD = [500.0] * 9 + [1000.0] * 15
RAMP = [1000.0 * min(1.0, 0.6 + 0.4 * (at + 0.5) / 12) for at in range(24)]


def seen(rates: Sequence[float], revision: int = 1, before: Variation | None = None, began: float = 0.0) -> Variation:
    """After these windows of a Revision that runs since `began`."""
    found = before
    for number, rate in enumerate(rates, 1):
        at = began + number * WINDOW
        found = with_start_seen(found, counted(found, revision, rate, at, WINDOW), began, WINDOW)
    assert found is not None
    return found


def test_what_comes_later_is_faster_than_all_of_a_slow_start() -> None:
    assert slow_start(COLD) == 9
    assert slow_start(RAMP) == 10
    assert slow_start([1000.0] * 24) == 0
    assert slow_start([500.0] * 13 + [1000.0] * 11) == 0, "more than half: nobody knows which of the two is usual"
    assert slow_start([500.0] * 4 + [1000.0] * 4 + [500.0] + [1000.0] * 15) == 0, "slow later, too"
    assert slow_start([900.0] * 9 + [1000.0] * 15) == 0, "hardly slower"
    assert slow_start([]) == 0


@pytest.mark.parametrize(("noise", "most"), [("white", 0.0), ("drift", 0.0), ("ar-10m", 0.05), ("neighbour", 0.15)])
def test_noise_is_seldom_taken_for_a_slow_start(noise: str, most: float) -> None:
    draw = np.random.default_rng(1)
    series = [NOISES[noise](draw, 24 * 30, 10.0).reshape(-1, 30).mean(axis=1).tolist() for _ in range(100)]
    assert np.mean([slow_start(rates) > 0 for rates in series]) <= most


@given(st.lists(st.floats(0.0, 1e12), max_size=24))
def test_at_most_half_of_the_windows_are_a_slow_start(rates: list[float]) -> None:
    assert 0 <= slow_start(rates) <= len(rates) // 2


def test_it_is_known_once_two_hours_are_over_and_stays_known_on_the_way() -> None:
    assert seen(COLD[:23]).slow_start is None
    found = seen(COLD)
    assert found.slow_start == SlowStart(9 * WINDOW, 4.5 * WINDOW, 1)
    later = seen([1000.0] * 20, before=found, began=MAX_RECENT * WINDOW)
    assert later.slow_start == found.slow_start
    # Another Revision that starts as slowly.
    again = seen(COLD, 2, later, 100 * WINDOW)
    assert again.slow_start == SlowStart(9 * WINDOW, 4.5 * WINDOW, 1)
    assert Variation.from_dict(again.to_dict()).slow_start == again.slow_start


def test_it_is_as_long_of_window_length_another_length() -> None:
    """An edit of profiling.window would make three quarters of an hour of nine minutes."""
    start = seen(COLD).slow_start
    assert start is not None
    assert [start.in_windows(length) for length in (60.0, WINDOW, 600.0, 7200.0)] == [45, 9, 5, 1]
    assert SlowStart.from_dict(replace(start, seconds=1234567.8).to_dict()).in_windows(1234567.8) == 1
    known = seen(COLD)
    minutes = counted(known, 1, 1000.0, known.as_of + 60.0, 60.0)
    assert (minutes.recent, minutes.spans) == ((1000.0,), ())
    assert minutes.slow_start == start


def test_a_start_that_is_not_slow_ends_it() -> None:
    fast = seen([1000.0] * MAX_RECENT, 2, seen(COLD), 100 * WINDOW)
    assert fast.slow_start is None


def test_what_was_counted_before_and_forgotten_hides_the_start() -> None:
    """An edit of profiling.window to twice as much a part of an hour after the start: of a slow start that is known it
    sees the last part, or none."""
    known = seen(COLD)
    for counted_before in (3, 12):
        began = 100 * WINDOW
        rates = [500.0] * min(9, counted_before) + [1000.0] * (counted_before - 9)
        found = seen(rates, 2, known, began)
        edited, length = found.as_of, 2 * WINDOW
        left = max(9 - counted_before, 0) // 2
        for number in range(1, MAX_RECENT + 1):
            rate = 500.0 if number <= left else 1000.0
            found = with_start_seen(found, counted(found, 2, rate, edited + number * length, length), began, length)
            found = Variation.from_dict(found.to_dict())
        assert found.slow_start == known.slow_start
        assert seen([1000.0] * MAX_RECENT, 3, found, 500 * WINDOW).slow_start is None, "the next one is seen whole"


def test_windows_before_a_repair_hide_the_start() -> None:
    """A fault throttled the first ones, which are not compared with what healthy chips do."""
    known, began = seen(COLD), 100 * WINDOW
    found: Variation | None = known
    for number in range(1, MAX_RECENT + 4):
        rate, throttled = (400.0, True) if number <= 3 else (1000.0, False)
        made = counted(found, 2, rate, began + number * WINDOW, WINDOW, throttled=throttled)
        found = with_start_seen(found, made, began, WINDOW)
    assert found is not None and len(found.recent) == MAX_RECENT
    assert found.slow_start == known.slow_start


def test_what_is_heard_of_long_after_a_start_is_none() -> None:
    late = counted(None, 1, 500.0, 100 * WINDOW, WINDOW)
    for number, rate in enumerate(COLD, 101):
        late = with_start_seen(late, counted(late, 1, rate, number * WINDOW, WINDOW), 0.0, WINDOW)
    assert late.slow_start is None


def test_a_revision_is_not_judged_by_a_part_of_its_own_noise() -> None:
    found = seen(COLD)
    assert known_before(found, 1) is None
    assert known_before(found, 2) == found.slow_start
    assert known_before(None, 2) is None


def test_what_is_left_of_a_slow_start_in_the_newest_windows_is_left_out() -> None:
    found = seen(COLD)
    assert windows_after_start(found, 0.0, WINDOW) == 15
    # An hour later only what may be left of it is: the newest 24 windows begin within it no more.
    hour = seen([1000.0] * 14, before=found, began=MAX_RECENT * WINDOW)
    assert windows_after_start(hour, 0.0, WINDOW) == MAX_RECENT
    assert windows_after_start(replace(found, slow_start=None), 0.0, WINDOW) == MAX_RECENT
    assert windows_after_start(found, None, WINDOW) == MAX_RECENT
    short = replace(found, recent=(500.0,) * 6)
    assert windows_after_start(short, found.as_of - 6 * WINDOW, WINDOW) == 6, "there is nothing else"
