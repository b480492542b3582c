"""An evaluation: every placement of every job of a fleet, in columns, and the view of one job in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rightpool.api.estimate import Estimate
from rightpool.api.placement import Placement
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.planning.judge.outlook import Outlook
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.entries import Entries, Running
from rightpool.planning.offers.flops import PeakExceeded, flops_utilization, full_rate, peak_exceeded
from rightpool.planning.offers.gates import GATES, TARGET_CODES
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.pool_gates import home_vendor, placed_vendor
from rightpool.planning.offers.register import COMPARED, FIRST_COMPARED, FIRST_KEPT, NONE, Register
from rightpool.planning.offers.rejection import Rejection
from rightpool.planning.offers.rows import Row
from rightpool.planning.offers.scores import useful_share
from rightpool.planning.offers.shape import Shape
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.prediction.columns import Ints, floats
from rightpool.prediction.cost import cost_per_million
from rightpool.prediction.predictor import ORIGINS


@dataclass(frozen=True, slots=True)
class UnmeasuredOptions:
    """Where jobs could be for which nothing was measured, in the order in which it would be tried."""

    option: Ints
    """A placement of the register."""
    gate: Ints
    """What rules it out, by the register's codes."""
    wanted: tuple[int, ...] = ()
    """Entries that would be acted on."""
    places: tuple[Placement, ...] = ()
    """Where they are."""


NOTHING = UnmeasuredOptions(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationBatch:
    """Evaluations that were made for one plan."""

    size: int
    """How many jobs they are of."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What evaluating some jobs of a fleet together gave. It is kept whole while one of its jobs is kept from it."""

    register: Register
    """What the numbers in the columns stand for."""
    running: Running
    """Of the jobs that were measured."""
    now: float
    """Unix seconds when it was made."""
    batch: EvaluationBatch
    """What it was made with."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """One job's part of an evaluation."""

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
    number: int = -1
    """Its place among the running jobs; -1 where it was not measured."""
    unmeasured: UnmeasuredOptions = NOTHING
    """Its entries where it was not measured."""
    shown: bool = False
    """Whether where it is counts as a candidate although nothing was measured."""
    disallowed: Rejection | None = None
    """Why the user does not allow where it is, where nothing was measured."""
    faded: float = 1.0
    """Its rate ÷ what it would be, were its pool as it was when the job was verified there."""

    @property
    def measured(self) -> bool:
        """Whether the job was; throughput is predicted of no other."""
        return self.number >= 0

    @property
    def wanted(self) -> tuple[int, ...]:
        """Entries that would be acted on, in order of preference."""
        return self.unmeasured.wanted if self.number < 0 else self.evaluation.running.wanted[self.number]

    @property
    def places(self) -> tuple[Placement, ...]:
        """Where the wanted entries are."""
        return self.unmeasured.places if self.number < 0 else self.evaluation.running.places[self.number]

    @property
    def entries(self) -> range:
        """All entries, the best first."""
        if self.number < 0:
            return range(len(self.unmeasured.option))
        running = self.evaluation.running
        return range(int(running.first[self.number]), int(running.last[self.number]))

    @property
    def unreachable(self) -> JobTarget | None:
        """The target that is missed where the job is and that no placement holds surely enough; None where none is."""
        code = NONE if self.number < 0 else int(self.evaluation.running.unreachable[self.number])
        return TARGET_CODES.get(code)

    @property
    def outlook(self) -> Outlook:
        """What the rest of a job that was measured looks like."""
        numbers, row = self.evaluation.running.numbers, self.number
        limits = numbers.limits
        columns = (numbers.work_left, numbers.restart, numbers.horizon, limits["deadline"], limits["budget"])
        return Outlook(*(float(column[row]) for column in columns))

    @property
    def nears(self) -> bool:
        """Whether what is wanted comes nearer to a target that is unreachable, and meets none."""
        return self.number >= 0 and bool(self.evaluation.running.nears[self.number])

    def placement(self, entry: int) -> Placement:
        """Where an entry is."""
        option = self.unmeasured.option if self.number < 0 else self.evaluation.running.entries.option
        return self.evaluation.register.placements[int(option[entry])]

    def saving(self, entry: int) -> float:
        """Share of the current score that an entry saves; 0 where nothing was measured."""
        return 0.0 if self.number < 0 else float(self.evaluation.running.entries.saving[entry])

    @property
    def hour(self) -> float:
        """Dollars that an hour of the job is worth now, time included."""
        running = self.evaluation.running
        if self.number < 0 or running.unpriced[self.number]:
            return 0.0
        price = _known(running.numbers.price[self.number]) or 0.0
        return min(float(running.value[self.number]), price) + price

    # --- views -------------------------------------------------------------------------------------------------------

    def current(self) -> Candidate | None:
        """Where the job is; None before its first start, and where its pool is not known."""
        return _current(self)

    def _current(self) -> Candidate | None:
        if self.number >= 0:
            running = self.evaluation.running
            return self._candidate(running.current, self.number, here=True)
        revision = self.job.state.revision
        if not self.shown or revision is None:
            return None
        return self._unpredicted(revision.placement, self.disallowed)

    def best(self) -> Candidate | None:
        """The best other placement that passes all gates; None where none does, or nothing was measured."""
        first = -1 if self.number < 0 else int(self.evaluation.running.best[self.number])
        return None if first < 0 else self.candidate(first)

    def candidate(self, entry: int) -> Candidate:
        """One entry, with what rules it out whatever room there is."""
        if self.number >= 0:
            return self._candidate(self.evaluation.running.entries, entry, here=False)
        placement = self.placement(entry)
        code = int(self.unmeasured.gate[entry])
        rejection = None if code == NONE else self.evaluation.register.rejections[code - FIRST_KEPT]
        return self._unpredicted(placement, rejection)

    def _unpredicted(self, placement: Placement, rejection: Rejection | None) -> Candidate:
        vendor, home = self._vendors(placement)
        price = self.price(placement)
        chip = self._chip(placement)
        return Candidate(
            placement, None, price, None, rejection=rejection, vendor=vendor, chip=chip, template_vendor=home
        )

    def price(self, placement: Placement) -> float | None:
        """Dollars an hour of a placement; None where its pool or the price is not known."""
        machines = self.evaluation.register.machines
        place = machines.index.get(placement.pool)
        return None if place is None else machines.pools[place].price.hourly(placement)

    def _chip(self, placement: Placement) -> str | None:
        machines = self.evaluation.register.machines
        place = machines.index.get(placement.pool)
        return None if place is None else machines.pools[place].accelerator.key

    def _vendors(self, placement: Placement) -> tuple[str | None, str | None]:
        """Who makes the chips of a placement, and, where a variant is used there, whose the template itself is taken to
        run on."""
        machines, job = self.evaluation.register.machines, self.job
        place = machines.index.get(placement.pool)
        if place is None:
            return None, None
        there = machines.pools[place].accelerator.vendor
        if job.variant(there.name) is None:
            return there.name, None
        ref = job.state.revision
        current = (
            None if ref is None or ref.placement.pool not in machines.index else machines.index[ref.placement.pool]
        )
        placed = placed_vendor(ref, None if current is None else machines.pools[current])
        home = home_vendor(Shape.of(job), machines.pools, placed)
        return there.name, None if home == there else home.name

    def _useful(self, placement: Placement) -> float:
        """Share of the time that is not lost to interruptions."""
        register = self.evaluation.register
        pool = register.machines.pools[register.machines.index[placement.pool]]
        often = register.interruptions_of(placement, pool)
        return float(useful_share(floats(often), floats(self.evaluation.running.numbers.restart[self.number])))

    def _candidate(self, entries: Entries, entry: int, *, here: bool) -> Candidate:
        prediction = self.evaluation.running.prediction
        placement = self.evaluation.register.placements[entries.option[entry]]
        price, asked = self.price(placement), int(entries.predicted[entry])
        estimate = None if asked < 0 else prediction.estimate(asked)
        unit = unit_of(self.job)
        compares = here or self._compares(unit, placement)
        rate = estimate if isinstance(estimate, Estimate) and compares else None
        useful = self._useful(placement)
        vendor, home = self._vendors(placement)
        return Candidate(
            placement=placement,
            throughput=rate,
            cost_per_hour=price,
            cost_per_million=None if rate is None or price is None else cost_per_million(rate, price / useful),
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
            chip=self._chip(placement),
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
        running, register = self.evaluation.running, self.evaluation.register
        if code == NONE:
            return None
        if code >= FIRST_KEPT:
            return register.rejections[code - FIRST_KEPT]
        if code >= FIRST_COMPARED:
            now = running.prediction.median[running.current.predicted[self.number]]
            return COMPARED[code - FIRST_COMPARED](self.job.spec.targets.objective, float(now))
        return GATES[code - 1].explain(self._row(entries, entry, here=here))

    def _row(self, entries: Entries, entry: int, *, here: bool) -> Row:
        running, machines, number = self.evaluation.running, self.evaluation.register.machines, self.number
        numbers, asked = running.numbers, int(entries.predicted[entry])
        placement = self.evaluation.register.placements[entries.option[entry]]
        price = self.price(placement)
        rate = math.nan if asked < 0 else float(running.prediction.median[asked]) * self._useful(placement)
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
            cost=hourly / 3600.0 * 1e6 / rate,
            efficiency=float(entries.efficiency[entry]),
            full=math.nan if full is None else full * self._useful(placement),
            price=hourly,
            work_left=float(numbers.work_left[number]),
            restart=0.0 if here else float(numbers.restart[number]),
            limits={field: float(limit[number]) for field, limit in numbers.limits.items()},
            memory=float(numbers.memory[number]),
            memory_measured=bool(numbers.memory_measured[number]),
        )


# The texts of one status ask for it about eight times in a row. Kept of a few jobs alone: it is larger than its row.
@lru_cache(maxsize=4)
def _current(evaluated: Evaluated) -> Candidate | None:
    return evaluated._current()


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
