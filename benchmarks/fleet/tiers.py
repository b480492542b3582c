"""What the planner is told of the jobs of a trace, and how it is driven through the rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.fleet.deadlines import Deadlines
from benchmarks.fleet.published import CLUSTER, placements
from benchmarks.fleet.views import View, true_rates
from benchmarks.fleet.work import application_of
from rightpool.api.placement import Placement
from rightpool.planning.allocate.allocator import AllocationProblem, Allocator, Choice, MarketMembers
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.allocate.market import NOTHING, Stake
from rightpool.planning.allocate.surplus import CHANGES_FADE_SECONDS
from rightpool.planning.jobs.job import JobKey
from rightpool.simulation.rounds import RoundJob

VALUE = 29.0
"""Dollars that an hour of the last job in line is worth. It moves plans between time and dollars; with this much, both
bars are equally far on traces drawn from those it was tuned on."""
PLAN_SECONDS = 120
"""A plan is made when a job has come or ended, and after so long."""
PLACES = placements()
_NUMBER = {place: number for number, place in enumerate(PLACES)}


@dataclass(slots=True)
class Changes:
    """Changes of one job."""

    count: float = 0.0
    """The less the longer ago."""
    at: int = 0
    """Until when that is counted."""

    def now(self, now: int) -> float:
        """How many there are."""
        return self.count * math.exp(-(now - self.at) / CHANGES_FADE_SECONDS)

    def add(self, now: int) -> None:
        """One more."""
        self.count, self.at = self.now(now) + 1.0, now


@dataclass(slots=True)
class Planned:
    """The operator's allocator, which is told the true rates with the best batch and the work that is left."""

    view: View = true_rates
    """What it knows of the jobs."""
    value: float = VALUE
    """Dollars an hour."""
    deadlines: Deadlines | None = None
    """By which jobs have to end; None: they are worth the value instead."""
    allocator: Allocator = field(default_factory=FleetAllocator)
    """The operator's."""
    last: Choice | None = None
    """The last plan."""
    changes: dict[str, Changes] = field(default_factory=dict)
    """By name of the job."""
    planned_at: int = -PLAN_SECONDS
    """When the last plan was made."""

    def __call__(self, now: int, there: Sequence[RoundJob], changed: bool) -> Mapping[str, Placement | None]:
        """What each job gets."""
        if not changed and now - self.planned_at < PLAN_SECONDS:
            return {job.name: job.place for job in there}
        self.planned_at = now
        chips = {name: kind.total for name, kind in CLUSTER.items()}
        for job in there:
            if job.place is not None:
                chips[job.place.pool] -= job.place.chips
        held = {name: kind.total - chips[name] for name, kind in CLUSTER.items()}
        members = MarketMembers(PLACES, tuple(self._stake(job, now) for job in there), held)
        problem = AllocationProblem({}, lambda: {name: {name: free} for name, free in chips.items()}, lambda: members)
        self.last = self.allocator.share(problem, self.last)
        granted = {grant.key: grant.place for grant in self.last.grants}
        given = {job.name: granted.get(_key(job), job.place) for job in there}
        for job in there:
            if job.started and given[job.name] != job.place:
                self.changes.setdefault(job.name, Changes()).add(now)
        return given

    def _stake(self, job: RoundJob, now: int) -> Stake:
        application = application_of(job)
        known = self.view(job)
        prices = np.array([CLUSTER[place.pool].price * place.chips for place in application.places])
        value, changes = self.value, self.changes.get(job.name)
        if self.deadlines is not None:
            here = None if job.place is None else application.places.index(job.place)
            value = self.deadlines.value(job, now, known, prices, here)
        return Stake(
            key=_key(job),
            places=np.array([_NUMBER[place] for place in application.places]),
            rates=known.rates,
            prices=prices,
            left=known.left,
            value=value,
            here=NOTHING if job.place is None else _NUMBER[job.place],
            started=job.started,
            restart=float(application.restart),
            changes=0.0 if changes is None else changes.now(now),
        )


def _key(job: RoundJob) -> JobKey:
    return JobKey("", job.name)
