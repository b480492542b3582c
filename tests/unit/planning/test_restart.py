"""A job that does not start where it was placed, or whose pool is gone by then: it goes elsewhere, tries each place
once, and comes to rest."""

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.evaluate import evaluate
from rightpool.planning.offers.readiness import late
from rightpool.prediction.step_model import StepModelPredictor
from tests.unit.planning.jobs import FOUR, NOW, POOLS, assess, changed, decision_and_text, fleet, running
from tests.unit.planning.world import A10G, A100, World, candidate, decide, spec

# Nothing that holds back the operator's own moves holds back a start.
STRICT = PlacementPolicySpec.model_validate(
    {"defaultAdaptationMode": "Off", "maxConcurrentMigrations": 0, "maxMovesPerHour": 0, "startDeadline": "5m"}
)


def judged(world: World, pools: dict[str, Pool]) -> Assessment:
    return assess(world.observed(), pools, world.policy, world.now)


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
        ref = world.job.state.revision
        if ref is not None and (not tried or tried[-1] != ref.placement):
            tried.append(ref.placement)
    return tried


def first(world: World) -> str:
    target = judged(world, POOLS).decision.target
    assert target is not None
    return target.pool


def test_an_edit_before_the_child_is_made_that_is_taken_back_afterwards() -> None:
    """A Revision is made of the template that it was planned with, or not at all."""
    world = stuck()
    world.cycle(judged(world, POOLS))
    world.children.clear()  # planned and written down, and the child was not made in that cycle
    for edit in ("h2", "h1"):
        world.job = replace(world.job, workload_hash=edit, generation=world.job.generation + 1)
        for _ in range(20):
            world.live(5.0)
            world.cycle(judged(world, POOLS))
            world.check()
        revision = world.job.state.revision
        assert revision is not None
        child = world.children[revision.revision]
        assert child.running > 0 and child.workload_hash == edit


def test_it_goes_elsewhere_and_stays_where_it_starts() -> None:
    bad = first(stuck())
    world = stuck(bad)
    tried = run(world, 3600.0)
    assert len(tried) == 2 and tried[0].pool == bad != tried[1].pool
    assert (
        world.job.state.migration is None
        and world.job.state.revision is not None
        and world.job.state.revision.since is not None
    )
    entry = world.job.state.history[-1]
    assert (entry.action, entry.outcome, entry.reason) == (
        Action.START,
        Outcome.CARRIED_OUT,
        Reason.START_DEADLINE_EXCEEDED,
    )
    assert "does not start on" in entry.message
    assert world.job.state.moves == 0 and [avoided.pool for avoided in world.job.state.avoid] == [bad]


def test_where_nothing_starts_each_place_is_tried_once_and_then_it_waits() -> None:
    world = stuck("a100", "a10g", "tpu")
    tried = run(world, 2 * 3600.0)
    assert len(tried) == len(set(tried)) >= 2
    assert world.job.state.migration is None
    assert judged(world, POOLS).decision.reason is Reason.STARTING
    resting = world.job
    run(world, 3600.0)
    assert world.job == resting


def test_what_starts_after_all_is_left_where_it_is() -> None:
    bad = first(stuck())
    world = stuck(bad)
    while world.job.state.migration is None:
        world.live(30.0)
        world.cycle(judged(world, POOLS))
    assert world.job.state.migration.phase is Phase.PLANNED and world.job.state.revision is not None
    world.children[1].stuck = False
    world.live(30.0)
    run(world, 600.0)
    assert world.job.state.revision.placement.pool == bad and world.job.state.avoid == ()
    assert world.job.state.history[-1].outcome is Outcome.SUPERSEDED


@pytest.mark.parametrize("pools", [{}, {"a10g": replace(POOLS["a10g"], free=0)}])
def test_without_another_place_it_waits_where_it_is(pools: dict[str, Pool]) -> None:
    bad = "a100"
    only = {bad: POOLS[bad], **pools}
    world = stuck(bad)
    assert [place.pool for place in run(world, 3600.0, only)] == [bad]
    assert judged(world, only).decision.reason is Reason.STARTING


def test_being_slow_is_no_reason_to_go() -> None:
    world = stuck("a100", "a10g", "tpu")
    run(world, 120.0)
    slow = world.observed()
    state = replace(slow.observed.revisions[1], blocked=None)
    assert not late(changed(slow, revisions={1: state}), STRICT, world.now + 1e6)


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


# --- the pool is gone ------------------------------------------------------------------------------------------------


def without(*pools: str) -> dict[str, Pool]:
    return {name: pool for name, pool in POOLS.items() if name not in pools}


def lost(world: World, pool: str) -> dict[str, Pool]:
    """From now on it is not there."""
    world.gone_pools = {pool}
    return without(pool)


def lost_at_the_start() -> World:
    """A job that was placed on a pool that was gone before its child was made."""
    world = stuck()
    world.cycle(judged(world, POOLS), killed_before=0)
    return world


def test_a_job_whose_pool_is_gone_before_it_starts_goes_elsewhere_after_the_deadline() -> None:
    world = lost_at_the_start()
    assert world.job.state.revision is not None
    gone = world.job.state.revision.placement.pool
    left = lost(world, gone)
    run(world, 290.0, left)
    decision, text = decision_and_text(judged(world, left))
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.NO_FEASIBLE_POOL)
    assert f"pool {gone} is gone" in text and "startDeadline" in text
    tried = run(world, 600.0, left)
    assert [place.pool == gone for place in tried] == [True, False]
    assert world.job.state.migration is None and world.job.state.revision.since is not None
    assert [(entry.action, entry.outcome) for entry in world.job.state.history] == [(Action.START, Outcome.CARRIED_OUT)]
    assert f"pool {gone} is gone" in world.job.state.history[-1].message
    assert world.job.state.avoid == (), "nothing was tried there: it is welcome once it is back"


def test_a_pool_that_is_back_in_time_is_started_on() -> None:
    world = lost_at_the_start()
    assert world.job.state.revision is not None
    gone = world.job.state.revision.placement.pool
    run(world, 200.0, lost(world, gone))
    world.gone_pools = set()
    assert [place.pool for place in run(world, 600.0)] == [gone]
    assert world.job.state.history == () and world.job.state.revision.since is not None


def test_where_nothing_else_is_allowed_it_waits_and_says_for_what() -> None:
    world = lost_at_the_start()
    assert world.job.state.revision is not None
    gone = world.job.state.revision.placement.pool
    only = {"placement": {"pools": {"allow": [gone]}}, "elasticity": {"minChips": 8, "maxChips": 8}}
    world.job = replace(world.job, spec=spec(**only))
    left = lost(world, gone)
    run(world, 3600.0, left)
    decision, text = decision_and_text(judged(world, left))
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.NO_FEASIBLE_POOL)
    assert f"pool {gone} is gone: declare it again" in text and "placement.pools.allow" in text
    resting = world.job
    run(world, 3600.0, left)
    assert world.job == resting and world.job.state.history == ()
    world.gone_pools = set()
    run(world, 300.0)
    assert world.job.state.revision.since is not None and world.created == [1]


def running_on(pool: str, *others: str) -> World:
    world = stuck(placement={"pools": {"allow": [pool, *others]}})
    run(world, 120.0)
    assert (
        world.job.state.revision is not None
        and world.job.state.revision.placement.pool == pool
        and world.job.state.revision.since is not None
    )
    return world


def edited_and_lost() -> World:
    """A user's edit has ended the old Revision, and the pool of the new one is gone."""
    world = running_on("a100", "a10g")
    world.job = replace(world.job, workload_hash="h2", generation=2)
    while world.job.state.migration is None or world.job.state.migration.phase is not Phase.STARTING:
        world.live(5.0)
        world.cycle(judged(world, POOLS), killed_before=0 if world.job.state.migration else None)
        if world.job.state.migration is not None and world.job.state.migration.phase is Phase.DRAINING:
            world.gone_pools = {"a100"}
            world.cycle()
    return world


def test_an_edit_whose_pool_is_gone_by_then_ends_and_the_job_starts_elsewhere() -> None:
    world = edited_and_lost()
    run(world, 250.0, without("a100"))
    assert world.job.state.migration is not None and world.job.state.migration.action is Action.UPDATE
    run(world, 1200.0, without("a100"))
    assert world.job.state.migration is None and world.job.state.revision is not None
    assert world.job.state.revision.placement.pool == "a10g" and world.job.state.revision.since is not None
    assert [(entry.action, entry.outcome, entry.reason) for entry in world.job.state.history] == [
        (Action.UPDATE, Outcome.FAILED, Reason.START_DEADLINE_EXCEEDED),
        (Action.START, Outcome.CARRIED_OUT, Reason.START_DEADLINE_EXCEEDED),
    ]
    assert all("pool a100 is gone" in entry.message for entry in world.job.state.history)
    assert set(world.children) == {world.job.state.revision.revision} and world.job.workload_hash == "h2"


def turning_back(**world_is: object) -> World:
    """A move that is being undone, whose old pool is gone by the time that the target is left."""
    world = running_on("a100", "a10g")
    world.policy = world.policy.model_copy(update={"max_concurrent_migrations": 10})
    for name, value in world_is.items():
        setattr(world, name, value)
    world.cycle(decide(Action.MOVE, replace(A10G, replicas=1), 900.0, candidate(A100, 1000.0, 0.02)))
    while world.job.state.migration is not None and not world.job.state.migration.rolling_back:
        world.live(5.0)
        world.cycle()
    assert world.job.state.migration is not None
    world.gone_pools = {"a100"}
    return world


def test_the_way_back_to_a_pool_that_is_gone_ends_on_what_was_only_slow() -> None:
    world = turning_back(rates={"a100": 1000.0, "a10g": 100.0})
    run(world, 1800.0, without("a100"))
    assert world.job.state.migration is None and world.job.state.revision is not None
    assert world.job.state.revision.placement.pool == "a10g" and world.job.state.revision.since is not None
    assert [(entry.action, entry.outcome) for entry in world.job.state.history] == [
        (Action.MOVE, Outcome.FAILED),
        (Action.START, Outcome.CARRIED_OUT),
    ]
    assert (
        "pool a100 is gone" in world.job.state.history[0].message
        and "on the way back" in world.job.state.history[0].message
    )
    assert set(world.children) == {world.job.state.revision.revision}


def test_the_way_back_to_a_pool_that_is_gone_does_not_try_again_what_did_not_start() -> None:
    world = turning_back(stuck_pools={"a10g"})
    run(world, 3600.0, without("a100"))
    assert world.job.state.migration is None
    assert [entry.outcome for entry in world.job.state.history] == [Outcome.FAILED]
    decision, text = decision_and_text(judged(world, without("a100")))
    assert decision.reason is Reason.NO_FEASIBLE_POOL and "pool a100 is gone" in text
    assert "tried and left" in text
    world.gone_pools = set()
    run(world, 600.0)
    assert (
        world.job.state.revision is not None
        and world.job.state.revision.placement.pool == "a100"
        and world.job.state.revision.since is not None
    )


def test_what_runs_where_the_pool_is_gone_is_left_alone() -> None:
    world = running_on("a100", "a10g")
    before = world.job
    left = lost(world, "a100")
    run(world, 3600.0, left)
    assert changed(world.job, account=before.state.account) == before and set(world.children) == {1}
    world.children.clear()  # and somebody deletes it
    run(world, 600.0, left)
    assert (
        world.job.state.revision is not None
        and world.job.state.revision.placement.pool == "a10g"
        and world.job.state.revision.since is not None
    )


def test_where_it_does_not_start_is_no_other_place() -> None:
    """Also of the first job that is looked at, before any placement has its number."""
    fixed = spec(elasticity={"minChips": 4, "maxChips": 4})
    blocked = RevisionState(1, True, active=1, nodes={}, blocked="no room", started_at=NOW - 3600.0)
    job = running(FOUR, made=fixed, revisions={1: blocked})
    assert job.state.revision is not None
    job = changed(job, revision=replace(job.state.revision, since=None))
    evaluated = evaluate(fleet([job]), StepModelPredictor())[job.key]
    assert evaluated.places and FOUR not in evaluated.places
