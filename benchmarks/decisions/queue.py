"""The story of a queue: jobs come in half a day and wait for the eight chips of one node."""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.placement import Placement

Counts = dict[str, list[tuple[float, float]]]

CHIP: Final = "A100-SXM4-80GB"
STEP: Final = 60.0
COMING: Final = 12.0
HOURS: Final = 60.0
LARGE: Final = 6
"""One job in so many asks for all chips."""
DECLARED: Final = 1.5
"""What jobs say that they take at most, ÷ what they do."""


def queued(noise: str, seed: int, count: int) -> Counts:
    """While all chips are kept for a job of eight, jobs of one chip go first that end before these are free; nobody
    knows which do where they do not say it."""
    declared, unknown = (_run(noise, seed, count, declared=known) for known in (True, False))
    return {
        f"wait of {chips}, ends declared ÷ unknown": [(sum(declared[chips]), sum(unknown[chips]))] for chips in declared
    }


def _run(noise: str, seed: int, count: int, *, declared: bool) -> dict[str, list[float]]:
    pools = [pool("only", CHIP, 3.00, chips=8)]
    maker, simulator = Maker(seed, noise, pools, HOURS, step=STEP), world(pools)
    draw = np.random.default_rng([seed, 41])
    coming = []
    for number in range(count):
        chips, hours = (8 if number % LARGE == LARGE - 1 else 1), float(draw.exponential(2.5)) + 0.25
        most = {"activeDeadlineSeconds": int(DECLARED * hours * HOUR)} if declared else {}
        template = {"spec": {"containers": [{"name": "main"}]}}
        asked = {"job": {"chipsPerReplica": chips, "template": template, **most}}
        delay = COMING * HOUR * number / count
        job = maker.job("only", chips, started=False, delay=delay, workload=asked, adaptation={"mode": "Off"})
        job.total = job.rate(Placement("only", chips, 1)) * hours * HOUR
        coming.append((delay, job))
    while simulator.now < BEGAN + HOURS * HOUR:
        due = [job for delay, job in coming if BEGAN + delay <= simulator.now]
        for job in due:
            if job.job.key not in simulator.jobs:
                job.at = simulator.now
                simulator.add([job])
        simulator.run(simulator.now + 600.0)
    waits: dict[str, list[float]] = {"1 chip": [], "8 chips": []}
    for _, job in coming:
        gaps = job.truth.gaps
        waited = gaps[0][1] - gaps[0][0] if gaps else 0.0
        waits["1 chip" if job.job.spec.workload.chips == 1 else "8 chips"].append(waited / HOUR)
    return waits
