"""A job that was measured, in its evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rightpool.api.estimate import Estimate
from rightpool.api.placement import Placement
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import unit_of
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.entries import Entries
from rightpool.planning.offers.evaluation import Evaluated
from rightpool.planning.offers.flops import PeakExceeded, flops_utilization, full_rate, peak_exceeded
from rightpool.planning.offers.gates import GATES, TARGET_CODES
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

    number: int
    """Its place among the running jobs."""
    faded: float = 1.0
    """Its rate ÷ what it would be, were its pool as it was when the job was verified there."""

    @property
    def wanted(self) -> tuple[int, ...]:
        """As the columns say."""
        return self.evaluation.running.wanted[self.number]

    @property
    def places(self) -> tuple[Placement, ...]:
        """As the columns say."""
        return self.evaluation.running.places[self.number]

    @property
    def entries(self) -> range:
        """Its rows."""
        running = self.evaluation.running
        return range(int(running.first[self.number]), int(running.last[self.number]))

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

    def placement(self, entry: int) -> Placement:
        """By its number in the register."""
        return self.evaluation.register.placements[int(self.evaluation.running.entries.option[entry])]

    def saving(self, entry: int) -> float:
        """Share of the current score."""
        return float(self.evaluation.running.entries.saving[entry])

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
        return self._candidate(self.evaluation.running.entries, entry, here=False)

    def _candidate(self, entries: Entries, entry: int, *, here: bool) -> Candidate:
        prediction = self.evaluation.running.prediction
        placement = self.evaluation.register.placements[entries.option[entry]]
        price, asked = self.price(placement), int(entries.predicted[entry])
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
            scaling_efficiency=_known(entries.efficiency[entry]),
            flops_utilization=None if rate is None else self._flops_utilization(rate.median, placement),
            peak_exceeded=self._peak_exceeded() if here else None,
            score=_known(entries.score[entry]) if compares else None,
            saving=_known(entries.saving[entry]) if compares else None,
            probability=_known(entries.probability[entry]),
            rejection=self._rejection(entries, entry, here=here),
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

    def _rejection(self, entries: Entries, entry: int, *, here: bool) -> Rejection | None:
        code = int(entries.gate[entry])
        running = self.evaluation.running
        if code == NONE or code >= FIRST_KEPT:
            return self.evaluation.register.kept(code)
        if code >= FIRST_COMPARED:
            now = running.prediction.median[running.current.predicted[self.number]]
            return COMPARED[code - FIRST_COMPARED](self.job.spec.targets.objective, float(now))
        return GATES[code - 1].explain(self._row(entries, entry, here=here))

    def _row(self, entries: Entries, entry: int, *, here: bool) -> Row:
        running, machines, number = self.evaluation.running, self.evaluation.register.machines, self.number
        numbers, asked = running.numbers, int(entries.predicted[entry])
        placement = self.evaluation.register.placements[entries.option[entry]]
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
            efficiency=float(entries.efficiency[entry]),
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
