"""The story of spot capacity that is taken away much more often than anybody has said."""

from __future__ import annotations

from typing import Final

from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.placement import CapacityType
from rightpool.simulation.child import Delays
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.simulator import Simulator

Counts = dict[str, list[tuple[float, float]]]

CHIP: Final = "A100-SXM4-80GB"
EVERY: Final = 3.0
"""Hours between two times that all nodes of the pool are taken away."""
AWAY: Final = 600.0
"""Seconds until others come."""
HOURS: Final = 36.0
SLOW: Final = Delays(start=300.0, load=2400.0)
STEP: Final = 60.0


def taken(noise: str, seed: int, count: int) -> Counts:
    """A day and a half of spot capacity that is 10% cheaper, and is taken away every three hours. Half of the jobs are
    back at work within minutes, and are right to stay; the others load for three quarters of an hour, and pay more
    there than on demand."""
    (simulator, jobs), (_, staying) = (_run(noise, seed, count, mode) for mode in ("Auto", "Off"))
    slow, quick = jobs[::2], jobs[1::2]
    saved = [
        (
            job.job.state.account.settled(simulator.now).saved,
            job.truth.done * twin.truth.spent / twin.truth.done - job.truth.spent,
        )
        for job, twin in zip(slow, staying[::2], strict=True)
    ]
    return {
        "slow to restart, on demand in the end": [(sum(not _on_spot(job) for job in slow), len(slow))],
        "quick to restart, on spot in the end": [(sum(map(_on_spot, quick)), len(quick))],
        "saved where spot is taken": saved,
        "cost against staying where spot is taken": [
            (job.truth.spent, job.truth.done * twin.truth.spent / twin.truth.done)
            for job, twin in zip(jobs, staying, strict=True)
        ],
    }


def _run(noise: str, seed: int, count: int, mode: str) -> tuple[Simulator, list[SimulatedJob]]:
    pools = [pool("spot", CHIP, 2.70, spot=True), pool("demand", CHIP, 3.00)]
    maker, simulator = Maker(seed, noise, pools, HOURS, step=STEP), world(pools)
    jobs = []
    for number in range(count):
        job = maker.job(
            "spot",
            4,
            placement={"capacity": "Any"},
            adaptation={"mode": mode, "maxMoves": 1000, "cooldown": "0s"},
            profiling={"interval": "1m", "window": "5m"},
        )
        job.delays, job.saves_every = (SLOW, Delays())[number % 2], 300.0
        jobs.append(job)
    simulator.add(jobs)
    at = EVERY / 2.0
    while at < HOURS:
        simulator.run(BEGAN + at * HOUR)
        simulator.pools["spot"].take(simulator.now, simulator.now + AWAY)
        at += EVERY
    simulator.run(BEGAN + HOURS * HOUR)
    return simulator, jobs


def _on_spot(job: SimulatedJob) -> bool:
    revision = job.job.state.revision
    return revision is not None and revision.placement.capacity is CapacityType.SPOT
