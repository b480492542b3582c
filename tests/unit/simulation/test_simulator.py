"""The simulator: jobs start, move, save and end as they would, and what they did is known."""

import pytest

from benchmarks.decisions.trace import Trace
from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.simulation.child import Delays
from rightpool.simulation.simulator import Simulator

CHIP = "A100-SXM4-80GB"
HERE = Placement("here", 4, 1)
AUTO = {"mode": "Auto"}


def fleet(*, there: float = 2.0, chips: int = 64) -> tuple[Simulator, Maker, Trace]:
    pools = [pool("here", CHIP, 3.0, chips), pool("there", CHIP, there, chips)]
    trace, simulator = Trace(), world(pools)
    simulator.watch = trace
    return simulator, Maker(1, "quiet", pools, 12.0), trace


def test_a_job_is_started_and_ends_when_its_work_is_done() -> None:
    simulator, maker, _ = fleet()
    job = maker.job("here", 4, total=1.0, started=False)
    job.total = 0.5 * HOUR * job.rate(HERE)
    simulator.add([job])
    simulator.run(BEGAN + HOUR)
    assert job.job.state.finished == "Completed"
    assert job.truth.finished_at == pytest.approx(BEGAN + 0.5 * HOUR, abs=300.0)
    assert job.truth.done == pytest.approx(job.total, rel=0.01)
    assert all(sum(made.free) == made.pool.total for made in simulator.pools.values())


def test_a_move_saves_first_and_pays_for_one_place_at_a_time() -> None:
    simulator, maker, trace = fleet()
    job = maker.job("here", 4, adaptation=AUTO)
    simulator.add([job])
    simulator.run(BEGAN + 3.0 * HOUR)
    [moved] = trace.left[job.job.key]
    assert (moved.source.pool, moved.target.pool) == ("here", "there")
    assert [outcome for _, outcome in trace.verdicts[job.job.key]] == [Outcome.VERIFIED]
    assert job.truth.done == job.truth.worked or job.truth.worked - job.truth.done < job.rate(HERE) * 120.0
    hours_there = 3.0 - (moved.at - BEGAN) / HOUR
    assert job.truth.spent == pytest.approx(4 * (3.0 * (3.0 - hours_there) + 2.0 * hours_there), rel=0.02)


def test_what_a_program_needs_to_load_is_lost() -> None:
    """Not only until its containers run."""
    simulator, maker, _ = fleet()
    job = maker.job("here", 4, adaptation=AUTO)
    job.delays = Delays(start=30.0, load=600.0)
    simulator.add([job])
    simulator.run(BEGAN + 3.0 * HOUR)
    (moved,) = job.job.state.history
    assert 600.0 < moved.lost_seconds < 800.0


def test_nothing_moves_where_nothing_is_saved() -> None:
    simulator, maker, trace = fleet(there=2.9)
    job = maker.job("here", 4, adaptation=AUTO)
    simulator.add([job])
    simulator.run(BEGAN + 2.0 * HOUR)
    assert not trace.left[job.job.key]


def test_an_operator_that_is_restarted_finishes_the_move() -> None:
    simulator, maker, trace = fleet()
    job = maker.job("here", 4, adaptation=AUTO)
    simulator.add([job])
    while simulator.now < BEGAN + 3.0 * HOUR:
        simulator.run(simulator.now + 60.0)
        if job.job.state.migration is not None:
            simulator.restart_operator()
    assert [moved.target.pool for moved in trace.left[job.job.key]][:1] == ["there"]
    assert len(job.children) == 1


def test_pods_wait_where_no_node_has_room() -> None:
    simulator, maker, _ = fleet(there=3.0, chips=8)
    jobs = [maker.job("here", 8, total=1e12, started=False) for _ in range(3)]
    simulator.add(jobs)
    simulator.run(BEGAN + HOUR)
    running = [job for job in jobs if any(child.nodes is not None for child in job.children.values())]
    assert len(running) == 2
    assert all(free >= 0 for made in simulator.pools.values() for free in made.free)


def test_spot_nodes_that_are_taken_away_end_what_is_on_them() -> None:
    """What no save holds is done again, and pods find no chips until other nodes come."""
    pools = [pool("here", CHIP, 3.0, 8, spot=True)]
    simulator, maker = world(pools), Maker(1, "quiet", pools, 12.0)
    job = maker.job("here", 4, placement={"capacity": "Spot"})
    job.saves_every = 1200.0
    simulator.add([job])
    simulator.run(BEGAN + HOUR)
    done, saved = job.truth.done, job.truth.saved
    assert 0.0 < saved < done
    pools[0].take(simulator.now, simulator.now + 900.0)
    simulator.run(simulator.now + 600.0)
    (child,) = job.children.values()
    seen = child.seen(simulator.now, job.delays)
    assert job.truth.done == saved and seen.disrupted_at == BEGAN + HOUR
    assert seen.unschedulable_since is not None and seen.holding == 0 and pools[0].seen(simulator.now).free == 0
    simulator.run(simulator.now + 1200.0)
    assert job.truth.done > saved and job.truth.spent == pytest.approx(12.0 * 1.25, rel=0.02), (
        "nothing is paid while there are none"
    )
