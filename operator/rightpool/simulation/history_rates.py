"""How fast jobs of a history are, everywhere: measured where they were, and predicted elsewhere by the product's model.

The model of the plan in a simulation, too: it is told the rates of now, and predicts others from them by the same
table, which it believes to be right. What is true may differ from it by what the prediction doubts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from rightpool.api.choices import Batch
from rightpool.api.ended_job import EndedJob, Stay
from rightpool.api.estimate import WINDOW
from rightpool.api.placement import Placement
from rightpool.api.traits import UNKNOWN_TRAITS
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.features import Features, features
from rightpool.prediction.machines import Layout, Machines
from rightpool.prediction.predictor import Destinations, Missing, Origin, Prediction, Predictor
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey
from rightpool.reporting.profile_status import readings_of

UNMEASURED_RATE: Final = 1.0
"""Units of work a second of a job of which none was measured: a unit is then a second of its longest stay."""

Draw = Callable[[str], float]
"""A number of the standard normal distribution for each name, the same whenever it is asked for."""


class Site(NamedTuple):
    """A place as predictions tell them apart."""

    pool: str
    """Name of the pool."""
    chips: int
    """How many."""
    per_group: int
    """That share a fast link."""
    groups: int
    """Of such chips."""


class SiteRate(NamedTuple):
    """What a job does there."""

    rate: float
    """Units of work a second; NaN where it can't be predicted."""
    sd: float
    """Standard deviation of the log, against its rate where it was measured."""
    common: tuple[tuple[str, float], ...] = ()
    """Of that, what is common to all jobs, by name."""


@dataclass(slots=True)
class JobRates:
    """The rates of one job."""

    name: str
    """Of the job."""
    record: EndedJob
    """What is known of it."""
    home: Stay
    """Where it was measured."""
    machines: Machines
    """All pools, those included that are not there any more."""
    model: Predictor
    """The product's."""
    draw: Draw
    """What differs from the prediction."""
    by_home: bool = False
    """Whether what was measured elsewhere than at home is left out: to see how well that is predicted."""
    _base: Features | None = None
    _known: dict[Site, SiteRate] = field(default_factory=dict)

    def predicted(self, sites: Sequence[Site]) -> list[SiteRate]:
        """What is believed of these places."""
        new = [site for site in dict.fromkeys(sites) if site not in self._known]
        if new:
            self._predict(new)
        return [self._known[site] for site in sites]

    def true(self, place: Placement) -> float:
        """Units of work a second there. Where nothing can be predicted, a chip does as much as one at home."""
        site = self.site(place)
        (found,) = self.predicted([site])
        if math.isnan(found.rate):
            return self.rate_at_home * place.chips / self.home.placement.chips
        if not found.sd:
            return found.rate
        shift = sum(loading * self.draw(name) for name, loading in found.common)
        own = math.sqrt(max(0.0, found.sd**2 - sum(loading**2 for _, loading in found.common)))
        return found.rate * math.exp(shift + own * self.draw(f"{self.name}@{place.pool}"))

    def site(self, place: Placement) -> Site:
        """The place as predictions tell them apart."""
        layout = Layout.of(place, self.machines.named[place.pool])
        return Site(place.pool, place.chips, layout.per_group, layout.groups)

    @property
    def rate_at_home(self) -> float:
        """Units of work a second where it was measured."""
        return self.home.rate or UNMEASURED_RATE

    def _predict(self, sites: Sequence[Site]) -> None:
        index, count = self.machines.index, len(sites)
        if self._base is None:
            self._base = self._features()
        found = self.model.predict(
            self._base,
            self.machines,
            Destinations(
                job=np.zeros(count, dtype=np.int64),
                pool=np.array([index[site.pool] for site in sites], dtype=np.int64),
                chips=np.array([site.chips for site in sites], dtype=np.int64),
                per_group=np.array([site.per_group for site in sites], dtype=np.int64),
                groups=np.array([site.groups for site in sites], dtype=np.int64),
                current=np.zeros(count, dtype=np.bool_),
                seen=np.full(count, np.nan),
                seen_sd=np.full(count, np.nan),
                other_program=np.zeros(count, dtype=np.bool_),
            ),
        )
        measured = {self.site(place): rate for place, rate in self._measured().items()}
        measured[self.site(self.home.placement)] = self.rate_at_home
        here = self.machines.pools[index[self.home.placement.pool]].accelerator.key
        for row, site in enumerate(sites):
            rate = measured.get(site)
            if rate is not None:
                self._known[site] = SiteRate(rate, 0.0)
            elif found.missing[row]:
                self._known[site] = SiteRate(math.nan, 0.0)
            else:
                there = self.machines.pools[index[site.pool]].accelerator.key
                common = tuple(
                    (f"{name.removesuffix(site.pool)}{here} and {there}", loading)
                    for name, loading in found.describe(row)[1]
                    if name != WINDOW and loading
                )
                sd = math.sqrt(max(0.0, float(found.sd[row]) ** 2 - float(found.shared[row])))
                self._known[site] = SiteRate(float(found.median[row]), sd, common)

    def _measured(self) -> dict[Placement, float]:
        if self.by_home:
            return {}
        return {stay.placement: stay.rate for stay in self.record.stays if stay.rate and stay is not self.home}

    def _features(self) -> Features:
        recorded = self.record.profile
        rate, pods = self.rate_at_home, self.home.placement.replicas
        readings = {} if recorded is None or self.home.rate is None else readings_of(recorded)
        readings.pop(Field.STEPS_PER_SECOND, None)
        readings[Field.SAMPLES_PER_SECOND] = Reading(rate, rate, rate, Quality.MEASURED)
        namespace, name = self.record.job.split("/", 1)
        traits = UNKNOWN_TRAITS if recorded is None or recorded.model is None else recorded.model
        profile = Profile(
            key=RevisionKey(namespace, name, 1),
            chips=self.home.placement.chips,
            steadiness=Steadiness.STEADY,
            window=300.0,
            covered=1.0,
            newest=self.home.end,
            pods=pods,
            expected=pods,
            readings=readings,
            traits=traits,
        )
        batch = Batch(self.record.spec.get("elasticity", {}).get("batch", Batch.PER_CHIP))
        return features([profile], [self.home.placement], [batch], self.machines, {0: self._measured()})


class HistoryRates:
    """A model that knows each job by the rate that it has now."""

    version = "history"

    def __init__(self) -> None:
        self._known: dict[float, tuple[JobRates, Placement]] = {}
        self._names: dict[tuple[str, Placement], float] = {}

    def know(self, rates: JobRates, place: Placement) -> float:
        """Its rate there, which no other job has."""
        key = rates.name, place
        known = self._names.get(key)
        if known is None:
            known = rates.true(place)
            while known in self._known:
                known = math.nextafter(known, math.inf)
            self._names[key], self._known[known] = known, (rates, place)
        return known

    def of_fleet(self, experience: Sequence[Comparison]) -> HistoryRates:
        """There is nothing to learn: the table has it."""
        return self

    def predict(self, jobs: Features, machines: Machines, targets: Destinations) -> Prediction:
        """By the tables of the jobs, from what each does where it is."""
        count = len(targets.job)
        median, sd = np.full(count, np.nan), np.zeros(count)
        names = [pool.name for pool in machines.pools]
        pools, chips = targets.pool.tolist(), targets.chips.tolist()
        inside, groups = targets.per_group.tolist(), targets.groups.tolist()
        whose = targets.job
        for number, rate in enumerate(jobs.rate.tolist()):
            rows = np.flatnonzero(whose == number)
            if not rows.size or rate not in self._known:
                continue
            rates, place = self._known[rate]
            sites = [Site(names[pools[row]], chips[row], inside[row], groups[row]) for row in rows]
            here, *there = rates.predicted([rates.site(place), *sites])
            off = 1.0 if math.isnan(here.rate) else rate / here.rate
            median[rows] = [found.rate * off for found in there]
            sd[rows] = [found.sd if site.pool != place.pool else 0.0 for site, found in zip(sites, there, strict=True)]
        before = ~np.isnan(targets.seen)
        median, sd = np.where(before, targets.seen, median), np.where(before, targets.seen_sd, sd)
        current = targets.current
        median, sd = np.where(current, jobs.rate[whose], median), np.where(current, 0.0, sd)
        origin = np.where(before, Origin.MEASURED_BEFORE, Origin.PREDICTED)
        return Prediction(
            median=median,
            sd=sd,
            shared=np.zeros(count),
            healthy=np.full(count, np.nan),
            missing=np.where(np.isnan(median), Missing.SPECIFICATIONS, Missing.NOTHING).astype(np.int8),
            origin=np.where(current, Origin.MEASURED_NOW, origin).astype(np.int8),
            describe=lambda row: ((), ()),
        )
