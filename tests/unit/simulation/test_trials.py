"""Trials: the program of a job is run elsewhere for some minutes, on chips that nobody waits for, where that pays."""

from __future__ import annotations

import pytest

from benchmarks.decisions.measures import BARS
from benchmarks.decisions.trace import Trace
from benchmarks.decisions.trials import tried
from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.placement import Placement
from rightpool.planning.offers.experience import measured_before
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.simulator import Simulator
from rightpool.simulation.trials import SimulatedTrials

A10G, A100 = "A10G-24GB", "A100-SXM4-80GB"
THERE = Placement("a100", 2, 1)
SLOWLY = {"interval": "5m", "window": "15m"}
LONGEST = 1800.0


def fleet(faster: float, chips: int = 64) -> tuple[Simulator, SimulatedTrials, Maker, SimulatedJob, Trace]:
    """A job of two A10Gs, on A100s `faster` times as fast, of which the model can't know whether they are cheaper."""
    pools = [pool("a10g", A10G, 1.006), pool("a100", A100, 2.40, chips)]
    simulator, trials, trace = world(pools), SimulatedTrials(LONGEST), Trace()
    simulator.trials, simulator.watch = trials, trace
    simulator.busy_cycle, simulator.idle_cycle = 60.0, 300.0
    maker = Maker(1, "quiet", pools, 12.0, step=300.0)
    job = maker.job("a10g", 2, adaptation={"mode": "Auto"}, profiling=SLOWLY)
    usual = job.rate(Placement("a10g", 2, 1))
    job.rate = lambda place: usual * (faster if place.pool == "a100" else 1.0) * place.chips / 2
    simulator.add([job])
    return simulator, trials, maker, job, trace


@pytest.mark.parametrize(("faster", "moves"), [(3.6, 1), (1.6, 0)])
def test_a_job_moves_for_what_was_measured_there(faster: float, moves: int) -> None:
    simulator, trials, _, job, trace = fleet(faster)
    simulator.run(BEGAN + 12.0 * HOUR)
    assert trials.count == 1
    (found,) = job.tried
    assert found.ratio == pytest.approx(faster, rel=0.05)
    assert [moved.target.pool for moved in trace.left[job.job.key]] == ["a100"] * moves
    assert not any(moved.rolled_back for moved in trace.left[job.job.key])
    assert 0.0 < trials.spent[job.job.key] <= 2 * 2.40 * (LONGEST + 900.0) / HOUR


def test_without_a_trial_such_a_job_stays() -> None:
    simulator, _, _, job, trace = fleet(3.6)
    simulator.trials = None
    simulator.run(BEGAN + 12.0 * HOUR)
    assert not trace.left[job.job.key]


def begun(chips: int = 64) -> tuple[Simulator, SimulatedTrials, Maker, SimulatedJob]:
    """A trial of the job is under way."""
    simulator, trials, maker, job, _ = fleet(3.6, chips)
    while not trials.under_way:
        simulator.run(simulator.now + 300.0)
        assert simulator.now < BEGAN + 12.0 * HOUR
    return simulator, trials, maker, job


def test_the_job_itself_goes_on_where_it_is() -> None:
    simulator, trials, _, job = begun()
    while trials.under_way:
        simulator.run(simulator.now + 60.0)
        assert [child.placement.pool for child in job.children.values()] == ["a10g"]
    assert not job.truth.gaps
    assert job.truth.done == job.truth.worked
    assert sum(simulator.pools["a100"].free) == 64


def test_a_trial_gives_its_chips_to_a_job_that_waits_for_them() -> None:
    simulator, trials, maker, _ = begun(chips=16)
    other = maker.job("a100", 8, started=False, delay=simulator.now - BEGAN, placement={"pools": {"allow": ["a100"]}})
    two = maker.job("a100", 8, started=False, delay=simulator.now - BEGAN, placement={"pools": {"allow": ["a100"]}})
    for late in (other, two):
        late.at = simulator.now
    simulator.add([other, two])
    simulator.run(simulator.now + 900.0)
    assert trials.broken_off == 1
    assert not trials.under_way
    assert all(late.job.state.revision is not None and late.job.state.revision.since for late in (other, two))


def test_none_begins_where_a_quarter_of_the_free_chips_is_too_few() -> None:
    simulator, trials, _, _, _ = fleet(3.6, chips=4 + 3)
    simulator.run(BEGAN + 12.0 * HOUR)
    assert trials.count == 0


def test_a_program_that_takes_no_step_there_is_not_tried_again() -> None:
    simulator, trials, _, job, trace = fleet(0.0)
    simulator.run(BEGAN + 12.0 * HOUR)
    assert trials.count == 1
    assert [found.ratio for found in job.tried] == [None]
    assert not trace.left[job.job.key]


def test_an_edited_program_forgets_its_trials() -> None:
    simulator, trials, _, job = begun()
    while trials.under_way:
        simulator.run(simulator.now + 60.0)
    pools = {name: made.seen(simulator.now) for name, made in simulator.pools.items()}
    seen = job.observed(pools, simulator.now)
    assert measured_before(seen, simulator.now, pools)[THERE].ratio == pytest.approx(3.6, rel=0.05)
    seen.workload_hash = "another"  # type: ignore[misc]
    assert THERE not in measured_before(seen, simulator.now, pools)


def test_an_operator_that_is_killed_goes_on_with_what_is_there() -> None:
    simulator, trials, _, job = begun()
    simulator.restart_operator()
    while trials.under_way:
        simulator.run(simulator.now + 60.0)
    simulator.run(simulator.now + 2 * HOUR)
    assert trials.count == 1
    assert len(job.tried) == 1


def test_the_story_counts_what_its_bars_are_about() -> None:
    """`python -m benchmarks.decisions --story trials` has it for 200 jobs and a week."""
    counts = tried("ar-10m", 1, 2, hours=3.0)
    assert counts.keys() <= BARS.keys()
    with_trials, without = (counts[f"share of the oracle's saving, {how} trials"] for how in ("with", "without"))
    assert len(with_trials) == len(without) == 2
    assert all(saved <= most + 1.0 and most >= 0.0 for saved, most in (*with_trials, *without))
