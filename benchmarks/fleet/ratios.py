"""What a planner did in a trace, beside the published run of the same trace."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from benchmarks.fleet.application import Application
from benchmarks.fleet.deadlines import REPLAYED, Deadlines
from benchmarks.fleet.operated import operated
from benchmarks.fleet.own_model import OwnModel
from benchmarks.fleet.published import CLUSTER, TRACES, Result, arrivals
from benchmarks.fleet.tiers import Planned
from benchmarks.fleet.views import ModelView
from benchmarks.fleet.work import BestBatch, OwnBatch
from rightpool.simulation.rounds import Decide, EpochWork, RoundJob, play


@dataclass(frozen=True, slots=True)
class Tier:
    """What is known, and by whom."""

    bars: Mapping[str, float]
    """What the mean of each number may be at most."""
    decide: Callable[[Deadlines | None], Decide]
    """Who decides, anew for each trace; given are the ends of its jobs, where they were published."""
    work: Callable[[], Callable[[Application], EpochWork]] = lambda: BestBatch
    """What the jobs of a trace do."""
    traces: Sequence[str] = TRACES
    """Those that it can be played on."""


def _learning() -> Callable[[Application], EpochWork]:
    """Jobs of one application that learn from each other, from nothing in each trace."""
    models: dict[str, dict[str, OwnModel]] = {}
    gradients: dict[str, dict[int, tuple[float, float]]] = {}

    def work(application: Application) -> EpochWork:
        name = application.name
        return OwnBatch(application, models=models.setdefault(name, {}), gradients=gradients.setdefault(name, {}))

    return work


TIERS: Mapping[str, Tier] = {
    "planner": Tier({"hours": 0.83, "dollars": 0.82, "p99": 1.05}, lambda _: Planned()),
    "operator": Tier({"hours": 0.88, "dollars": 0.90}, lambda _: operated()),
    "learned": Tier({"hours": 0.90, "dollars": 0.87}, lambda _: Planned(ModelView(), 40.0), _learning),
    "sia-free": Tier({"hours": 0.93, "dollars": 0.91}, lambda _: Planned(ModelView(), 32.0), lambda: OwnBatch),
    "sia": Tier({"hours": 0.96, "dollars": 0.92}, lambda _: Planned(ModelView(doubling=True), 32.0), lambda: OwnBatch),
    "deadlines": Tier({"dollars": 0.82, "late": 0.08}, lambda ends: Planned(deadlines=ends), traces=REPLAYED),
}
"""By name. The planner by itself knows the true rates and the work that is left of every job, and nothing limits it;
the operator knows the rates of jobs that have begun, and has the limits that a fleet gets by default. Three are the
planner with less knowledge, of jobs that choose their batches themselves: with what earlier jobs of the application
have seen; with what each job has seen by itself; and, as Sia, with its rule that a job at most doubles. The last is the
planner with the end of each job in the published run for its deadline. Who knows less needs a higher value of an hour
for the same time: docs/lab/benchmarks.md has figures of both."""


def played(folder: Path, applications: Mapping[str, Application], trace: str, tier: str) -> Result:
    """A trace, in one tier."""
    work, deadlines = TIERS[tier].work(), Deadlines.of(folder, trace) if trace in REPLAYED else None
    jobs = [RoundJob(one.name, one.came, work(applications[one.application])) for one in arrivals(folder, trace)]
    play(jobs, {name: chips.total for name, chips in CLUSTER.items()}, TIERS[tier].decide(deadlines))
    late = math.nan if deadlines is None else deadlines.late({job.name: job.seconds for job in jobs})
    return replace(result(jobs), late=late)


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
    """By name of the number; restarts and who is late as they are."""
    found = {field.name: getattr(ours, field.name) / getattr(published, field.name) for field in fields(Result)}
    return found | {"restarts": ours.restarts, "late": ours.late}
