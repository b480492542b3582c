"""Prices that change: what they save is counted for as long as prices have been seen to last."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.past_price import PastPrice
from rightpool.hardware.pool import Pool
from rightpool.planning.offers.assessment import Assessment
from tests.unit.planning import world as places
from tests.unit.planning.jobs import DAY, NOW, decision_and_text, entry, judged, running, spec
from tests.unit.planning.world import World, candidate, decide
from tests.unit.prediction.fixtures import A100, A100_CHIP, pool

HOUR = 3600.0
CHEAPER = pool("cheaper", A100_CHIP, 3.0)


def costing(of: Pool, *prices: float, every: float = HOUR) -> Pool:
    """The pool with these prices before the present one, which began ten minutes ago."""
    present = of.price.on_demand
    assert present is not None
    since = NOW - 600.0
    past = [PastPrice(since - (len(prices) - at) * every, price) for at, price in enumerate(prices)]
    return replace(of, prices=(*past, PastPrice(since, present)))


def decided(home: Pool, other: Pool, lost: float) -> Assessment:
    """What is decided on a job whose restarts take so many seconds."""
    job = running(
        made=spec(elasticity={"minChips": 4, "maxChips": 4}),
        history=(entry(Outcome.VERIFIED, NOW - DAY / 2, lost_seconds=lost),),
    )
    return judged(job, {"a100": home, "cheaper": other})


MARKET = (3.4, 4.3, 3.7, 4.6, 3.5)


@pytest.mark.parametrize(
    ("home", "other", "lost", "moves"),
    [
        (A100, CHEAPER, 900.0, True),  # as it has always been
        (costing(A100, *MARKET), costing(CHEAPER, *MARKET[::-1]), 900.0, False),
        (costing(A100, *MARKET), costing(CHEAPER, *MARKET[::-1]), 60.0, True),  # a restart is cheap
        (A100, costing(CHEAPER, 4.0, every=DAY), 900.0, True),  # once, after a day
        (A100, costing(CHEAPER, 4.4, 3.0, 4.4, every=8 * HOUR), 900.0, True),  # by day and by night
        (costing(A100, *MARKET), costing(CHEAPER, 2.9, 3.2, 2.8, 3.1, 3.3), 900.0, True),  # always cheaper
        (A100, costing(CHEAPER, 2.0, 5.0, 2.2, 4.8), 2400.0, False),  # cheaper by the mean of a few that differ widely
    ],
)
def test_what_a_change_of_prices_is_worth(home: Pool, other: Pool, lost: float, moves: bool) -> None:
    result = decided(home, other, lost)
    decision, text = decision_and_text(result)
    if moves:
        assert decision.action is Action.MOVE
    else:
        assert (decision.action, decision.reason) == (Action.KEEP, Reason.DOES_NOT_PAY_BACK)
        assert "while prices change as they have" in text
        gain, cost = (float(found) for found in re.findall(r"(?:would bring|restart costs) \$([\d.]+)", text))
        assert gain < cost


@pytest.mark.parametrize("prices", [(), MARKET, (1.0, 9.0, 2.0, 8.0)])
def test_another_size_at_the_same_price_saves_whatever_the_price_does(prices: tuple[float, ...]) -> None:
    home = costing(A100, *prices)
    job = running(
        made=spec(elasticity={"minChips": 1, "maxChips": 4, "batch": "PerChip"}),
        ratios={"exposed_communication": 0.1},
        history=(entry(Outcome.VERIFIED, NOW - DAY / 2, lost_seconds=900.0),),
    )
    assert judged(job, {"a100": home}).decision.action is Action.RESIZE


def test_a_price_that_settles_is_followed() -> None:
    """It was a market until four hours ago."""
    past = tuple(PastPrice(NOW - (9 - at) * HOUR, price) for at, price in enumerate(MARKET))
    settled = replace(CHEAPER, prices=(*past, PastPrice(NOW - 4 * HOUR, 3.0)))
    assert decided(A100, settled, 900.0).decision.action is Action.MOVE


def keep(world: World) -> Any:
    """An assessment that asks for nothing, with the prices of now."""
    assessment = decide(Action.KEEP, places.A10G, 900.0)
    assessment.price = lambda place: world.prices[place.pool] * place.chips
    return assessment


def moving(rate: float = 900.0) -> World:
    """A job that has moved from $40 an hour to $8, and does so much there; nothing was judged yet."""
    world = World.fresh()
    world.rates = {"a100": 1000.0, "a10g": rate}
    world.placed(places.A100, 1000.0)
    world.cycle(decide(Action.MOVE, places.A10G, 900.0, candidate(places.A100, 1000.0, 0.02)))
    return world.reach(Phase.WARMING_UP)


def judge(world: World) -> World:
    for _ in range(400):
        if world.job.state.migration is None:
            return world
        world.live()
        world.cycle(keep(world))
    raise AssertionError("no verdict")


@pytest.mark.parametrize("factors", [(6.0, 6.0), (1.0, 6.0), (0.1, 1.0)])
def test_a_place_is_not_judged_by_what_prices_did_since(factors: tuple[float, float]) -> None:
    """Whether they rise everywhere, there, or fall where the job was: what it does is what was promised, and to leave
    for another price is the next decision."""
    world = moving()
    world.prices = {name: price * factor for (name, price), factor in zip(world.prices.items(), factors, strict=True)}
    judge(world)
    last = world.job.state.history[-1]
    assert last.outcome is Outcome.VERIFIED and not world.job.state.avoid
    assert (last.source_cost_per_hour, last.target_cost_per_hour) == (40.0, 8.0), "as it was when it left"
    assert world.job.state.revision is not None and world.job.state.revision.cost_per_hour == 8.0 * factors[1]


def test_a_move_that_has_not_left_goes_by_the_prices_of_now() -> None:
    """It may wait for days until it is approved or the program has saved."""
    world = World.fresh()
    world.rates, world.answers = {"a100": 1000.0, "a10g": 900.0}, False
    world.placed(places.A100, 1000.0)
    world.cycle(decide(Action.MOVE, places.A10G, 900.0, candidate(places.A100, 1000.0, 0.02)))
    world.reach(Phase.CHECKPOINTING)
    world.prices = {"a100": 6.0, "a10g": 2.0}
    world.live()
    world.cycle(keep(world))
    migration = world.job.state.migration
    assert migration is not None
    assert (migration.source.cost_per_hour, migration.target.cost_per_hour) == (48.0, 16.0)
    world.saves = world.now
    judge(world)
    last = world.job.state.history[-1]
    assert last.outcome is Outcome.VERIFIED
    assert (last.source_cost_per_hour, last.target_cost_per_hour) == (48.0, 16.0)


def test_the_way_back_is_paid_at_the_prices_of_now() -> None:
    world = moving(rate=150.0)
    world.prices = {"a100": 6.0, "a10g": 2.0}
    judge(world)
    last, revision = world.job.state.history[-1], world.job.state.revision
    assert last.outcome is Outcome.ROLLED_BACK and revision is not None
    assert (last.source_cost_per_hour, last.target_cost_per_hour) == (40.0, 8.0)
    assert revision.placement == places.A100 and revision.cost_per_hour == 48.0
