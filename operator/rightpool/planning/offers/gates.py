"""Gates of rows: what rules a placement out by what the job does and what its user wants of it.

A gate is one row of the table at the end: its code's reason, a function over the columns that says which rows it rules
out, and one that gives the parameters of a row's rejection to who asks. Gates are asked in the order of the table; the
first one that applies counts. A new target or gate is a function here, its type, with its words, in rejection.py or
target_rejection.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from rightpool.api.placement import Placement
from rightpool.api.units import HOUR
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.rejection import (
    Avoided,
    MemoryMayNotSuffice,
    MemoryShort,
    MemoryUnknown,
    PrecisionUnsupported,
    PriceUnknown,
    Rejection,
    RejectionReason,
    SpecificationsMissing,
    StepsDiffer,
)
from rightpool.planning.offers.rows import Rows
from rightpool.planning.offers.shape import cost_target
from rightpool.planning.offers.start_order import MEMORY_HEADROOM
from rightpool.planning.offers.target_rejection import (
    BudgetShort,
    DeadlineMissed,
    FlopsUtilizationLow,
    HourTooDear,
    SamplesTooDear,
    ScalingNoBetterKnown,
    ScalingPoor,
)
from rightpool.prediction.columns import Bools, Floats
from rightpool.prediction.cost import MILLION, probability_above

# Where a job is, a target is missed if it holds with less than this: what is done about it costs a restart, and what
# looks like a miss in one hour may be none in the next.
MAY_BE_MISSED: Final = 0.2
# Nothing is risked for money: a job that is in time moves only where it is in time with this probability.
IN_TIME: Final = 0.9
# Elsewhere a target has to hold at the median; what repairs one must do so more surely (repair.py).
EVEN: Final = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """One row by itself, with what it is about: for the parameters of a rejection."""

    job: Job
    """Whose row it is."""
    home: Pool
    """Where the job is."""
    pool: Pool
    """Where it would be."""
    placement: Placement
    """With how many chips."""
    now: float
    """Unix seconds."""
    current: bool
    """Whether that is where the job is."""
    rate: float
    """Units of work a second."""
    cost: float
    """Dollars per million units."""
    efficiency: float
    """Throughput / (chips × one-chip throughput)."""
    full: float
    """Units of work a second at the chips' peak FLOP/s."""
    price: float
    """Dollars an hour."""
    work_left: float
    """Work that is left."""
    restart: float
    """Seconds of work that getting there costs; 0 where the job stays."""
    time_left: float
    """Seconds to the deadline."""
    budget_left: float
    """Dollars."""
    memory: float
    """Bytes that each chip needs."""
    memory_measured: bool
    """Whether that was measured; else it is declared."""

    @property
    def rest(self) -> float:
        """Seconds until the work is done, a restart included; NaN where its amount is not known."""
        return self.work_left / self.rate + self.restart


@dataclass(frozen=True, slots=True)
class Gate:
    """One entry of the table."""

    reason: RejectionReason
    """What its rejections are counted as."""
    rejects: Callable[[Rows], Bools]
    """Which rows it rules out."""
    explain: Callable[[Row], Rejection]
    """Why it rules one out."""
    here: bool = False
    """Whether it is asked of the current placement, too."""


# --- memory ----------------------------------------------------------------------------------------------------------
#
# State that is split over the chips, which no counter tells, or a batch that stays, takes more of each chip where there
# are fewer: the worst case must fit, all of it. Only where the user says that every chip holds the whole state and the
# batch shrinks along, the use of a chip stays.


def _memory_unknown(rows: Rows) -> Bools:
    return _fit_unproven(rows) & np.isnan(rows.numbers.memory[rows.job]) & (rows.memory < rows.home_memory)


def _memory_short(rows: Rows) -> Bools:
    return _fit_unproven(rows) & (rows.numbers.memory[rows.job] * MEMORY_HEADROOM > rows.memory)


def _memory_may_not_do(rows: Rows) -> Bools:
    numbers = rows.numbers
    now = numbers.chips[rows.job]
    worst = numbers.memory[rows.job] * now / rows.chips
    grows = numbers.keeps_batch[rows.job] | numbers.sharded[rows.job]
    return _fit_unproven(rows) & (rows.chips < now) & (worst * MEMORY_HEADROOM > rows.memory) & grows


def _fit_unproven(rows: Rows) -> Bools:
    return ~rows.seen & ~(rows.same_chip & (rows.chips >= rows.numbers.chips[rows.job]))


def _explain_memory_may_not_do(row: Row) -> Rejection:
    revision = row.job.state.revision
    assert revision is not None
    count, now = row.placement.chips, revision.placement.chips
    return MemoryMayNotSuffice(row.pool.name, row.pool.accelerator.memory_bytes, count, now, row.memory * now / count)


# --- precision -------------------------------------------------------------------------------------------------------


def _precision_unsupported(rows: Rows) -> Bools:
    return rows.unsupported & ~rows.seen


def _explain_precision(row: Row) -> Rejection:
    profile, chip = row.job.observed.profile, row.pool.accelerator
    precision = None if profile is None else profile.traits.precision
    return PrecisionUnsupported(row.pool.name, chip.key, precision or "", tuple(sorted(chip.peak_flops)))


# --- the unit of work ------------------------------------------------------------------------------------------------


def _steps_differ(rows: Rows) -> Bools:
    found: Bools = rows.numbers.steps_differ[rows.job] & (rows.chips != rows.numbers.chips[rows.job])
    return found


# --- money and time --------------------------------------------------------------------------------------------------


def _price_unknown(rows: Rows) -> Bools:
    return np.isnan(rows.price) & rows.numbers.needs_price[rows.job]


def _hour_too_dear(rows: Rows) -> Bools:
    return rows.price > rows.numbers.hourly[rows.job]


def _samples_too_dear(rows: Rows) -> Bools:
    limit = rows.numbers.per_million[rows.job]
    return _likely_missed(rows, rows.price / HOUR * MILLION / limit, limit > 0.0) | (rows.cost > limit) & (limit <= 0.0)


def _scaling_poor(rows: Rows) -> Bools:
    return rows.efficiency < rows.numbers.efficiency[rows.job]


def _flops_utilization_low(rows: Rows) -> Bools:
    needed = rows.numbers.utilization[rows.job] * rows.full
    return _likely_missed(rows, needed, needed > 0.0)


def _deadline_missed(rows: Rows) -> Bools:
    left, time = rows.numbers.work_left[rows.job], rows.numbers.time_left[rows.job] - rows.restart
    known = ~np.isnan(left) & ~np.isnan(time) & ~np.isnan(rows.rate)
    return (known & (time <= 0.0)) | _likely_missed(rows, left / time, time > 0.0)


def _budget_short(rows: Rows) -> Bools:
    known = ~np.isnan(rows.rate) & ~np.isnan(rows.price)
    left, price = rows.numbers.work_left[rows.job], rows.price
    money = rows.numbers.budget_left[rows.job] - price * np.where(np.isnan(left), 0.0, rows.restart) / HOUR
    return known & ((money <= 0.0) | _likely_missed(rows, price / HOUR * left / money, money > 0.0))


def _likely_missed(rows: Rows, needed: Floats, limited: Bools) -> Bools:
    """Where a rate of at least `needed` units a second in the long run is less likely than it has to be."""
    asked = limited & ~np.isnan(needed) & ~np.isnan(rows.rate)
    return asked & (probability_above(rows.rate, rows.sd, np.where(asked, needed, 1.0)) < rows.least)


def _explain_budget_short(row: Row) -> Rejection:
    rest = row.price * row.rest / HOUR
    return BudgetShort(None if np.isnan(rest) else rest, row.budget_left)


def _limit(value: object) -> float:
    """A declared target, of which the gate knows that it is declared."""
    return float(str(value))


# --- experience ------------------------------------------------------------------------------------------------------


def _avoided(rows: Rows) -> Bools:
    return rows.avoided


def _explain_avoided(row: Row) -> Rejection:
    return next(
        entry
        for entry in avoided(row.job, row.now)
        if (entry.pool, entry.chips) == (row.placement.pool, row.placement.chips)
    )


def avoided(job: Job, now: float) -> tuple[Avoided, ...]:
    """Where a move was undone lately, or the job did not start."""
    evidence = {entry.id: entry.message for entry in job.state.history}
    return tuple(
        Avoided(
            entry.pool,
            entry.chips,
            entry.message or evidence.get(entry.decision) or entry.reason,
            None if entry.until is None else entry.until - now,
        )
        for entry in job.state.avoid
        if entry.until is None or entry.until > now
    )


def _left(rows: Rows) -> Bools:
    """Rates and costs that were measured are the same from either side. The efficiency is not: it rests on the rate of
    one chip, which is told by the communication seen there and forgotten here. Going back on a guess would only lead to
    leaving again."""
    return rows.left


def _unpredictable(rows: Rows) -> Bools:
    return np.isnan(rows.rate)


GATES: Final = (
    Gate(
        RejectionReason.MEMORY,
        _memory_unknown,
        lambda row: MemoryUnknown(row.pool.name, row.pool.accelerator.memory_bytes),
    ),
    Gate(
        RejectionReason.MEMORY,
        _memory_short,
        lambda row: MemoryShort(row.pool.name, row.pool.accelerator.memory_bytes, row.memory, row.memory_measured),
    ),
    Gate(RejectionReason.MEMORY, _memory_may_not_do, _explain_memory_may_not_do),
    Gate(RejectionReason.PRECISION, _precision_unsupported, _explain_precision),
    Gate(RejectionReason.STEPS_DIFFER, _steps_differ, lambda row: StepsDiffer(row.placement.chips)),
    Gate(
        RejectionReason.PRICE_UNKNOWN,
        _price_unknown,
        lambda row: PriceUnknown(row.pool.name, cost_target(row.job.spec.targets), row.job.spec.targets.objective),
    ),
    Gate(
        RejectionReason.COST_PER_HOUR,
        _hour_too_dear,
        lambda row: HourTooDear(row.price, _limit(row.job.spec.targets.max_cost_per_hour)),
        here=True,
    ),
    Gate(RejectionReason.SCALING, _left, lambda row: ScalingNoBetterKnown(row.placement)),
    Gate(RejectionReason.AVOIDED, _avoided, _explain_avoided),
    Gate(
        RejectionReason.NOT_PREDICTABLE,
        _unpredictable,
        lambda row: SpecificationsMissing(row.home.accelerator.key, row.pool.accelerator.key),
    ),
    Gate(
        RejectionReason.COST_PER_SAMPLE,
        _samples_too_dear,
        lambda row: SamplesTooDear(
            row.cost, _limit(row.job.spec.targets.max_cost_per_million_samples), measured=row.current
        ),
        here=True,
    ),
    Gate(
        RejectionReason.SCALING,
        _scaling_poor,
        lambda row: ScalingPoor(
            row.efficiency, _limit(row.job.spec.targets.min_scaling_efficiency), measured=row.current
        ),
        here=True,
    ),
    Gate(
        RejectionReason.FLOPS_UTILIZATION,
        _flops_utilization_low,
        lambda row: FlopsUtilizationLow(
            row.rate / row.full, _limit(row.job.spec.targets.min_model_flops_utilization), measured=row.current
        ),
        here=True,
    ),
    Gate(
        RejectionReason.DEADLINE,
        _deadline_missed,
        lambda row: DeadlineMissed(row.rate, row.rest, row.time_left, measured=row.current),
        here=True,
    ),
    Gate(RejectionReason.BUDGET, _budget_short, _explain_budget_short, here=True),
)
DEADLINE: Final = 1 + next(code for code, gate in enumerate(GATES) if gate.reason is RejectionReason.DEADLINE)
"""Its code in a column of gates; 0 is for none."""
TARGETS: Final = tuple(code for code, gate in enumerate(GATES, 1) if gate.here)
"""Codes of the gates that are targets of the user's: they are asked of the current placement, too."""
