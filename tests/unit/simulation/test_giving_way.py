"""Giving way: a job that runs makes room for one that is worth more, and grows again, whenever the operator dies."""

from __future__ import annotations

import pytest

from benchmarks.decisions.trace import Trace
from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.simulator import Simulator

CHIP = "A100-SXM4-80GB"


def story() -> tuple[Simulator, SimulatedJob, SimulatedJob, Trace]:
    """A wide job on all chips that there are, which lets others have some, and one that comes later."""
    pools = [pool("here", CHIP, 3.0, 8)]
    trace, simulator, maker = Trace(), world(pools), Maker(1, "quiet", pools, 12.0)
    simulator.watch, simulator.allocator = trace, FleetAllocator()
    wide = maker.job(
        "here",
        8,
        elasticity={"minChips": 4, "maxChips": 8, "batch": "Global"},
        adaptation={"mode": "Auto", "yield": "Move"},
        targets={"objective": "Balanced"},
    )
    late = maker.job(
        "here",
        4,
        total=1.0,
        delay=2.0 * HOUR,
        started=False,
        elasticity={"minChips": 4, "maxChips": 4, "batch": "Global"},
    )
    late.total = HOUR * late.rate(Placement("here", 4, 1))
    return simulator, wide, late, trace


def _under_way(job: SimulatedJob) -> bool:
    """Whether it is not measured after a move yet: windows are memory."""
    migration = job.job.state.migration
    return migration is not None and migration.phase not in (Phase.WARMING_UP, Phase.VERIFYING)


@pytest.mark.parametrize("dies", [False, True], ids=["", "restarted-in-every-cycle-of-a-move"])
def test_a_wide_job_makes_room_after_a_save_and_grows_again(dies: bool) -> None:
    simulator, wide, late, _ = story()
    simulator.add([wide])
    simulator.run(BEGAN + 2.0 * HOUR)
    simulator.add([late])
    sizes = []
    while simulator.now < BEGAN + 8.0 * HOUR:
        simulator.run(simulator.now + 60.0)
        if dies and _under_way(wide):
            simulator.restart_operator()
        revision = wide.job.state.revision
        assert revision is not None
        if not sizes or sizes[-1] != revision.placement.chips:
            sizes.append(revision.placement.chips)
        assert sum(child.placement.chips for job in (wide, late) for child in job.children.values() if child.nodes) <= 8
    assert late.job.state.finished == "Completed"
    assert sizes == [8, 4, 8]
    gave, grew = wide.job.state.history
    assert (gave.outcome, gave.reason) == (Outcome.CARRIED_OUT, Reason.FLEET_GAINS)
    assert grew.outcome in (Outcome.CARRIED_OUT, Outcome.VERIFIED)
    assert gave.realised_throughput is not None, "what it does at the size is known from then on"
