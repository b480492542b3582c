"""What is over by the newest window is no reason to undo a move: the program may have failed by itself."""

from dataclasses import replace

import pytest

from rightpool.api.estimate import Estimate
from rightpool.api.variation import Variation
from rightpool.planning.judge.series import MOST_WINDOWS
from rightpool.planning.judge.verdict import Verdict
from rightpool.planning.work.verification import verify
from rightpool.profiles.steadiness import counted
from tests.unit.planning.test_verification import FASTER, SAME_CHIPS
from tests.unit.planning.world import complete_profile, spec


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ((130.0, 830.0, 1000.0), Verdict.OPEN),  # it failed by itself, loaded for four minutes, and goes on as before
        ((0.0, 0.0, 870.0), Verdict.OPEN),
        ((600.0, 600.0, 600.0), Verdict.WORSE),  # as it is there
        ((1000.0, 500.0, 0.0), Verdict.OPEN),  # it may go on
        ((1000.0, 500.0, *[0.0] * 12), Verdict.IDLE),  # and does not go on
    ],
)
def test_what_is_over_is_no_reason_to_go_back(after: tuple[float, ...], verdict: Verdict) -> None:
    """Of a steady job that is moved to the same chips."""
    seen: Variation | None = None
    for number in range(12):
        seen = counted(seen, 1, 1000.0, 300.0 * (number - 12), 300.0)
    for number, rate in enumerate(after, 1):
        seen = counted(seen, 2, rate, 300.0 * number, 300.0)
    profile, windows = complete_profile(2, max(after[-1], 1.0), 900.0), spec(profiling={"window": "5m"})
    move = replace(SAME_CHIPS, baseline=1000.0, baseline_rates=(1000.0,) * 12, predicted=Estimate(1000.0, 0.02))
    result = verify(move, profile, windows, seen)
    assert result.verdict is verdict
    assert verify(move, profile, windows, seen, last=True).verdict.undoes


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ((400.0, 900.0, 1300.0, 1300.0), Verdict.OPEN),  # it failed by itself, and is faster since
        ((400.0, 1040.0, 1200.0, 1060.0), Verdict.OPEN),
        ((400.0, 1040.0, 1200.0, 1040.0), Verdict.DEARER),  # faster by less than would be worth more money
        ((960.0, 960.0, 960.0, 960.0), Verdict.DEARER),
    ],
)
def test_what_is_over_does_not_make_a_dearer_place_no_faster(after: tuple[float, ...], verdict: Verdict) -> None:
    seen: Variation | None = None
    for number in range(48):
        seen = counted(seen, 1, 1000.0, 300.0 * (number - 48), 300.0)
    for number, rate in enumerate(after, 1):
        seen = counted(seen, 2, rate, 300.0 * number, 300.0)
    move = replace(FASTER, baseline_windows=12, predicted=Estimate(1300.0, 0.1))
    by_time = spec(targets={"objective": "MinimizeTime"}, profiling={"window": "5m"})
    result = verify(move, complete_profile(2, after[-1], 1200.0), by_time, seen)
    assert result.verdict is verdict
    assert verify(move, complete_profile(2, after[-1], 1200.0), by_time, seen, last=True).verdict.undoes


@pytest.mark.parametrize(("price", "verdict"), [(4.1, Verdict.SAME), (4.8, Verdict.DEARER)])
def test_what_is_somewhat_dearer_and_no_faster_is_not_kept(price: float, verdict: Verdict) -> None:
    """An hour before it is all that is known of the job: after a few windows 20% more may be chance."""
    seen: Variation | None = None
    for number in range(12):
        seen = counted(seen, 1, 1000.0, 300.0 * (number - 12), 300.0)
    target = replace(FASTER.target, cost_per_hour=price)
    move = replace(FASTER, target=target, baseline_windows=12, baseline_rates=(1000.0,) * 12, stopped_at=0.0)
    by_time = spec(targets={"objective": "MinimizeTime"}, profiling={"window": "5m"})
    for number in range(1, MOST_WINDOWS + 1):
        seen = counted(seen, 2, 1000.0, 300.0 * number, 300.0)
        result = verify(move, complete_profile(2, 1000.0, 300.0), by_time, seen)
        if result.verdict is not Verdict.OPEN:
            break
    assert result.verdict is verdict
