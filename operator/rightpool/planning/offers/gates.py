"""Gates of rows: what rules a placement out by what the job does and what its user wants of it.

A gate is one row of the table at the end: its code's reason, a function over the columns that says which rows it rules
out, and one that gives the parameters of a row's rejection to who asks. Gates are asked in the order of the table; the
first one that applies counts. Targets have their gates from targets/.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from rightpool.planning.jobs.job import Job
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.offers import Offers, OneOffer
from rightpool.planning.offers.rejection import (
    Avoided,
    MemoryMayNotSuffice,
    MemoryShort,
    MemoryUnknown,
    PrecisionUnsupported,
    PriceUnknown,
    Rejection,
    RejectionReason,
    ScalingNoBetterKnown,
    SpecificationsMissing,
    StepsDiffer,
)
from rightpool.planning.offers.start_order import MEMORY_HEADROOM
from rightpool.planning.offers.targets.registry import TARGETS, dollar_target
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.prediction.columns import Bools

# Where a job is, a target is missed if it holds with less than this: what is done about it costs a restart, and what
# looks like a miss in one hour may be none in the next.
MAY_BE_MISSED: Final = 0.2


@dataclass(frozen=True, slots=True)
class Gate:
    """One entry of the table."""

    reason: RejectionReason
    """What its rejections are counted as."""
    rejects: Callable[[Offers], Bools]
    """Which rows it rules out."""
    explain: Callable[[OneOffer], Rejection]
    """Why it rules one out."""
    target: JobTarget | None = None
    """The target that it is for: then it is asked of the current placement, too."""


# --- memory ----------------------------------------------------------------------------------------------------------
#
# State that is split over the chips, which no counter tells, or a batch that stays, takes more of each chip where there
# are fewer: the worst case must fit, all of it. Only where the user says that every chip holds the whole state and the
# batch shrinks along, the use of a chip stays.


def _memory_unknown(rows: Offers) -> Bools:
    return _fit_unproven(rows) & np.isnan(rows.numbers.memory[rows.job]) & (rows.memory < rows.home_memory)


def _memory_short(rows: Offers) -> Bools:
    return _fit_unproven(rows) & (rows.numbers.memory[rows.job] * MEMORY_HEADROOM > rows.memory)


def _memory_may_not_do(rows: Offers) -> Bools:
    numbers = rows.numbers
    now = numbers.chips[rows.job]
    worst = numbers.memory[rows.job] * now / rows.chips
    grows = numbers.keeps_batch[rows.job] | numbers.sharded[rows.job]
    return _fit_unproven(rows) & (rows.chips < now) & (worst * MEMORY_HEADROOM > rows.memory) & grows


def _fit_unproven(rows: Offers) -> Bools:
    return ~rows.seen & ~(rows.same_chip & (rows.chips >= rows.numbers.chips[rows.job]))


def _explain_memory_short(offer: OneOffer) -> Rejection:
    measured = bool(offer.of_job(offer.offers.numbers.memory_measured))
    return MemoryShort(offer.pool.name, offer.pool.accelerator.memory_bytes, _needed(offer), measured)


def _needed(offer: OneOffer) -> float:
    return offer.of_job(offer.offers.numbers.memory)


def _explain_memory_may_not_do(offer: OneOffer) -> Rejection:
    revision = offer.job.state.revision
    assert revision is not None
    count, now = offer.placement.chips, revision.placement.chips
    worst = _needed(offer) * now / count
    return MemoryMayNotSuffice(offer.pool.name, offer.pool.accelerator.memory_bytes, count, now, worst)


# --- precision -------------------------------------------------------------------------------------------------------


def _precision_unsupported(rows: Offers) -> Bools:
    return rows.unsupported & ~rows.seen


def _explain_precision(offer: OneOffer) -> Rejection:
    profile, chip = offer.job.observed.profile, offer.pool.accelerator
    precision = None if profile is None else profile.traits.precision
    return PrecisionUnsupported(offer.pool.name, chip.key, precision or "", tuple(sorted(chip.peak_flops)))


# --- the unit of work ------------------------------------------------------------------------------------------------


def _steps_differ(rows: Offers) -> Bools:
    found: Bools = rows.numbers.steps_differ[rows.job] & (rows.chips != rows.numbers.chips[rows.job])
    return found


# --- money and time --------------------------------------------------------------------------------------------------


def _price_unknown(rows: Offers) -> Bools:
    return np.isnan(rows.price) & rows.numbers.needs_price[rows.job]


def _explain_price_unknown(offer: OneOffer) -> Rejection:
    targets = offer.job.spec.targets
    return PriceUnknown(offer.pool.name, dollar_target(targets), targets.objective)


# --- experience ------------------------------------------------------------------------------------------------------


def _avoided(rows: Offers) -> Bools:
    return rows.avoided


def _explain_avoided(offer: OneOffer) -> Rejection:
    return next(
        entry
        for entry in avoided(offer.job, offer.now)
        if (entry.pool, entry.chips) == (offer.placement.pool, offer.placement.chips)
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


def _left(rows: Offers) -> Bools:
    """Rates and costs that were measured are the same from either side. The efficiency is not: it rests on the rate of
    one chip, which is told by the communication seen there and forgotten here. Going back on a guess would only lead to
    leaving again."""
    return rows.left


def _unpredictable(rows: Offers) -> Bools:
    return np.isnan(rows.rate)


def _of(target: JobTarget) -> Gate:
    return Gate(target.reason, target.misses, target.explain, target)


GATES: Final = (
    Gate(
        RejectionReason.MEMORY,
        _memory_unknown,
        lambda offer: MemoryUnknown(offer.pool.name, offer.pool.accelerator.memory_bytes),
    ),
    Gate(
        RejectionReason.MEMORY,
        _memory_short,
        _explain_memory_short,
    ),
    Gate(RejectionReason.MEMORY, _memory_may_not_do, _explain_memory_may_not_do),
    Gate(RejectionReason.PRECISION, _precision_unsupported, _explain_precision),
    Gate(RejectionReason.STEPS_DIFFER, _steps_differ, lambda offer: StepsDiffer(offer.placement.chips)),
    Gate(
        RejectionReason.PRICE_UNKNOWN,
        _price_unknown,
        _explain_price_unknown,
    ),
    *(_of(target) for target in TARGETS if not target.by_rate),
    Gate(RejectionReason.SCALING, _left, lambda offer: ScalingNoBetterKnown(offer.placement)),
    Gate(RejectionReason.AVOIDED, _avoided, _explain_avoided),
    Gate(
        RejectionReason.NOT_PREDICTABLE,
        _unpredictable,
        lambda offer: SpecificationsMissing(offer.home.accelerator.key, offer.pool.accelerator.key),
    ),
    *(_of(target) for target in TARGETS if target.by_rate),
)
TARGET_CODES: Final = {code: gate.target for code, gate in enumerate(GATES, 1) if gate.target is not None}
"""Targets by the codes of their gates in a column of gates, where 0 is for none."""
TIMED: Final = tuple(code for code, target in TARGET_CODES.items() if target.yardstick is Yardstick.TIME)
"""Codes of targets of time."""
PAID: Final = tuple(code for code, target in TARGET_CODES.items() if target.yardstick is Yardstick.COST)
"""Codes of targets of what work costs."""
