"""A job that was measured, in its evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from rightpool.api.estimate import Estimate
from rightpool.api.placement import Placement
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import unit_of
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.evaluation import Evaluated
from rightpool.planning.offers.flops import PeakExceeded, flops_utilization, full_rate, peak_exceeded
from rightpool.planning.offers.gates import GATES, TARGET_CODES
from rightpool.planning.offers.offers import Offers
from rightpool.planning.offers.register import COMPARED, FIRST_COMPARED, FIRST_KEPT, NONE
from rightpool.planning.offers.rejection import Rejection
from rightpool.planning.offers.rows import Row
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.planning.work.outlook import Outlook
from rightpool.prediction.cost import cost_per_million
from rightpool.prediction.predictor import ORIGINS


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredJob(Evaluated):
    """One row of the running jobs, and its entries."""

    number: int = field(kw_only=True)
    """Its place among the running jobs."""

    @property
    def unreachable(self) -> JobTarget | None:
        """By its code."""
        return TARGET_CODES.get(int(self.evaluation.running.unreachable[self.number]))

    @property
    def outlook(self) -> Outlook:
        """What the rest of a job that was measured looks like."""
        numbers, row = self.evaluation.running.numbers, self.number
        limits = numbers.limits
        columns = (numbers.work_left, numbers.restart, numbers.horizon, limits["deadline"], limits["budget"])
        return Outlook(*(float(column[row]) for column in columns))

    @property
    def nears(self) -> bool:
        """As the columns say."""
        return bool(self.evaluation.running.nears[self.number])

    @property
    def hour(self) -> float:
        """What it is worth to have it sooner, its price at most, and its price."""
        running = self.evaluation.running
        if running.unpriced[self.number]:
            return 0.0
        price = _known(running.numbers.price[self.number]) or 0.0
        return min(float(running.value[self.number]), price) + price

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
        useful, demand = self.useful(placement), float(self.evaluation.running.numbers.demand[self.number])
        cost = None if rate is None or price is None else cost_per_million(rate.at_most(demand), price / useful)
        vendor, home = self.vendors(placement)
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
            origin=ORIGINS[0 if asked < 0 else int(prediction.origin[asked])],
            unit=unit,
            vendor=vendor,
            chip=self.chip(placement),
            template_vendor=home,
        )

    def _flops_utilization(self, rate: float, placement: Placement) -> float | None:
        if self._peak_exceeded() is not None:
            return None
        machines = self.evaluation.register.machines
        chip = machines.pools[machines.index[placement.pool]].accelerator
        return flops_utilization(self.job, rate, placement.chips, chip)

    def _peak_exceeded(self) -> PeakExceeded | None:
        running, machines, revision = (
            self.evaluation.running,
            self.evaluation.register.machines,
            self.job.state.revision,
        )
        at = int(running.current.predicted[self.number])
        if at < 0 or revision is None or revision.placement.pool not in machines.index:
            return None
        chip = machines.pools[machines.index[revision.placement.pool]].accelerator
        return peak_exceeded(self.job, float(running.prediction.median[at]), revision.placement, chip)

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
        return GATES[code - 1].explain(self._row(offers, entry, here=here))

    def _row(self, offers: Offers, entry: int, *, here: bool) -> Row:
        running, machines, number = self.evaluation.running, self.evaluation.register.machines, self.number
        numbers, asked = running.numbers, int(offers.predicted[entry])
        placement = self.evaluation.register.placements[offers.option[entry]]
        price = self.price(placement)
        rate = math.nan if asked < 0 else float(running.prediction.median[asked]) * self.useful(placement)
        hourly = math.nan if price is None else price
        pool = machines.pools[machines.index[placement.pool]]
        full = full_rate(self.job, placement.chips, pool.accelerator)
        return Row(
            job=self.job,
            home=machines.pools[numbers.home[number]],
            pool=pool,
            placement=placement,
            now=self.evaluation.now,
            current=here,
            rate=rate,
            cost=hourly / 3600.0 * 1e6 / min(rate, float(numbers.demand[number])),
            efficiency=float(offers.efficiency[entry]),
            full=math.nan if full is None else full * self.useful(placement),
            price=hourly,
            work_left=float(numbers.work_left[number]),
            restart=0.0 if here else float(numbers.restart[number]),
            limits={field: float(limit[number]) for field, limit in numbers.limits.items()},
            memory=float(numbers.memory[number]),
            memory_measured=bool(numbers.memory_measured[number]),
        )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
