"""What a planner did in a trace, beside the published run of the same trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from benchmarks.fleet.application import Application
from benchmarks.fleet.operated import operated
from benchmarks.fleet.published import CLUSTER, Result, arrivals
from benchmarks.fleet.tiers import Planned
from benchmarks.fleet.work import BestBatch
from rightpool.simulation.rounds import Decide, RoundJob, play

TIERS: Mapping[str, tuple[Callable[[], Decide], Mapping[str, float]]] = {
    "planner": (Planned, {"hours": 0.83, "dollars": 0.82, "p99": 1.05}),
    "operator": (operated, {"hours": 0.88, "dollars": 0.90}),
}
"""By name: how a trace is played, and what the mean of its ratios may be at most. The planner by itself knows the true
rates and the work that is left of every job, and nothing limits it; the operator knows them of jobs that have begun,
and has the limits that a fleet gets by default."""


def played(folder: Path, applications: Mapping[str, Application], trace: str, tier: str) -> Result:
    """A trace, in one tier."""
    jobs = [RoundJob(one.name, one.came, BestBatch(applications[one.application])) for one in arrivals(folder, trace)]
    play(jobs, {name: chips.total for name, chips in CLUSTER.items()}, TIERS[tier][0]())
    return result(jobs)


def result(jobs: Sequence[RoundJob]) -> Result:
    """Of jobs that have ended."""
    hours = np.array([job.seconds for job in jobs]) / 3600.0
    held = [(pool, seconds / 3600.0) for job in jobs for pool, seconds in job.held.items()]
    return Result(
        hours=float(hours.mean()),
        p99=float(np.percentile(hours, 99)),
        makespan=max(job.done or 0 for job in jobs) / 3600.0,
        chip_hours=sum(count for _, count in held) / len(jobs),
        dollars=sum(CLUSTER[pool].price * count for pool, count in held) / len(jobs),
        restarts=sum(job.restarts for job in jobs) / len(jobs),
    )


def ratios(ours: Result, published: Result) -> dict[str, float]:
    """By name of the number; restarts as they are."""
    found = {field.name: getattr(ours, field.name) / getattr(published, field.name) for field in fields(Result)}
    return found | {"restarts": ours.restarts}
