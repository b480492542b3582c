"""The story of jobs that slow each other on one pool: some of them are better off there, and all of them are not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from benchmarks.decisions.afterwards import CHIP, OFTEN, PROFILED, STEP, saved
from benchmarks.decisions.trace import Trace
from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world

Counts = dict[str, list[tuple[float, float]]]

HOURS: Final = 24.0
SHARED: Final = 3
"""Jobs that the storage of the cheaper pool serves at full speed. Of more each gets less, by the root of their number.
At 80% of the price four of them save 8% there, and five lose 3%."""


def slowing(noise: str, seed: int, count: int, hours: float = HOURS) -> Counts:
    """A day, with the limits that a fleet has by default. As many jobs as are right go to the cheaper pool and stay
    there; few find out by themselves that they are one too many."""
    pools = [pool("home", CHIP, 3.00), pool("shared", CHIP, 2.40)]
    maker, trace = Maker(seed, noise, pools, hours, step=STEP), Trace()
    simulator = world(pools, {"defaultAdaptationMode": "Auto"})
    simulator.watch = trace
    jobs = [maker.job("home", 4, adaptation=OFTEN, profiling=PROFILED) for _ in range(count)]
    for job in jobs:
        assert job.job.state.revision is not None
        job.store(replace(job.job.state, revision=replace(job.job.state.revision, chip=CHIP)))

    def share() -> float:
        there = sum(
            child.placement.pool == "shared" and child.runs(simulator.now, job.delays)
            for job in jobs
            for child in job.children.values()
        )
        return min(1.0, math.sqrt(SHARED / max(there, 1)))

    for job in jobs:
        usual = job.rate
        job.rate = lambda place, usual=usual: usual(place) * (share() if place.pool == "shared" else 1.0)  # type: ignore[misc]
    simulator.add(jobs)
    simulator.run(BEGAN + hours * HOUR)
    back = sum(any(moved.rolled_back for moved in trace.left[job.job.key]) for job in jobs)
    counted = saved(simulator, jobs)
    return {
        "jobs back that slow each other": [(back, count)],
        "saved where jobs slow each other": counted,
        "cost against staying where jobs slow each other": [
            (job.truth.spent, job.truth.spent + truth) for job, (_, truth) in zip(jobs, counted, strict=True)
        ],
    }
