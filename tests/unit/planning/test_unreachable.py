"""A target that no placement holds: it is missed by as little as can be, and money is saved as usual."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.placement import CapacityType, Placement
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment
from tests.unit.planning.jobs import NOW, auto_policy, decision_and_text, judged, running, spec
from tests.unit.prediction.fixtures import A10G, A100, chip, pool

# One job of one chip; where it is costs $4 an hour, the same chip elsewhere $2, $8 for a chip that is twice as fast.
HERE = Placement("a100", 1, 1)
FIXED = {"minChips": 1, "maxChips": 1}
DONE = 86_400 * 1000
POOLS = {
    "a100": replace(A100, price=replace(A100.price, on_demand=4.0)),
    "cheap": replace(A100, name="cheap", price=replace(A100.price, on_demand=2.0)),
}


FAST_CHIP = chip("H100-SXM5-80GB", 990e12, 3.35e12)


def one(**sections: Any) -> Job:
    """At 1000 samples/s, with ten hours of work left."""
    made = spec(chips=1, elasticity=FIXED, progress={"totalSamples": DONE + 36_000 * 1000}, **sections)
    return running(HERE, 1000.0, made=made)


def at(seconds: float) -> dict[str, str]:
    return {"deadline": datetime.fromtimestamp(NOW + seconds, UTC).isoformat()}


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        ({"maxCostPerMillionSamples": "0.01"}, Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED),
        ({"maxCostPerHour": "1"}, Reason.MAX_COST_PER_HOUR_EXCEEDED),
        ({"budget": "5", "budgetAction": "Warn"}, Reason.BUDGET_EXCEEDED),
        (at(-3600.0), Reason.BETTER_TARGET_UNREACHABLE),
        (at(3600.0), Reason.BETTER_TARGET_UNREACHABLE),
        ({"minScalingEfficiency": "1"} | at(-60.0), Reason.BETTER_TARGET_UNREACHABLE),
    ],
)
def test_a_target_out_of_reach_does_not_end_saving(targets: dict[str, str], reason: Reason) -> None:
    """Half of the cost could be saved, and the job held for ever."""
    decision, text = decision_and_text(judged(one(targets=targets), POOLS))
    assert (decision.action, decision.reason, decision.target) == (Action.MOVE, reason, Placement("cheap", 1, 1))
    assert "no placement is sure enough to hold it" in text


def test_a_spent_budget_of_a_job_of_unknown_length_does_not_end_saving() -> None:
    job = running(
        HERE,
        1000.0,
        made=spec(chips=1, elasticity=FIXED, targets={"budget": "10", "budgetAction": "Warn"}),
        account=Account(spent=11.0),
    )
    assert judged(job, POOLS).decision.target == Placement("cheap", 1, 1)


def test_nothing_is_missed_by_more_to_save_money() -> None:
    """A10G is far cheaper and slower: the deadline would be missed by days."""
    pools = {"a100": POOLS["a100"], "small": replace(A10G, name="small", price=replace(A10G.price, on_demand=0.1))}
    made = judged(one(targets=at(3600.0)), pools)
    decision, text = decision_and_text(made)
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.DEADLINE_UNREACHABLE)
    assert "no other placement holds all targets; 1 chip of small: predicted:" in text


def test_a_deadline_ahead_is_missed_by_as_little_as_can_be() -> None:
    pools = POOLS | {"fast": pool("fast", FAST_CHIP, 12.0)}
    decision = judged(one(targets=at(3600.0)), pools).decision
    assert (decision.action, decision.reason) == (Action.MOVE, Reason.DEADLINE_MISSED)
    assert decision.target == Placement("fast", 1, 1)


def test_interruptions_count_in_what_misses_a_deadline_by_less() -> None:
    """What is taken away every hour was thought to be as fast as what is not."""
    pools = POOLS | {"fast": pool("fast", FAST_CHIP, 9.0, spot=3.0)}
    job, often = one(targets=at(15_000.0), placement={"capacity": "Any"}), auto_policy(spotInterruptionsPerDay="24")
    target = judged(job, pools, often).decision.target
    assert target is not None and (target.pool, target.capacity) == ("fast", CapacityType.ON_DEMAND)


def test_a_deadline_that_is_over_buys_no_speed() -> None:
    pools = POOLS | {"fast": pool("fast", FAST_CHIP, 12.0)}
    assert judged(one(targets=at(-60.0)), pools).decision.target == Placement("cheap", 1, 1)


def test_where_nothing_is_better_it_stays_and_says_what_is_missed() -> None:
    decision, text = decision_and_text(judged(one(targets={"maxCostPerHour": "1"}), {"a100": POOLS["a100"]}))
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.COST_TARGET_UNREACHABLE)
    assert "maxCostPerHour" in text


_MONEY = st.sampled_from([None, "0", "0.01", "0.5", "1", "3", "10", "100"])
_TIME = st.sampled_from([None, -3600.0, 60.0, 3600.0, 30_000.0, 40_000.0, 90_000.0])


@given(hour=_MONEY, sample=_MONEY, budget=_MONEY, deadline=_TIME, efficiency=st.sampled_from([None, "0.5", "1"]))
def test_targets_together_never_stop_the_evaluation(
    hour: str | None, sample: str | None, budget: str | None, deadline: float | None, efficiency: str | None
) -> None:
    targets: dict[str, str] = {} if deadline is None else at(deadline)
    named = {
        "maxCostPerHour": hour,
        "maxCostPerMillionSamples": sample,
        "budget": budget,
        "minScalingEfficiency": efficiency,
    }
    targets |= {"budgetAction": "Warn"} | {name: value for name, value in named.items() if value is not None}
    result: Assessment = judged(one(targets=targets), POOLS)
    decision, text = decision_and_text(result)
    assert text and decision.reason
    if decision.action is Action.MOVE:
        assert decision.target == Placement("cheap", 1, 1)
