"""Whether a move paid: realised against what was before, and against what was promised."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.conditions import Reason
from rightpool.api.profiledjob import Objective
from rightpool.planning.decision import Action
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.revision import RevisionRef
from rightpool.planning.verification import Verdict, Verification, badness_ratio, cost_per_million, verify
from rightpool.prediction.estimate import Estimate
from rightpool.profiles.profile import Reading, Steadiness
from rightpool.profiles.sample import Field, Quality
from tests.unit.planning.world import A10G, A100, complete_profile, spec

MOVE = Migration(
    id="d-1",
    action=Action.MOVE,
    phase=Phase.VERIFYING,
    source=RevisionRef(1, A100, "h", (8, 1), 0.0, cost_per_hour=40.0),
    target=RevisionRef(2, A10G, "h", (8, 1), 0.0, cost_per_hour=8.0),
    created_at=0.0,
    phase_since=0.0,
    reason=Reason.CHEAPER_POOL_MEETS_TARGETS,
    message="",
    predicted=Estimate(400.0, 0.2),
    predicted_cost=Estimate(5.55, 0.2),
    baseline=1000.0,
    baseline_cost=11.1,
)


def judged(rate: float, objective: str = "MinimizeCost", move: Migration = MOVE) -> Verification:
    return verify(move, complete_profile(2, rate, 100.0), spec(targets={"objective": objective}))


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
    result = judged(rate)
    assert (result.verdict, result.reason) == (verdict, reason)
    assert result.cost_per_million == pytest.approx(8.0 / 3600 / rate * 1e6)


def test_by_time_a_cheaper_and_slower_pool_is_worse() -> None:
    assert judged(400.0, "MinimizeTime").verdict is Verdict.WORSE
    assert judged(1500.0, "MinimizeTime").verdict is Verdict.BETTER


def test_balanced_is_between() -> None:
    assert badness_ratio(MOVE, 400.0, 5.55, Objective.BALANCED) == pytest.approx(math.sqrt(0.5 * 2.5))


@pytest.mark.parametrize(
    ("reason", "rate", "verdict"),
    [
        (Reason.DEADLINE_MISSED, 1500.0, Verdict.BETTER),
        (Reason.DEADLINE_MISSED, 800.0, Verdict.WORSE),
        (Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED, 400.0, Verdict.BETTER),
        (Reason.MAX_COST_PER_HOUR_EXCEEDED, 100.0, Verdict.SAME),
        (Reason.MIN_SCALING_EFFICIENCY_MISSED, 100.0, Verdict.SAME),
        (Reason.NOT_ALLOWED_ANY_MORE, 100.0, Verdict.SAME),
    ],
)
@pytest.mark.parametrize("objective", ["MinimizeCost", "MinimizeTime", "Balanced"])
def test_what_was_made_for_a_target_is_judged_by_it(
    reason: Reason, rate: float, verdict: Verdict, objective: str
) -> None:
    dear = replace(MOVE.target, cost_per_hour=80.0) if reason is Reason.DEADLINE_MISSED else MOVE.target
    result = judged(rate, objective, replace(MOVE, reason=reason, target=dear))
    assert result.verdict is verdict
    if verdict is Verdict.SAME:
        assert "where it was" in result.message


def test_without_a_baseline_nothing_is_claimed_and_nothing_undone() -> None:
    result = judged(150.0, move=replace(MOVE, baseline=None, baseline_cost=None))
    assert (result.verdict, result.reason) == (Verdict.SAME, Reason.BELOW_PREDICTION)
    assert "no baseline" in result.message


def test_a_noisy_window_is_given_the_benefit_of_the_doubt() -> None:
    profile = complete_profile(2, 180.0, 100.0)
    assert verify(MOVE, profile, spec()).verdict is Verdict.WORSE
    noisy = Reading(180.0, 120.0, 270.0, Quality.MEASURED)
    result = verify(MOVE, replace(profile, readings={Field.SAMPLES_PER_SECOND: noisy}), spec())
    assert (result.verdict, result.settled) == (Verdict.SAME, False)
    assert judged(200.0).settled, "a clear window that says the same is no reason to wait"


def test_another_revision_or_half_a_window_is_a_callers_mistake() -> None:
    with pytest.raises(ValueError, match="r1"):
        verify(MOVE, complete_profile(1, 400.0, 100.0), spec())
    with pytest.raises(ValueError):
        verify(MOVE, replace(complete_profile(2, 400.0, 100.0), steadiness=Steadiness.WARMING_UP), spec())


def test_the_message_is_for_people() -> None:
    message = judged(15_000.0).message
    assert "15000 samples/s" in message and "e+" not in message
    assert "predicted 400 (310–517)" in message


def test_unknown_price_or_no_progress_has_no_cost() -> None:
    assert cost_per_million(0.0, 8.0) is None
    assert cost_per_million(100.0, None) is None


@given(st.floats(1.0, 1e6), st.floats(1.0, 1e6))
def test_faster_on_the_same_chips_is_never_judged_worse(slow: float, more: float) -> None:
    order = [Verdict.WORSE, Verdict.SAME, Verdict.BETTER]
    assert order.index(judged(slow + more).verdict) >= order.index(judged(slow).verdict)
