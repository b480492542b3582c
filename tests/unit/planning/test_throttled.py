"""A job on chips that a fault throttles: what healthy ones would do is predicted, and nothing false is learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.api.state import JobState
from rightpool.api.units import HOUR
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.beginning import with_decision
from rightpool.planning.moves.ending import end_migration
from rightpool.planning.offers.experience import fleet_experience, measured_before
from rightpool.prediction.predictor import Origin
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.track import Track
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.premise_texts import premise_text
from tests.unit.planning.jobs import NOW, POOLS, changed, decided_text, entry, find, judged, running
from tests.unit.planning.world import A10G as EIGHT_A10G
from tests.unit.planning.world import A100 as EIGHT_A100
from tests.unit.planning.world import World, candidate, decide, on_a100, variation
from tests.unit.prediction.fixtures import A100_CHIP, pool

ONE: Final = Placement("a100", 1, 1)
TWIN: Final = Placement("twin", 1, 1)
TWINS: Final = {"a100": POOLS["a100"], "twin": pool("twin", A100_CHIP, 4.0)}
HOT: Final = {"throttle": 1.0, "thermal_throttle": 1.0, "clock": 0.34, "chip_busy": 1.0}
"""At 40% of the clocks that healthy chips reach."""
CAPPED: Final = {"throttle": 0.0, "power_capped": 1.0, "clock": 0.34, "chip_busy": 1.0}


def on_one(ratios: dict[str, float], rate: float = 1000.0, **fields: object) -> Job:
    return running(ONE, rate, ratios=ratios, **fields)  # type: ignore[arg-type]


def test_a_job_leaves_a_throttled_pool_for_the_same_chips() -> None:
    found = judged(on_one(HOT), TWINS)
    assert (found.decision.action, found.decision.target) == (Action.MOVE, TWIN)
    healthy = find(found, "twin", 1).throughput
    assert healthy is not None and healthy.median == pytest.approx(1000.0 * 2.5**0.55, rel=0.02)
    assert "throttled here at 40% of healthy clocks" in map(premise_text, healthy.basis)
    assert "(throttled at 60%: healthy ones would give 1655)" in decided_text(found)


@pytest.mark.parametrize("ratios", [CAPPED, HOT | {"throttle": 0.1}, HOT | {"clock": 0.9}, {"chip_busy": 1.0}])
def test_a_power_cap_is_no_reason_to_leave(ratios: dict[str, float]) -> None:
    found = judged(on_one(ratios), TWINS)
    assert found.decision.action is Action.KEEP and "throttled" not in decided_text(found)


def test_other_chips_are_predicted_by_what_healthy_ones_would_do_and_less_surely() -> None:
    hot, cool = (find(judged(on_one(ratios)), "a10g", 1).throughput for ratios in (HOT, CAPPED))
    assert hot is not None and cool is not None
    assert hot.median == pytest.approx(cool.median * 2.5**0.55, rel=0.02) and hot.sd > cool.sd + 0.03
    counted = {"compute_active": 0.85, "memory_bandwidth": 0.05}
    whole = find(judged(on_one(HOT | counted), TWINS), "twin", 1).throughput
    assert whole is not None and whole.median > 2000.0, "counters say that it is arithmetic that limits it"
    bound = find(judged(on_one(HOT | {"compute_active": 0.85, "memory_bandwidth": 0.88}), TWINS), "twin", 1)
    assert bound.throughput is not None and bound.throughput.median < 1200.0, "memory has a clock of its own"


def test_another_size_of_the_same_pool_may_meet_the_same_fault() -> None:
    sizes = [find(judged(on_one(ratios)), "a100", 2).throughput for ratios in (HOT, CAPPED)]
    assert sizes[0] is not None and sizes[1] is not None
    assert sizes[0].median == pytest.approx(sizes[1].median)


def test_a_fault_whose_clocks_nobody_tells_is_doubt_above_all() -> None:
    found = find(judged(on_one({"throttle": 0.6, "chip_busy": 1.0}), TWINS), "twin", 1).throughput
    assert found is not None and found.low < 1000.0 < found.median < 1200.0


def test_what_windows_before_the_fault_say_is_not_made_faster_still() -> None:
    """It did 1,655 for two hours, and is throttled since a window ago."""
    job = on_one(HOT, variation=variation(1, 1655.0, NOW, windows=24))
    found = judged(job, TWINS)
    healthy, now = find(found, "twin", 1).throughput, found.current
    assert healthy is not None and healthy.median == pytest.approx(1655.0, rel=0.02)
    assert now is not None and now.throughput is not None and now.throughput.median == 1000.0
    assert now.throughput.sd > 0.05, "one window"


def left(job: Job) -> LedgerEntry:
    """The ledger's entry of the move that the job's assessment begins, verified at 1,600 samples/s."""
    begun = with_decision(job, judged(job, TWINS), NOW, decision_text)
    assert begun.state.migration is not None
    migration = replace(begun.state.migration, realised=1600.0, doubt=0.03)
    return end_migration(begun, migration, Outcome.VERIFIED, Reason.DELIVERED, NOW).state.history[-1]


def test_the_ledger_says_what_healthy_chips_would_have_done() -> None:
    found = left(on_one(HOT))
    assert found.baseline_throughput == 1000.0
    assert found.healthy_baseline_throughput == pytest.approx(1655.0, rel=0.01)
    assert JobState.from_dict(JobState(history=(found,)).to_dict()).history[0].healthy_baseline_throughput is not None


def test_what_was_measured_of_a_fault_is_of_that_pool_alone() -> None:
    past = left(on_one(HOT))
    there = running(TWIN, 1600.0, history=(past,), pools=TWINS)
    known = measured_before(there, NOW, POOLS)[ONE]
    assert known.ratio == pytest.approx(1000.0 / 1600.0) and not known.of_chips
    found = judged(there, TWINS)
    assert find(found, "a100", 1).origin is Origin.MEASURED_BEFORE, "it does not go back at once"
    alone = judged(changed(there, history=()), TWINS)
    with_it, without_it = (find(one, "twin", 2).throughput for one in (found, alone))
    assert with_it is not None and without_it is not None
    assert (with_it.median, with_it.sd) == (without_it.median, without_it.sd)


@pytest.mark.parametrize("fields", [{"healthy_baseline_throughput": 250.0}, {"throttled": True}])
def test_a_fleet_learns_nothing_of_chips_from_a_fault(fields: dict[str, float]) -> None:
    move = entry(
        Outcome.VERIFIED, NOW, source=ONE, target=Placement("a10g", 1, 1), baseline_throughput=100.0,
        realised_throughput=90.0, source_chip=POOLS["a100"].accelerator.key, source_work=1.0,
        target_chip=POOLS["a10g"].accelerator.key, target_work=1.0,
    )  # fmt: skip
    jobs = [running(Placement("a10g", 1, 1), 90.0, history=(move,))]
    assert len(fleet_experience(jobs, POOLS, NOW)) == 1
    jobs = [running(Placement("a10g", 1, 1), 90.0, history=(replace(move, **fields),))]  # type: ignore[arg-type]
    assert fleet_experience(jobs, POOLS, NOW) == []


def test_what_a_job_did_before_a_fault_goes_before_what_is_predicted_of_healthy_chips() -> None:
    """It did 2,000 here at its verdict, and 5,000 where it came from. The fault takes more than its clocks tell."""
    move = entry(
        Outcome.VERIFIED,
        NOW - HOUR,
        source=Placement("a10g", 1, 1),
        target=ONE,
        baseline_throughput=5000.0,
        realised_throughput=2000.0,
        doubt=0.02,
    )
    known = measured_before(on_one(HOT, history=(move,)), NOW, POOLS)
    assert known[move.source].ratio == pytest.approx(5.0) and not known[move.source].of_chips
    found = judged(on_one(HOT, history=(move,)))
    there, here = find(found, "a10g", 1), found.current
    assert there.origin is Origin.MEASURED_BEFORE
    assert there.throughput is not None and there.throughput.median == pytest.approx(5000.0, rel=0.02)
    assert here is not None and here.healthy == pytest.approx(2000.0, rel=0.02), "predicted are 1,655"
    arrived = replace(move, throttled=True)
    again = measured_before(on_one(HOT, history=(arrived,)), NOW, POOLS)
    assert again[move.source].ratio == pytest.approx(2.5) and ONE not in again, "the fault was there already"
    assert move.source not in measured_before(on_one(CAPPED, history=(arrived,)), NOW, POOLS)


def test_the_hour_before_a_fault_is_what_healthy_chips_give() -> None:
    track = Track()
    for minute in range(90):
        track.add(Sample(NOW - 5400.0 + 60.0 * minute, {Field.SAMPLES: 2400.0 * 60.0 * minute}), 1)
    job = changed(on_one(HOT))
    track.throttle(NOW - 600.0, 300.0)
    track.throttle(NOW - 500.0, 300.0)
    assert track.throttled_from == NOW - 600.0
    here = judged(replace(job, observed=job.observed._replace(track=track))).current
    assert here is not None and here.healthy == pytest.approx(2400.0, rel=0.02)


def test_a_verdict_on_throttled_chips_is_marked() -> None:
    """The move is undone, since it did not pay; what it says of the chips is nothing."""
    world = on_a100()
    world.rates["a10g"], world.throttled_pools = 150.0, {"a10g"}
    world.cycle(decide(Action.MOVE, EIGHT_A10G, 900.0, candidate(EIGHT_A100, 1000.0, 0.02)))
    world.settle()
    found = world.job.state.history[-1]
    assert (found.outcome, found.throttled) == (Outcome.ROLLED_BACK, True)
    assert found.healthy_baseline_throughput is None


def test_a_fault_that_comes_after_the_decision_is_no_baseline() -> None:
    """Nothing tells what healthy chips would do in its place, and they were measured before."""
    world = on_a100()
    world.cycle(decide(Action.MOVE, EIGHT_A10G, 900.0, candidate(EIGHT_A100, 1000.0, 0.02)))
    world.rates["a100"], world.throttled_pools = 400.0, {"a100"}
    world.settle()
    found = world.job.state.history[-1]
    assert (found.baseline_throughput, found.predicted_throughput) == (1000.0, 900.0)
    assert found.healthy_baseline_throughput is None


def test_an_edit_of_the_size_on_throttled_chips_links_nothing() -> None:
    world = on_a100()
    world.throttled_pools = {"a100"}
    world.cycle(decide(Action.UPDATE, Placement("a100", 4, 1), 800.0))
    world.settle()
    found = world.job.state.history[-1]
    assert (found.outcome, found.baseline_throughput, found.doubt) == (Outcome.CARRIED_OUT, None, None)


def waiting(world: World, promised: float, healthy: float | None = None) -> World:
    """The decision to go to the A10G pool, which waits for its approval."""
    before = replace(candidate(EIGHT_A100, world.rates["a100"], 0.02), healthy=healthy)
    world.cycle(decide(Action.MOVE, EIGHT_A10G, promised, before))
    world.settle()
    return world


def approved(world: World) -> LedgerEntry:
    """The ledger's entry of the move that waits, carried out."""
    world.job = replace(world.job, approved="d-2")
    world.settle()
    return world.job.state.history[-1]


def on_hot_a100(**overrides: object) -> World:
    """Eight A100 at half of what they do without the fault, which is 1,000 samples/s."""
    world = World.fresh(adaptation={"requireApproval": True}, **overrides)
    world.counts, world.rates, world.throttled_pools = True, {"a100": 500.0, "a10g": 900.0}, {"a100"}
    world.placed(EIGHT_A100, 500.0).settle()
    return world


def repaired(world: World, cycles: int) -> World:
    """So many times five seconds after the fault."""
    world.rates["a100"], world.throttled_pools = 1000.0, set()
    world.settle(cycles)
    return world


def test_chips_that_were_repaired_since_the_decision_are_a_measured_baseline() -> None:
    world = repaired(waiting(on_hot_a100(), 900.0, healthy=1000.0), 100)
    found = approved(world)
    assert (found.outcome, found.healthy_baseline_throughput) == (Outcome.VERIFIED, None)
    assert found.baseline_throughput == pytest.approx(1000.0, rel=1e-3)
    assert found.predicted_throughput == pytest.approx(900.0, rel=1e-3), "the promise was of healthy chips"
    assert world.job.state.account.saving_per_hour == pytest.approx(40.0 * 0.9 - 8.0, rel=1e-2)


def test_until_repaired_chips_were_measured_the_prediction_stands() -> None:
    world = repaired(waiting(on_hot_a100(), 900.0, healthy=1000.0), 2)
    found = approved(world)
    assert (found.baseline_throughput, found.healthy_baseline_throughput) == (500.0, 1000.0)
    assert world.job.state.account.saving_per_hour == pytest.approx(40.0 * 0.9 - 8.0, rel=1e-2)


def test_a_fault_that_came_and_went_before_the_approval_is_no_baseline() -> None:
    world = waiting(repaired(on_hot_a100(), 200), 900.0)
    world.rates["a100"], world.throttled_pools = 500.0, {"a100"}
    world.settle()
    found = approved(repaired(world, 100))
    assert found.baseline_throughput == pytest.approx(1000.0, rel=1e-3)
    assert found.predicted_throughput == pytest.approx(900.0, rel=1e-3)


@pytest.mark.parametrize("since", [100, 2])
def test_what_a_fault_cost_before_the_decision_is_not_saved(since: int) -> None:
    """Most of the hour before the move is of throttled chips."""
    world = waiting(repaired(on_hot_a100(), since), 900.0)
    assert approved(world).outcome is Outcome.VERIFIED
    assert world.job.state.account.saving_per_hour == pytest.approx(40.0 * 0.9 - 8.0, rel=1e-2)


def test_what_a_fault_costs_after_the_decision_is_not_saved() -> None:
    world = waiting(repaired(on_hot_a100(), 200), 900.0)
    world.rates["a100"], world.throttled_pools = 100.0, {"a100"}
    world.settle(12)
    assert approved(world).baseline_throughput == 1000.0
    assert world.job.state.account.saving_per_hour == pytest.approx(40.0 * 0.9 - 8.0, rel=1e-2)


def saved_an_hour(world: World, healthy: float | None) -> float:
    """What a verified move from eight A100 at 1,000 samples/s to eight A10G at 900 saves."""
    before = replace(candidate(EIGHT_A100, 1000.0, 0.02), healthy=healthy)
    world.cycle(decide(Action.MOVE, EIGHT_A10G, 900.0, before))
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED
    return world.job.state.account.saving_per_hour


def test_saved_is_against_what_healthy_chips_would_have_done() -> None:
    assert saved_an_hour(on_a100(), None) == pytest.approx(40.0 * 0.9 - 8.0, rel=1e-3)
    throttled = on_a100()
    throttled.throttled_pools = {"a100"}
    assert saved_an_hour(throttled, 2000.0) == pytest.approx(40.0 * 0.45 - 8.0, rel=1e-3)
