"""Trials in virtual time: pods beside those of a job, on chips of their own, for as long as they pay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rightpool.api.units import HOUR
from rightpool.planning.allocate.trials import Trials, others_wait, trials, who_waits
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.trial import TrialOffer, tried_there
from rightpool.simulation.child import SimulatedChild
from rightpool.simulation.chips import SimulatedPool
from rightpool.simulation.simulated_job import SimulatedJob

# How many results of a job are kept.
_KEPT: Final = 8


@dataclass(slots=True)
class SimulatedTrial:
    """One trial under way."""

    offer: TrialOffer
    """What it is for."""
    child: SimulatedChild
    """Its pods."""
    at: float
    """Until when it has been simulated, Unix seconds."""
    rates: list[float] = field(default_factory=list)
    """Readings from its first step on."""
    over: bool = False
    """Whether its pods are to end."""


@dataclass(slots=True)
class SimulatedTrials:
    """The trials of a fleet, all of whose jobs let their programs be tried."""

    longest: float
    """Seconds that may be measured in one."""
    under_way: dict[JobKey, SimulatedTrial] = field(default_factory=dict)
    """By job."""
    count: int = 0
    """Trials that have begun."""
    broken_off: int = 0
    """Those that ended because a job came to wait for their chips."""
    last: Trials | None = None
    """What was chosen in the last cycle."""
    spent: dict[JobKey, float] = field(default_factory=dict)
    """Dollars for their chips, by job."""

    def live(self, jobs: Mapping[JobKey, SimulatedJob], pools: Mapping[str, SimulatedPool], now: float) -> None:
        """Time passes until `now`. What is over has measured something."""
        for key, trial in list(self.under_way.items()):
            job, pool, place = jobs[key], pools[trial.child.placement.pool], trial.child.placement
            paid = now - trial.at
            self.spent[key] = self.spent.get(key, 0.0) + pool.charged * place.chips * paid / HOUR
            # The program is at another place of its data than the job itself: nothing is the same but how it varies.
            factors = job.noise(place.pool)
            while trial.at + job.step <= now + 1e-6:
                if not trial.over and trial.at >= trial.child.works_from(job.delays):
                    index = round((trial.at - job.began) / job.step) + len(factors) // 2
                    trial.rates.append(job.rate(place) * float(factors[index % len(factors)]))
                trial.at += job.step
            if trial.over:
                trial.child.release(pool)
                del self.under_way[key]
                self._measured(job, trial, pools, now)
            elif len(trial.rates) * job.step >= trial.offer.measured or job.truth.finished_at is not None:
                trial.over = True

    def _measured(
        self, simulated: SimulatedJob, trial: SimulatedTrial, pools: Mapping[str, SimulatedPool], now: float
    ) -> None:
        job, place = simulated.seen, trial.child.placement
        if job is None or job.state.revision is None or not trial.rates:
            return
        chips = pools[job.state.revision.placement.pool].pool.accelerator.key, pools[place.pool].pool.accelerator.key
        found = tried_there(job, place, trial.rates, len(trial.rates) * simulated.step, chips, now)
        if found is not None:
            simulated.tried = (*simulated.tried, found)[-_KEPT:]

    def plan(
        self, fleet: Fleet, assessments: Mapping[JobKey, Assessment], pools: Mapping[str, SimulatedPool], now: float
    ) -> None:
        """Trials begin, and those whose chips somebody waits for end."""
        waiting = who_waits(fleet, assessments)
        for key, trial in self.under_way.items():
            if others_wait(waiting, trial.child.placement.pool, key) and not trial.over:
                trial.over, trial.rates = True, []
                self.broken_off += 1
        may = {key: self.longest for key in fleet.jobs if key not in self.under_way}
        held = [trial.child.placement for trial in self.under_way.values()]
        self.last = trials(fleet, assessments, may, held, self.last)
        for key, offer in self.last.begin.items():
            child = SimulatedChild(0, offer.placement, now)
            if child.bind(pools[offer.placement.pool], now):
                self.under_way[key] = SimulatedTrial(offer, child, now)
                self.count += 1
