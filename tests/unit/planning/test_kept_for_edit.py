"""Chips that are kept from others for an edit that waits for its save are booked, until they are given back."""

from dataclasses import replace

import pytest

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from tests.unit.planning.test_accounting import counting, go, saved, spent, stay
from tests.unit.planning.world import A10G, A100, World, candidate, decide

HOUR = 3600.0
LARGE = Placement("a100", 16, 2)


def edited(target: Placement, *, moved: bool = False) -> World:
    """A user wants other chips, of a job whose program never saves."""
    world = counting(checkpoint={"timeout": "6h"})
    if moved:
        go(world, A10G, A100, 200)
        stay(world, 1.0)
    world.answers = False
    world.job = replace(world.job, workload_hash="h2")
    world.cycle(decide(Action.UPDATE, target, 1000.0))
    world.cycle()
    migration = world.job.state.migration
    assert migration is not None and migration.phase is Phase.CHECKPOINTING
    return world


@pytest.mark.parametrize(("target", "beside"), [(LARGE, 8), (A100, 0), (A10G, 8)])
def test_what_is_kept_for_an_edit_is_booked_until_it_is_given_back(target: Placement, beside: int) -> None:
    """Every chip-second of a pool is booked or idle: what a waiting edit keeps from others is not idle."""
    world = edited(target)
    at, deadline = world.now, world.policy.start_deadline.total_seconds()
    booked = world.job.state.account.settled(at)
    held, paid = world.held, world.paid
    stay(world, 0.1)
    account = world.job.state.account
    assert account.chips == 8 + beside
    kept = beside * (world.now - at)
    assert account.settled(world.now).chip_seconds - booked.chip_seconds == pytest.approx(world.held - held + kept)
    dollars = world.prices[target.pool] * kept / HOUR
    assert spent(world) - booked.spent == pytest.approx(world.paid - paid + dollars)
    stay(world, 1.0)
    assert world.job.state.account.chips == 8, "others may have them by now"
    kept = account_of(world).chip_seconds - booked.chip_seconds - (world.held - held)
    assert kept == pytest.approx(beside * deadline, abs=beside * 61.0)


def account_of(world: World) -> Account:
    """Up to now."""
    return world.job.state.account.settled(world.now)


def test_what_is_kept_for_an_edit_is_neither_saved_nor_lost() -> None:
    world = edited(Placement("a10g", 16, 4), moved=True)
    before, at = saved(world), world.now
    rate = world.job.state.account.saving_per_hour
    assert world.job.state.account.chips == 16 and rate > 0.0
    stay(world, 0.1)
    assert saved(world) - before == pytest.approx(rate * (world.now - at) / HOUR, rel=0.01)
    account = account_of(world)
    there = account.counterfactual
    assert there is not None and there.speed
    by_parts = there.saved_before + there.dollars / there.speed - (account.spent - there.spent_before)
    assert account.saved == pytest.approx(by_parts, abs=1e-3)


def test_a_move_of_the_operators_own_that_waits_is_not_charged() -> None:
    world = counting()
    world.answers = False
    world.cycle(decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02)))
    world.cycle()
    assert world.job.state.migration is not None and world.job.state.migration.phase is Phase.CHECKPOINTING
    assert world.job.state.account.chips == 8
