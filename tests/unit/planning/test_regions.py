"""Regions that know of one another nothing but prices: what their plans are worth, and that nobody loses by them."""

from __future__ import annotations

from benchmarks.fleet.regions import RegionalPlans, made, overfull, worth
from rightpool.planning.allocate.market import NOTHING
from rightpool.planning.allocate.share_out import shared_out


def test_regions_with_prices_alone_come_near_one_plan_and_to_rest() -> None:
    fleet, whole = made(300), made(300)
    placed = {stake.key for stake in fleet.stakes if stake.here != NOTHING}
    plans = RegionalPlans(fleet)
    rounds = [plans.step(number) for number in range(8)]
    assert overfull(fleet) == []
    assert placed <= {stake.key for stake in fleet.stakes if stake.here != NOTHING}
    assert rounds[-1].changes <= 6, "2% of the jobs"
    whole.carry_out(shared_out(whole.market(), {}))
    assert rounds[-1].worth > 0.9 * worth(whole.market())
