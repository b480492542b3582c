"""Samples counted over hours: thinned, through restarts, and without a counter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.track import KEPT, SPACING, Track


def fed(track: Track, counts: list[float], start: float = 0.0, step: float = 10.0, **values: float) -> Track:
    for number, count in enumerate(counts):
        extra = {Field[name.upper()]: value for name, value in values.items()}
        track.add(Sample(start + number * step, {Field.SAMPLES: count, Field.PODS: 1.0, **extra}), 1)
    return track


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=200), st.floats(1.0, 120.0))
def test_nothing_is_lost_by_thinning(gains: list[float], step: float) -> None:
    total, counts = 100.0, []
    for gain in gains:
        total += gain
        counts.append(total)
    track = fed(Track(), counts, step=step)
    assert track.total == pytest.approx(counts[-1] - counts[0], abs=1e-3)
    assert track.counter == counts[-1]
    end = (len(gains) - 1) * step
    if end <= KEPT:
        assert track.mean(0.0, end) == pytest.approx(track.total / end, abs=1e-3)
    assert len(track._at) <= 2 * KEPT / SPACING + 3


def test_a_restart_goes_on_from_the_last_save() -> None:
    track = fed(Track(), [0, 100, 200, 300], checkpoint_timestamp=10.0)
    assert track.total == 300 and track.since_save() == 200
    fed(track, [0, 50], start=40.0)
    assert track.total == 150, "100 were saved, and 50 came after"


def test_without_a_save_nothing_is_known_to_be_repeated() -> None:
    track = fed(fed(Track(), [0, 100, 200]), [0, 50], start=30.0)
    assert track.total == 250


def test_a_reading_without_all_pods_says_nothing() -> None:
    track = fed(Track(), [100, 200])
    track.add(Sample(20.0, {Field.SAMPLES: 100.0, Field.PODS: 1.0}), 2)
    assert track.total == 100


def test_rates_stand_for_a_counter_that_is_missing() -> None:
    track = Track()
    for at in (0.0, 10.0, 20.0, 1000.0):
        track.add(Sample(at, {Field.SAMPLES_PER_SECOND: 5.0}), 1)
    assert track.total == pytest.approx(2 * 50 + 60 * 5), "a gap is not filled"


def test_a_long_silence_forgets_no_count() -> None:
    track = fed(Track(), [0, 100, 200])
    fed(track, [200, 300], start=20.0 + 3 * KEPT)
    assert track.count(20.0) == pytest.approx(200.0, abs=1.0)
    assert track.total == 300.0


def test_when_the_steps_had_caught_up() -> None:
    track = fed(Track(), [0, 0, 0])
    assert track.reached(1) is None
    fed(track, [100], start=30.0)
    assert track.reached(50) == pytest.approx(25.0)
    assert track.reached(101) is None


@pytest.mark.parametrize("worked", [0, 30, 200])
def test_since_when_it_does_nothing(worked: int) -> None:
    """To the reading, however long ago."""
    track = fed(Track(), [10.0 * min(place, worked) for place in range(600)])
    assert track.idle_since(0.01) == pytest.approx(10.0 * worked, abs=10.0)
    assert Track().idle_since(0.1) is None
