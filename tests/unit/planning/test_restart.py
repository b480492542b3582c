"""A job that does not start where it was placed: it goes elsewhere, tries each place once, and comes to rest."""

from dataclasses import replace

import pytest

from rightpool.api.conditions import Reason
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.assess import Assessment, assess
from rightpool.planning.decision import Action
from rightpool.planning.ledger import Outcome
from rightpool.planning.migration import Phase
from rightpool.planning.start import late
from tests.unit.planning.jobs import POOLS
from tests.unit.planning.world import World

# Nothing that holds back the operator's own moves holds back a start.
STRICT = PlacementPolicySpec.model_validate(
    {"defaultAdaptationMode": "Off", "maxConcurrentMigrations": 0, "maxMovesPerHour": 0, "startDeadline": "5m"}
)


def judged(world: World, pools: dict[str, Pool]) -> Assessment:
    return assess(world.observed(), pools, world.policy, world.now, {})


def stuck(*pools: str, **overrides: object) -> World:
    world = World.fresh(**({"elasticity": {"minChips": 8, "maxChips": 8}} | overrides))
    world.policy = STRICT
    world.rates = {"a100": 1000.0, "a10g": 900.0}
    world.stuck_pools = set(pools)
    return world


def run(world: World, seconds: float, pools: dict[str, Pool] = POOLS) -> list[Placement]:
    """Every placement that had a Revision, in order."""
    tried: list[Placement] = []
    end = world.now + seconds
    while world.now < end:
        world.live(30.0)
        world.cycle(judged(world, pools))
        world.check()
        ref = world.job.ref
        if ref is not None and (not tried or tried[-1] != ref.placement):
            tried.append(ref.placement)
    return tried


def first(world: World) -> str:
    target = judged(world, POOLS).decision.target
    assert target is not None
    return target.pool


def test_it_goes_elsewhere_and_stays_where_it_starts() -> None:
    bad = first(stuck())
    world = stuck(bad)
    tried = run(world, 3600.0)
    assert len(tried) == 2 and tried[0].pool == bad != tried[1].pool
    assert world.job.migration is None and world.job.ref is not None and world.job.ref.since is not None
    entry = world.job.history[-1]
    assert (entry.action, entry.outcome, entry.reason) == (
        Action.START,
        Outcome.CARRIED_OUT,
        Reason.START_DEADLINE_EXCEEDED,
    )
    assert "does not start on" in entry.message
    assert world.job.moves == 0 and [avoided.pool for avoided in world.job.avoid] == [bad]


def test_where_nothing_starts_each_place_is_tried_once_and_then_it_waits() -> None:
    world = stuck("a100", "a10g", "tpu")
    tried = run(world, 6 * 3600.0)
    assert len(tried) == len(set(tried)) >= 2
    assert world.job.migration is None
    decision = judged(world, POOLS).decision
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.STARTING)
    resting = world.job
    run(world, 3600.0)
    assert world.job == resting


def test_what_starts_after_all_is_left_where_it_is() -> None:
    bad = first(stuck())
    world = stuck(bad)
    while world.job.migration is None:
        world.live(30.0)
        world.cycle(judged(world, POOLS))
    assert world.job.migration.phase is Phase.PLANNED and world.job.ref is not None
    world.children[1].stuck = False
    world.live(30.0)
    run(world, 600.0)
    assert world.job.ref.placement.pool == bad and world.job.avoid == ()
    assert world.job.history[-1].outcome is Outcome.SUPERSEDED


@pytest.mark.parametrize("pools", [{}, {"a10g": replace(POOLS["a10g"], free=0)}])
def test_without_another_place_it_waits_where_it_is(pools: dict[str, Pool]) -> None:
    bad = "a100"
    only = {bad: POOLS[bad], **pools}
    world = stuck(bad)
    assert [place.pool for place in run(world, 3600.0, only)] == [bad]
    assert judged(world, only).decision.action is Action.HOLD


def test_being_slow_is_no_reason_to_go() -> None:
    world = stuck("a100", "a10g", "tpu")
    run(world, 120.0)
    slow = world.observed()
    state = replace(slow.revisions[1], blocked=None)
    assert not late(replace(slow, revisions={1: state}), STRICT, world.now + 1e6)


def test_who_waits_in_a_queue_or_is_suspended_is_not_late() -> None:
    world = stuck("a100", "a10g", "tpu")
    run(world, 120.0)
    assert not late(world.observed(), STRICT, world.now)
    child = world.children[1]
    child.suspended, child.started_at = True, None  # as Kueue has it
    assert not late(world.observed(), STRICT, world.now + 1e6)
    child.suspended, child.started_at = False, world.now
    assert not late(world.observed(), STRICT, world.now + 299.0)
    assert late(world.observed(), STRICT, world.now + 301.0)
