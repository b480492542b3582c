"""The story of trials: a fleet on mixed chips for a week, whose jobs let their programs be tried, and one without that.

True rates on other chips are drawn from the model's own prediction and doubt, and are the same in both fleets.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks.decisions.trace import Trace
from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.placement import Placement
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.trials import SimulatedTrials

Counts = dict[str, list[tuple[float, float]]]

WEEK: Final = 168.0
LONGEST: Final = 3600.0
"""Seconds that a trial may measure."""
STEP: Final = 300.0
CYCLES: Final = (120.0, 600.0)
"""Seconds between cycles while a job is moved, and otherwise: a week is long, and is not about minutes."""
PROFILED: Final = {"interval": "5m", "window": "15m"}


def tried(noise: str, seed: int, count: int, hours: float = WEEK) -> Counts:
    """What the chips of trials cost is paid like all others."""
    without, undone_without = _fleet(noise, seed, count, hours, None)
    trials = SimulatedTrials(LONGEST)
    saved, undone = _fleet(noise, seed, count, hours, trials)
    return {
        "share of the oracle's saving, with trials": saved,
        "share of the oracle's saving, without trials": without,
        "moves undone, with trials ÷ without": [(undone, undone_without)],
    }


def _fleet(
    noise: str, seed: int, count: int, hours: float, trials: SimulatedTrials | None
) -> tuple[list[tuple[float, float]], int]:
    """By job, dollars saved and those that an oracle saves; and moves that were undone."""
    pools = [
        pool("a100", "A100-SXM4-80GB", 3.43, 4096),
        pool("a100-reserved", "A100-SXM4-80GB", 2.40, 4096),
        pool("h100", "H100-SXM5-80GB", 6.88, 4096),
        pool("l40s", "L40S-48GB", 1.86, 4096),
        pool("a10g", "A10G-24GB", 1.006, 4096),
    ]
    maker, trace, simulator = Maker(seed, noise, pools, hours, error=1.0, step=STEP), Trace(), world(pools)
    simulator.watch, simulator.trials = trace, trials
    simulator.busy_cycle, simulator.idle_cycle = CYCLES
    draw = np.random.default_rng([seed, 7])
    jobs: list[tuple[Placement, SimulatedJob]] = []
    for _ in range(count):
        name, chips = str(draw.choice(["a100", "a100", "h100", "l40s", "a10g"])), int(draw.choice([1, 2, 4, 8]))
        made = maker.job(name, chips, adaptation={"mode": "Auto"}, profiling=PROFILED)
        jobs.append((Placement(name, chips, 1), made))
    simulator.add(job for _, job in jobs)
    simulator.run(BEGAN + hours * HOUR)
    prices = {made.pool.name: made.pool.price.on_demand or 0.0 for made in pools}
    saved = []
    for home, job in jobs:
        factor = float(np.mean(job.noise(home.pool)))
        costs = {
            name: price * home.chips / (job.rate(Placement(name, home.chips, 1)) * factor) / HOUR
            for name, price in prices.items()
        }
        paid = job.truth.spent + (0.0 if trials is None else trials.spent.get(job.job.key, 0.0))
        stay, oracle = costs[home.pool] * job.truth.done, min(costs.values()) * job.truth.done
        saved.append((stay - paid, stay - oracle))
    return saved, sum(moved.rolled_back for moves in trace.left.values() for moved in moves)
