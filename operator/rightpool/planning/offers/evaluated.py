"""One job's part of an evaluation: where it could be, and what is known of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rightpool.api.estimate import Estimate
from rightpool.api.placement import Placement
from rightpool.api.work_unit import WorkUnit
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.planning.jobs.tenant import tenant_of
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.evaluation import Evaluation
from rightpool.planning.offers.experience import known_by_trial
from rightpool.planning.offers.flops import PeakExceeded, flops_utilization, peak_exceeded
from rightpool.planning.offers.gates import GATES
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.offers import SURE, Offers, OneOffer
from rightpool.planning.offers.pool_gates import home_vendor, placed_vendor
from rightpool.planning.offers.register import COMPARED, FIRST_COMPARED, FIRST_KEPT, NONE
from rightpool.planning.offers.rejection import Rejection
from rightpool.planning.offers.scores import useful_share
from rightpool.planning.offers.shape import Shape
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.planning.work.outlook import Outlook, interruption_seconds
from rightpool.prediction.columns import floats
from rightpool.prediction.cost import cost_per_million
from rightpool.prediction.predictor import ORIGINS, Origin


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """One job's part of an evaluation. Of one that was not measured, by prices and specifications alone."""

    evaluation: Evaluation
    """Of the whole fleet, which this is a part of."""
    job: Job
    """As it was evaluated."""
    intent: Intent
    """What a decision would be for."""
    until: float
    """Unix seconds until which time alone changes nothing."""
    decision: Decision | None
    """Where none of the placements is decided on; None where `select` finds it from the columns."""

    offers: Offers
    """Where it could be, among those of other jobs."""
    entries: range
    """Its rows, the best first."""
    wanted: Sequence[int] = ()
    """Rows that would be acted on, in order of preference."""
    places: tuple[Placement, ...] = ()
    """Where these are."""
    shown: bool = True
    """Whether where it is counts as a candidate, too."""
    disallowed: Rejection | None = None
    """Why the user does not allow where a job is that was not measured."""
    unreachable: JobTarget | None = None
    """The target that is missed where the job is and that no placement holds surely enough; None where none is."""
    nears: bool = False
    """Whether what is wanted comes nearer to a target that is unreachable, and meets none."""
    hour: float = 0.0
    """Dollars that an hour of the job is worth now, time included; 0 where that is not known."""
    faded: float | None = None
    """Its rate ÷ what it would be, were its pool as it was when the job was verified there; None of one that was not
    measured."""
    crowded: bool = False
    """Whether its pool is known to leave less of a rate than is predicted, as it is used now."""

    def placement(self, entry: int) -> Placement:
        """Where an entry is."""
        return self.evaluation.register.placements[int(self.offers.option[entry])]

    def saving(self, entry: int) -> float:
        """Share of the current score that an entry saves; 0 where nothing was measured."""
        return float(self.offers.saving[entry])

    def candidate(self, entry: int) -> Candidate:
        """One entry, with what rules it out whatever room there is."""
        return self._unmeasured(self.placement(entry), self.evaluation.register.kept(int(self.offers.gate[entry])))

    def made_current(self) -> Candidate | None:
        """What `current` gives, made anew."""
        revision = self.job.state.revision
        return self._unmeasured(revision.placement, self.disallowed) if self.shown and revision is not None else None

    def _unmeasured(self, placement: Placement, rejection: Rejection | None) -> Candidate:
        vendor, home = self.vendors(placement)
        price, chip = self.price(placement), self.chip(placement)
        return Candidate(
            placement, None, price, None, rejection=rejection, vendor=vendor, chip=chip, template_vendor=home
        )

    def current(self) -> Candidate | None:
        """Where the job is; None before its first start, and where its pool is not known."""
        return _current(self)

    def best(self) -> Candidate | None:
        """The best other placement that passes all gates; None where none does, or nothing was measured."""
        return None

    @property
    def outlook(self) -> Outlook | None:
        """What the rest of the job looks like; None where nothing was measured."""
        return None

    def _pool(self, placement: Placement) -> Pool | None:
        return self.evaluation.register.machines.named.get(placement.pool)

    def price(self, placement: Placement) -> float | None:
        """Dollars an hour of a placement; None where its pool or the price is not known."""
        pool = self._pool(placement)
        return None if pool is None else pool.price.hourly(placement)

    def useful(self, placement: Placement) -> float:
        """Share of the time that interruptions leave there; 1 where the pool is not known."""
        known = self._pool(placement) is not None
        often = self.evaluation.register.interruptions_of(placement, tenant_of(self.job)) if known else 0.0
        if not often:
            return 1.0
        return float(useful_share(floats(often), floats(interruption_seconds(self.job))))

    def chip(self, placement: Placement) -> str | None:
        """Key of its chips in the catalog; None where its pool is not known."""
        pool = self._pool(placement)
        return None if pool is None else pool.accelerator.key

    def vendors(self, placement: Placement) -> tuple[str | None, str | None]:
        """Who makes the chips of a placement, and, where a variant is used there, whose the template itself is taken to
        run on."""
        pool, ref = self._pool(placement), self.job.state.revision
        if pool is None:
            return None, None
        there = pool.accelerator.vendor
        if self.job.variant(there.name) is None:
            return there.name, None
        placed = placed_vendor(ref, None if ref is None else self._pool(ref.placement))
        home = home_vendor(Shape.of(self.job), self.evaluation.register.machines.pools, placed)
        return there.name, None if home == there else home.name


# The texts of one status ask for it about eight times in a row. Kept of a few jobs alone: it is larger than its row.
@lru_cache(maxsize=4)
def _current(evaluated: Evaluated) -> Candidate | None:
    return evaluated.made_current()


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredJob(Evaluated):
    """One row of the running jobs, and its entries."""

    number: int = field(kw_only=True)
    """Its place among the running jobs."""

    @property
    def outlook(self) -> Outlook:
        """What the rest of a job that was measured looks like."""
        numbers, row = self.offers.numbers, self.number
        limits = numbers.limits
        columns = (numbers.work_left, numbers.restart, numbers.horizon, limits["deadline"], limits["budget"])
        return Outlook(*(float(column[row]) for column in columns))

    def doubt(self, entry: int) -> float:
        """Standard deviation of the log of the rate there against the rate here; NaN where a gate rules the entry
        out."""
        worth = min(float(self.offers.rate[entry]), float(self.offers.numbers.demand[self.number]))
        return max(math.log(worth / float(self.offers.sure[entry])), 0.0) / SURE

    # --- views -------------------------------------------------------------------------------------------------------

    def made_current(self) -> Candidate | None:
        """Of its own row."""
        return self._candidate(self.evaluation.running.current, self.number, here=True)

    def best(self) -> Candidate | None:
        """The first that passes all gates."""
        first = int(self.evaluation.running.best[self.number])
        return None if first < 0 else self.candidate(first)

    def candidate(self, entry: int) -> Candidate:
        """By its columns."""
        return self._candidate(self.offers, entry, here=False)

    def _candidate(self, offers: Offers, entry: int, *, here: bool) -> Candidate:
        prediction = self.evaluation.running.prediction
        placement = self.evaluation.register.placements[offers.option[entry]]
        price, asked = self.price(placement), int(offers.predicted[entry])
        estimate = None if asked < 0 else prediction.estimate(asked)
        unit = unit_of(self.job)
        compares = here or self._compares(unit, placement)
        rate = estimate if isinstance(estimate, Estimate) and compares else None
        useful, demand = self.useful(placement), float(offers.numbers.demand[self.number])
        cost = None if rate is None or price is None else cost_per_million(rate.at_most(demand), price / useful)
        vendor, home = self.vendors(placement)
        origin = ORIGINS[0 if asked < 0 else int(prediction.origin[asked])]
        if origin is Origin.MEASURED_BEFORE and known_by_trial(self.job, placement.pool):
            origin = Origin.MEASURED_IN_TRIAL
        return Candidate(
            placement=placement,
            throughput=rate,
            cost_per_hour=price,
            cost_per_million=cost,
            healthy=None if asked < 0 else _known(prediction.healthy[asked]),
            useful=useful,
            scaling_efficiency=_known(offers.efficiency[entry]),
            flops_utilization=None if rate is None else self._flops_utilization(rate.median, placement),
            peak_exceeded=self._peak_exceeded() if here else None,
            score=_known(offers.score[entry]) if compares else None,
            saving=_known(offers.saving[entry]) if compares else None,
            probability=_known(offers.probability[entry]),
            rejection=self._rejection(offers, entry, here=here),
            origin=origin,
            unit=unit,
            vendor=vendor,
            chip=self.chip(placement),
            template_vendor=home,
        )

    def _flops_utilization(self, rate: float, placement: Placement) -> float | None:
        pool = self._pool(placement)
        if pool is None or self._peak_exceeded() is not None:
            return None
        return flops_utilization(self.job, rate, placement.chips, pool.accelerator)

    def _peak_exceeded(self) -> PeakExceeded | None:
        running, register = self.evaluation.running, self.evaluation.register
        at, here = running.current.predicted[self.number], register.placements[running.current.option[self.number]]
        pool = self._pool(here)
        if at < 0 or pool is None:
            return None
        return peak_exceeded(self.job, float(running.prediction.median[at]), here, pool.accelerator)

    def _compares(self, unit: WorkUnit, there: Placement) -> bool:
        """Whether throughput there says anything beside that of here."""
        revision = self.job.state.revision
        return revision is None or self.job.spec.compares(unit, revision.placement.chips, there.chips)

    def _rejection(self, offers: Offers, entry: int, *, here: bool) -> Rejection | None:
        code = int(offers.gate[entry])
        running = self.evaluation.running
        if code == NONE or code >= FIRST_KEPT:
            return self.evaluation.register.kept(code)
        if code >= FIRST_COMPARED:
            now = running.prediction.median[running.current.predicted[self.number]]
            return COMPARED[code - FIRST_COMPARED](self.job.spec.targets.objective, float(now))
        register = self.evaluation.register
        pools, placement = register.machines.pools, register.placements[offers.option[entry]]
        home, pool = pools[offers.numbers.home[self.number]], pools[offers.pool[entry]]
        offer = OneOffer(offers, entry, self.job, home, pool, placement, self.evaluation.now, here)
        return GATES[code - 1].explain(offer)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
