"""Whether a move paid: realised against what was before, and against what was promised."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.choices import Objective
from rightpool.api.conditions import Reason
from rightpool.api.estimate import Estimate
from rightpool.api.ledger import measured_cost_per_million
from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.api.variation import SlowStart, Variation
from rightpool.planning.judge.series import MOST_WINDOWS
from rightpool.planning.judge.verdict import Verdict, windows_until_settled
from rightpool.planning.moves.migration_texts import verified_text
from rightpool.planning.offers.targets.registry import yardstick_of
from rightpool.planning.work.verification import Verification, verify
from rightpool.profiles.profile import Steadiness
from rightpool.profiles.steadiness import counted, doubt_between_places, doubt_of_ratio
from tests.unit.planning.world import A10G, A100, complete_profile, spec, variation


def quiet(rate: float, spread: float = 0.01) -> Variation:
    return variation(2, rate, 100.0, spread)


MOVE = Migration(
    id="d-1",
    action=Action.MOVE,
    phase=Phase.VERIFYING,
    source=Revision(1, A100, "h", 8, 1, 0.0, cost_per_hour=40.0),
    target=Revision(2, A10G, "h", (8, 1), 0.0, cost_per_hour=8.0),
    created_at=0.0,
    phase_since=0.0,
    reason=Reason.CHEAPER_POOL_MEETS_TARGETS,
    message="",
    predicted=Estimate(400.0, 0.2),
    baseline=1000.0,
    baseline_windows=3,
)


def judged(rate: float, objective: str = "MinimizeCost", move: Migration = MOVE, *, last: bool = False) -> Verification:
    made, yardstick = spec(targets={"objective": objective}), yardstick_of(move.reason)
    return verify(move, complete_profile(2, rate, 100.0), made, quiet(rate), yardstick=yardstick, last=last)


def test_a_move_for_a_deadline_is_told_by_its_time_and_not_as_better() -> None:
    dear = replace(MOVE, reason=Reason.DEADLINE_MISSED, target=replace(MOVE.target, cost_per_hour=80.0))
    result = judged(1500.0, move=dear)
    text = verified_text(dear, result)
    assert "less time for the same work than before" in text and "better" not in text


def test_what_costs_nothing_is_better() -> None:
    free = replace(MOVE, target=replace(MOVE.target, cost_per_hour=0.0))
    result = judged(100.0, move=free, last=True)
    assert result.verdict is Verdict.BETTER
    assert "100% better than before" in verified_text(free, result)


@pytest.mark.parametrize(
    ("rate", "verdict", "reason"),
    [
        (400.0, Verdict.BETTER, Reason.DELIVERED),
        (320.0, Verdict.BETTER, Reason.DELIVERED),
        (250.0, Verdict.BETTER, Reason.BELOW_PREDICTION),
        (200.0, Verdict.SAME, Reason.BELOW_PREDICTION),  # the same price for a sample as before
        (150.0, Verdict.WORSE, Reason.ROLLED_BACK),
    ],
)
def test_by_cost(rate: float, verdict: Verdict, reason: Reason) -> None:
    result = judged(rate, last=True)
    assert (result.verdict, result.reason) == (verdict, reason)
    assert result.cost_per_million == pytest.approx(8.0 / 3600 / rate * 1e6)


def test_by_time_a_cheaper_and_slower_pool_is_worse() -> None:
    assert judged(400.0, "MinimizeTime").verdict is Verdict.WORSE
    assert judged(1500.0, "MinimizeTime").verdict is Verdict.BETTER


def test_balanced_is_between() -> None:
    assert judged(400.0, Objective.BALANCED).ratio == pytest.approx(math.sqrt(0.5 * 2.5))


@pytest.mark.parametrize(
    ("reason", "rate", "verdict"),
    [
        (Reason.DEADLINE_MISSED, 1500.0, Verdict.BETTER),
        (Reason.DEADLINE_MISSED, 800.0, Verdict.WORSE),
        (Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED, 400.0, Verdict.BETTER),
        (Reason.MAX_COST_PER_HOUR_EXCEEDED, 100.0, Verdict.SAME),
        (Reason.MIN_SCALING_EFFICIENCY_MISSED, 100.0, Verdict.SAME),
        (Reason.PLACEMENT_DISALLOWED, 100.0, Verdict.SAME),
    ],
)
@pytest.mark.parametrize("objective", ["MinimizeCost", "MinimizeTime", "Balanced"])
def test_what_was_made_for_a_target_is_judged_by_it(
    reason: Reason, rate: float, verdict: Verdict, objective: str
) -> None:
    dear = replace(MOVE.target, cost_per_hour=80.0) if reason is Reason.DEADLINE_MISSED else MOVE.target
    move = replace(MOVE, reason=reason, target=dear)
    result = judged(rate, objective, move)
    assert result.verdict is verdict
    if verdict is Verdict.SAME:
        assert "where it was" in verified_text(move, result)


FASTER = replace(
    MOVE,
    source=replace(MOVE.source, cost_per_hour=4.0),
    target=replace(MOVE.target, cost_per_hour=64.0),
    reason=Reason.FASTER_PLACEMENT_MEETS_TARGETS,
    predicted=Estimate(2000.0, 0.3),
)


@pytest.mark.parametrize(
    ("reason", "objective"),
    [
        (Reason.FASTER_PLACEMENT_MEETS_TARGETS, "MinimizeTime"),
        (Reason.DEADLINE_MISSED, "MinimizeCost"),
        (Reason.DEADLINE_MISSED, "MinimizeTime"),
    ],
)
@pytest.mark.parametrize("rate", [980.0, 1000.0, 1005.0])
def test_what_was_to_be_faster_and_only_costs_more_goes_back(reason: Reason, objective: str, rate: float) -> None:
    move = replace(FASTER, reason=reason)
    result = judged(rate, objective, move)
    assert (result.verdict, result.reason) == (Verdict.DEARER, Reason.ROLLED_BACK)
    assert result.likely is not None and result.likely > 15.0, "what going back saves, which is compared with a restart"
    assert "not faster than before, and the placement before cost less" in verified_text(move, result)


def test_at_the_same_price_or_faster_it_stays() -> None:
    same = replace(FASTER, target=replace(FASTER.target, cost_per_hour=4.05))
    cheaper = replace(FASTER, target=replace(FASTER.target, cost_per_hour=3.0))
    unknown = replace(FASTER, target=replace(FASTER.target, cost_per_hour=None))
    found = [judged(1000.0, "MinimizeTime", move, last=True).verdict for move in (same, cheaper, unknown)]
    assert found == [Verdict.SAME] * 3
    assert judged(1100.0, "MinimizeTime", FASTER).verdict is Verdict.BETTER, "that is what the objective asks for"


def test_what_cost_nothing_is_cheaper_than_any_price() -> None:
    free = replace(FASTER, source=replace(FASTER.source, cost_per_hour=0.0))
    result = judged(1000.0, "MinimizeTime", free)
    assert result.verdict is Verdict.DEARER
    assert "inf" not in verified_text(free, result)


def test_a_job_that_varies_is_looked_at_until_it_is_surely_no_faster() -> None:
    profile, objective = complete_profile(2, 1000.0, 100.0), spec(targets={"objective": "MinimizeTime"})
    move = replace(FASTER, predicted=None, baseline_windows=12)
    results = [
        verify(move, profile, objective, variation(2, 1000.0, 100.0, 0.15, windows=count))
        for count in (1, 6, MOST_WINDOWS)
    ]
    assert [result.verdict for result in results] == [Verdict.OPEN, Verdict.OPEN, Verdict.DEARER]


@given(rate=st.floats(500.0, 2000.0), price=st.floats(0.1, 100.0))
def test_by_time_nothing_is_kept_that_is_no_faster_and_dearer(rate: float, price: float) -> None:
    result = judged(rate, "MinimizeTime", replace(FASTER, target=replace(FASTER.target, cost_per_hour=price)))
    if result.verdict is Verdict.SAME:
        assert result.cost_per_million is not None and FASTER.baseline_cost is not None
        assert result.cost_per_million <= FASTER.baseline_cost * 1.1


def test_without_a_baseline_nothing_is_claimed_and_nothing_undone() -> None:
    move = replace(MOVE, baseline=None)
    result = judged(150.0, move=move)
    assert (result.verdict, result.reason) == (Verdict.SAME, Reason.BELOW_PREDICTION)
    assert "no baseline" in verified_text(move, result)


def test_a_noisy_window_is_given_the_benefit_of_the_doubt() -> None:
    profile = complete_profile(2, 150.0, 100.0)
    assert verify(MOVE, profile, spec(), quiet(150.0)).verdict is Verdict.WORSE
    result = verify(MOVE, profile, spec(), quiet(150.0, 0.4))
    assert result.verdict is Verdict.OPEN
    clear = judged(200.0, move=replace(MOVE, predicted=Estimate(200.0, 0.2)))
    assert clear.verdict is Verdict.SAME, "what was promised is no reason to wait"


def test_a_slow_half_hour_does_not_undo_what_was_surely_promised() -> None:
    """The same chips at 15% less, and a job that varies by 20%."""
    move = replace(
        MOVE,
        source=replace(MOVE.source, cost_per_hour=10.0),
        target=replace(MOVE.target, cost_per_hour=8.5),
        predicted=Estimate(1000.0, 0.02),
    )
    result = verify(move, complete_profile(2, 800.0, 100.0), spec(), quiet(800.0, 0.2))
    assert result.ratio is not None and result.ratio > 1.05 and result.likely is not None and result.likely < 0.95
    assert result.verdict is not Verdict.WORSE
    steady = verify(move, complete_profile(2, 700.0, 100.0), spec(), quiet(700.0, 0.001))
    assert steady.verdict is Verdict.WORSE, "where the job is steady, what was measured counts"


SAME_CHIPS = replace(
    MOVE,
    source=replace(MOVE.source, cost_per_hour=10.0),
    target=replace(MOVE.target, cost_per_hour=8.5),
    predicted=Estimate(1000.0, 0.02),
    baseline_windows=12,
    stopped_at=0.0,
)
"""To a price that is 15% lower."""


def test_a_job_that_had_slowed_down_before_its_move_is_not_moved_back_for_it() -> None:
    """Its rate falls by 30% half an hour before the move, and stays there. The mean of the hour before is 21% more."""
    before, after = (1200.0,) * 6 + (840.0,) * 6, (840.0,) * 24
    seen: Variation | None = None
    earlier = np.repeat(np.random.default_rng(1).choice((840.0, 1200.0), 48), 6).tolist()
    for number, rate in enumerate((*earlier, *before), 1):
        seen = counted(seen, 1, rate, 300.0 * (number - 300), 300.0)
    for number, rate in enumerate(after, 1):
        seen = counted(seen, 2, rate, 300.0 * number, 300.0)
    profile, windows = complete_profile(2, 840.0, 7200.0), spec(profiling={"window": "5m"})
    baseline = sum(before) / 12
    move = replace(SAME_CHIPS, baseline=baseline, predicted=None)
    by_means = verify(move, profile, windows, seen)
    assert by_means.likely == pytest.approx(0.85 * baseline / 840.0), "by the means it costs 3% more"
    result = verify(replace(move, baseline_rates=before), profile, windows, seen)
    assert result.likely is not None and result.likely < 1.0, "by the windows next to the move it saves"


def test_a_promise_that_is_refuted_counts_no_more() -> None:
    """The same chips do 40% less: that they were to do the same is no reason to believe a little of it."""
    found = [
        verify(SAME_CHIPS, complete_profile(2, rate, 100.0), spec(), variation(2, rate, 100.0, 0.1, windows=12))
        for rate in (600.0, 900.0)
    ]
    assert found[0].likely == pytest.approx(found[0].ratio)
    assert found[1].likely is not None and found[1].ratio is not None and found[1].likely < 0.97 * found[1].ratio


def test_a_promise_does_not_prove_itself() -> None:
    """Of a job that varies, one window that seems worse is no proof that what was promised was kept."""
    move = replace(MOVE, predicted=Estimate(1000.0, 0.05), baseline_windows=12)
    result = verify(move, complete_profile(2, 180.0, 100.0), spec(), variation(2, 180.0, 100.0, 0.8, windows=1))
    assert result.likely is not None and result.likely < 0.5
    assert result.verdict is Verdict.OPEN, "more windows are looked at"


@pytest.mark.parametrize("promised", [80.0, 400.0])
def test_what_surely_saves_is_kept_at_once_whatever_was_promised(promised: float) -> None:
    assert judged(230.0, move=replace(MOVE, predicted=Estimate(promised, 0.2))).verdict is Verdict.BETTER


def test_hours_of_two_places_differ_by_more_than_hours_of_one() -> None:
    """Where noise lasts, an hour is like the next one of the same place: what the ledger keeps is not as sure."""
    draw, seen = np.random.default_rng(1), None
    there = bool(draw.integers(2))
    for number in range(288):
        there = bool(draw.random() < 1 / 3) if number % 12 == 0 else there
        seen = counted(seen, 2, 750.0 if there else 1000.0, 300.0 * number, 300.0)
    before, after = MOVE.baseline_windows, 24
    result = verify(MOVE, complete_profile(2, 750.0, 100.0), spec(), seen)
    assert result.doubt == doubt_between_places(seen, before, after) > doubt_of_ratio(seen, before, after)[0]


def test_what_is_likely_worse_when_the_time_is_over_is_undone() -> None:
    """Windows of the same level on either side, which differ by 20%: not proven at 0.5%, and likely enough."""
    noisy = variation(2, 165.0, 100.0, 0.12, windows=12)
    profile = complete_profile(2, 165.0, 100.0)
    move = replace(MOVE, predicted=Estimate(400.0, 0.5), baseline_windows=12)
    assert verify(move, profile, spec(), noisy).verdict is Verdict.OPEN
    assert verify(move, profile, spec(), noisy, last=True).verdict is Verdict.WORSE


def test_another_revision_or_half_a_window_is_a_callers_mistake() -> None:
    with pytest.raises(ValueError, match="r1"):
        verify(MOVE, complete_profile(1, 400.0, 100.0), spec())
    with pytest.raises(ValueError):
        verify(MOVE, replace(complete_profile(2, 400.0, 100.0), steadiness=Steadiness.WARMING_UP), spec())


def test_the_message_is_for_people() -> None:
    message = verified_text(MOVE, judged(15_000.0))
    assert "15000 samples/s" in message and "e+" not in message
    assert "predicted 400 (310–517)" in message


def test_unknown_price_or_no_progress_has_no_cost() -> None:
    assert measured_cost_per_million(0.0, 8.0) is None
    assert measured_cost_per_million(100.0, None) is None


@given(st.floats(1.0, 1e6), st.floats(1.0, 1e6))
def test_faster_on_the_same_chips_is_never_judged_worse(slow: float, more: float) -> None:
    order = {Verdict.WORSE: -1, Verdict.SAME: 0, Verdict.OPEN: 0, Verdict.BETTER: 1}
    assert order[judged(slow + more).verdict] >= order[judged(slow).verdict]


@example(0.060546875, 0.0859375)
@given(st.floats(0.05, 0.6), st.floats(0.0, 0.5))
def test_a_move_that_delivers_is_judged_when_it_is_expected_to_be(saving: float, spread: float) -> None:
    """By cost, of a job whose windows differ by `spread`: settled with that many windows, and not before."""
    rate = 200.0 / (1.0 - saving)  # 200 samples a second cost there what 1,000 cost before
    move = replace(MOVE, predicted=None)
    windows = windows_until_settled(variation(2, rate, 100.0, spread), MOVE.baseline_windows, saving)

    def settled(count: int) -> bool:
        seen = variation(2, rate, 100.0, spread, windows=count)
        found = verify(move, complete_profile(2, rate, 100.0), spec(), seen)
        return found.verdict is not Verdict.OPEN

    assert settled(windows)
    assert windows == 1 or not settled(windows - 1)


def test_the_noisier_the_job_the_longer_a_move_is_looked_at() -> None:
    spreads = [0.01, 0.05, 0.2, 0.5, 1.0]
    waits = [windows_until_settled(variation(1, 100.0, 100.0, spread), 3, 0.15) for spread in spreads]
    assert waits == sorted(waits) and waits[0] == 1 and waits[-1] == MOST_WINDOWS


STARTS_SLOWLY = SlowStart(6 * spec().profiling.window.total_seconds(), 900.0, 1)


@pytest.mark.parametrize("windows", [3, 6, 8])
def test_a_job_that_starts_slowly_anywhere_is_not_judged_by_its_start(windows: int) -> None:
    rates = (75.0,) * min(windows, 6) + (400.0,) * max(windows - 6, 0)
    known = replace(variation(2, 400.0, 100.0, windows=windows), recent=rates)
    profile = complete_profile(2, rates[-1], 100.0)
    assert verify(MOVE, profile, spec(), known, last=True).verdict is Verdict.WORSE
    result = verify(MOVE, profile, spec(), replace(known, slow_start=STARTS_SLOWLY))
    assert result.verdict is not Verdict.WORSE
    if windows > 6:
        assert result.throughput == 400.0


def test_where_a_slow_start_is_better_already_or_time_is_over_it_is_judged() -> None:
    known = replace(variation(2, 400.0, 100.0), slow_start=STARTS_SLOWLY)
    result = verify(MOVE, complete_profile(2, 400.0, 100.0), spec(), known)
    assert result.verdict is Verdict.BETTER
    bad = replace(variation(2, 75.0, 100.0), slow_start=STARTS_SLOWLY)
    result = verify(MOVE, complete_profile(2, 75.0, 100.0), spec(), bad, last=True)
    assert result.verdict is Verdict.WORSE


@pytest.mark.parametrize("revision", [1, 2])
def test_what_was_before_in_a_slow_start_is_compared_with_the_same_part_of_the_next(revision: int) -> None:
    """What comes later there is faster than all of it, and says nothing of the place. revision: since when it is known
    that the job starts slowly."""
    window = spec().profiling.window.total_seconds()
    slow = SlowStart(6 * window, 3.0 * window, revision)
    source = replace(MOVE.source, since=-5.0 * window)
    move = replace(MOVE, source=source, stopped_at=0.0, target=replace(MOVE.target, since=0.0))
    move = replace(move, baseline=500.0, baseline_windows=5, predicted=Estimate(500.0, 0.05))
    known = replace(variation(2, 0.0, 12.0 * window), recent=(500.0,) * 6 + (1000.0,) * 6)

    def realised(move: Migration, known: Variation) -> float:
        return verify(move, complete_profile(2, 1000.0, 12.0 * window), spec(), known).throughput

    assert realised(move, replace(known, slow_start=slow)) == 500.0
    assert realised(move, known) == 750.0, "nobody knows that it starts slowly"
    later = replace(move, source=replace(source, since=-12.0 * window))
    # The rates right before and after the move are those of two parts of a start.
    stepped = replace(move, baseline_rates=(500.0,) * 5)
    last = verify(stepped, complete_profile(2, 1000.0, 12.0 * window), spec(), replace(known, slow_start=slow))
    assert last.ratio is not None and last.likely == pytest.approx(last.ratio, rel=0.01)
    # Windows that the target had first are not in `recent` any more.
    aged = replace(known, as_of=40.0 * window, slow_start=slow)
    assert realised(move, aged) == (1000.0 if revision == 1 else 750.0)
    assert realised(later, replace(known, slow_start=slow)) == (1000.0 if revision == 1 else 750.0), "it was over"


@pytest.mark.parametrize("slow_windows", [6, 12])
def test_a_part_of_a_slow_start_is_not_compared_with_more_of_the_one_before(slow_windows: int) -> None:
    """A start that becomes faster from window to window: the first windows are slower than the mean of all."""
    window = spec().profiling.window.total_seconds()
    start = tuple(100.0 + 75.0 * place for place in range(12))
    move = replace(
        MOVE,
        source=replace(MOVE.source, since=-12.0 * window),
        target=replace(MOVE.target, since=0.0, cost_per_hour=36.0),
        stopped_at=0.0,
        baseline=512.5,
        baseline_windows=12,
        baseline_rates=start,
        predicted=Estimate(512.5, 0.05),
    )
    slow = SlowStart(slow_windows * window, 6.0 * window, 1)
    for windows in range(1, 13):
        known = replace(variation(2, 0.0, windows * window), recent=start[:windows], slow_start=slow)
        result = verify(move, complete_profile(2, start[windows - 1], windows * window), spec(), known)
        assert result.verdict is not Verdict.WORSE, windows
    assert result.verdict is Verdict.BETTER, "the same start, for less"


@pytest.mark.parametrize("windows", [3, 6, 20])
def test_what_only_a_part_of_a_start_can_tell_waits_for_no_other_windows(windows: int) -> None:
    """The last window of the part is as fast as there. None that comes later is compared with what was before."""
    window = spec().profiling.window.total_seconds()
    move = replace(
        SAME_CHIPS,
        source=replace(SAME_CHIPS.source, since=-3.0 * window),
        target=replace(SAME_CHIPS.target, since=0.0),
        baseline=400.0,
        baseline_windows=3,
        predicted=Estimate(400.0, 0.05),
    )
    recent = ((50.0, 60.0, 600.0) + (1000.0,) * 24)[:windows]
    slow = SlowStart(6 * window, 3.0 * window, 1)
    known = replace(variation(2, 0.0, windows * window), recent=recent, slow_start=slow)
    result = verify(move, complete_profile(2, recent[-1], windows * window), spec(), known)
    assert result.verdict is Verdict.WORSE


def test_a_place_that_stays_slow_after_a_slow_start_is_left() -> None:
    known = replace(variation(2, 75.0, 100.0, windows=9), slow_start=STARTS_SLOWLY)
    result = verify(MOVE, complete_profile(2, 75.0, 100.0), spec(), known)
    assert result.verdict is Verdict.WORSE
