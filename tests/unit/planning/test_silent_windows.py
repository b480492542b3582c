"""A program that does nothing for half an hour may evaluate: that is no reason to undo a move, and hides none."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rightpool.api.estimate import Estimate
from rightpool.planning.migration.verification import Verdict, Verification, longest_silence, verify
from rightpool.profiles.steadiness import counted
from rightpool.reporting.migration_texts import MigrationTexts
from tests.unit.planning.test_verification import SAME_CHIPS
from tests.unit.planning.world import complete_profile, spec

STEADY = (1000.0,) * 12
SPEC = spec(profiling={"window": "5m"})
LOWER = 8.5
MUCH_LOWER = 7.5
# Dollars an hour, of 10 before.


def judged(before: Sequence[float], after: Sequence[float], price: float) -> tuple[int, Verification]:
    """The verdict on a move to the same chips, and after how many windows it is given."""
    seen, mean = None, sum(before) / len(before)
    for number, rate in enumerate(before, 1 - len(before)):
        seen = counted(seen, 1, rate, 300.0 * number, 300.0)
    move = replace(
        SAME_CHIPS,
        target=replace(SAME_CHIPS.target, cost_per_hour=price),
        baseline=mean,
        baseline_windows=len(before),
        baseline_rates=tuple(before),
        predicted=Estimate(mean, 0.02),
    )
    for number, rate in enumerate(after, 1):
        seen = counted(seen, 2, rate, 300.0 * (number + 1), 300.0)
        result = verify(move, complete_profile(2, rate, 300.0), SPEC, seen)
        if result.settled:
            return number, result
    raise AssertionError("there is a verdict after so many windows")


@pytest.mark.parametrize(
    "after",
    [
        (0.0, 0.0, 0.0, 0.0, *[1000.0] * 20),  # at once
        (500.0, 0.0, 0.0, 0.0, 0.0, 300.0, *[1000.0] * 18),  # from within the first window
    ],
)
def test_a_long_pause_undoes_no_right_move(after: tuple[float, ...]) -> None:
    number, result = judged(STEADY, after, LOWER)
    assert result.verdict is Verdict.BETTER and number > 4, "nothing is said while it pauses"


def test_a_long_pause_before_does_not_hide_a_wrong_move() -> None:
    before = (*[1000.0] * 6, 400.0, 0.0, 0.0, 0.0, 500.0, 1000.0)
    _, result = judged(before, [600.0] * 24, MUCH_LOWER)
    assert result.verdict is Verdict.WORSE


def test_a_wrong_move_is_undone_once_the_pause_is_over() -> None:
    number, result = judged(STEADY, [600.0, 600.0, 0.0, 0.0, 0.0, *[600.0] * 19], MUCH_LOWER)
    assert result.verdict is Verdict.WORSE and 5 < number < 24


def test_where_it_pauses_for_hours_the_pauses_count() -> None:
    """In all for more than an hour: that is not what it does everywhere."""
    _, result = judged(STEADY, [500.0, 0.0, 0.0, 0.0, 0.0, 1000.0] * 4, MUCH_LOWER)
    assert result.verdict is Verdict.WORSE


@pytest.mark.parametrize("before", [STEADY, (*[1000.0] * 8, 0.0, 0.0, 0.0, 0.0)])
@pytest.mark.parametrize("first", [(), (500.0,)])
def test_a_program_that_hangs_there_is_worse_off(before: tuple[float, ...], first: tuple[float, ...]) -> None:
    number, result = judged(before, [*first, *[0.0] * 24], LOWER)
    assert (number, result.verdict, result.throughput) == (len(first) + longest_silence(300.0), Verdict.WORSE, 0.0)
    assert "the program does nothing there" in MigrationTexts().verified(SAME_CHIPS, result)


@pytest.mark.parametrize(("window", "windows"), [(300.0, 12), (600.0, 12), (180.0, 20), (60.0, 24), (30.0, 24)])
def test_it_may_be_silent_for_an_hour_where_so_many_windows_are_kept(window: float, windows: int) -> None:
    assert longest_silence(window) == windows
