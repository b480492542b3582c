"""Windows in which a program does nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.silence import doubt_of_pauses, silent_for, silent_windows, working

RATES = st.lists(st.sampled_from([0.0, 0.5, 3.0, 40.0, 100.0]), max_size=12).map(tuple)


@pytest.mark.parametrize(
    ("rates", "newest", "all_of_them", "left"),
    [
        ((), 0, 0, ()),
        ((100.0, 90.0, 110.0), 0, 0, (100.0, 90.0, 110.0)),
        ((100.0, 20.0), 0, 0, (100.0, 20.0)),  # slow, and not silent
        ((100.0, 60.0, 0.0, 1.0, 30.0, 100.0), 0, 2, (100.0, 100.0)),  # it paused within the second and the fifth
        ((100.0, 100.0, 0.0, 0.0), 2, 2, (100.0,)),
        ((0.0, 0.0), 2, 2, ()),  # it has never worked
    ],
)
def test_silence(rates: tuple[float, ...], newest: int, all_of_them: int, left: tuple[float, ...]) -> None:
    assert (silent_for(rates), silent_windows(rates), working(rates)) == (newest, all_of_them, left)


@pytest.mark.parametrize(
    ("rates", "doubt"),
    [
        ((), 0.0),
        ((100.0, 50.0), 0.0),
        ((0.0, 0.0), 0.0),  # nothing tells how fast it is
        ((100.0,) * 7 + (0.0,) * 5, 5 / 7),  # it may come again in the next hour, or not
        ((100.0,) * 19 + (0.0,) * 5, 5 / 19),
        ((0.0, *[100.0] * 8, 0.0, *[100.0] * 8, 0.0, *[100.0] * 8, 0.0), 4 / 24 / 4),  # four of them are known better
        ((0.0, 100.0) * 12, 1 / 12),  # as of steps that take longer than a window
    ],
)
def test_how_often_it_pauses_is_known_by_how_often_it_did(rates: tuple[float, ...], doubt: float) -> None:
    assert doubt_of_pauses(rates) == pytest.approx(doubt)


@given(RATES)
def test_what_is_left_was_worked_in(rates: tuple[float, ...]) -> None:
    assert silent_for(rates) <= silent_windows(rates)
    assert len(working(rates)) <= len(rates) - silent_windows(rates)
    if silent_windows(rates) == 0:
        assert working(rates) == rates


@given(RATES, st.floats(0.01, 100.0))
def test_the_unit_does_not_matter(rates: tuple[float, ...], factor: float) -> None:
    scaled = [factor * rate for rate in rates]
    assert silent_for(scaled) == silent_for(rates) and len(working(scaled)) == len(working(rates))
