"""Unreachable targets: what is asked instead of a target that no placement holds surely enough.

The least of it: no placement may miss the target by more than staying does. Within that money is saved as usual; a
target of which nothing else is to be expected must not keep a job where it costs twice as much.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rightpool.api.units import HOUR
from rightpool.planning.offers.gates import DEADLINE, EVEN, GATES, IN_TIME, TARGETS
from rightpool.planning.offers.register import NONE
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.rows import Numbers, Rows
from rightpool.prediction.columns import Bools, Ints

# What a placement misses a target by more than staying does by less than this share is taken for the same.
SAME: Final = 0.05
REASONS: Final = np.array([None, *(gate.reason for gate in GATES)], dtype=object)
"""By the codes of a column of gates; None for no gate."""

Repaired = Callable[[Numbers, Ints, Ints], Ints]
"""Numbers, rows that pass all gates, and the broken target of each job, by its code; the jobs that a row repairs."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Gates with no more asked of an unreachable target than staying gets to."""

    gate: Ints
    """What rules a row out, by code; 0 where nothing does."""
    current: Ints
    """What is still missed where a job is."""
    numbers: Numbers
    """With the targets that are asked instead."""
    unreachable: Ints
    """The first target of each job that is unreachable, by code; 0 where none is."""
    in_time: Bools
    """Whether a job is as much in time as is asked."""


def relax(rows: Rows, here: Rows, gate: Ints, current: Ints, in_time: Bools, repaired: Repaired) -> Relaxed:
    """Relax one target of a job after the other, until it holds where the job is or can be repaired.

    rows, gate: every placement of every job; here, current: one row a job, where it is. current may have other codes
    than those of targets, which stay.
    """
    numbers, unreachable, strictly = here.numbers, np.full_like(current, NONE), in_time
    for _ in TARGETS:
        missed = np.isin(current, TARGETS) & ~np.isnan(here.rate)
        if missed.any():
            missed[repaired(numbers, np.flatnonzero((gate == NONE) & missed[rows.job]), current)] = False
        if not missed.any():
            break
        unreachable = np.where(missed & (unreachable == NONE), current, unreachable)
        numbers = _no_worse(numbers, here, np.where(missed, current, NONE))
        in_time = in_time | (missed & (current == DEADLINE))
        stays, asked = (
            np.flatnonzero(missed),
            np.flatnonzero(missed[rows.job] & ((gate == NONE) | np.isin(gate, TARGETS))),
        )
        gate, current = gate.copy(), current.copy()
        current[stays] = _first_missed(here.of(stays, numbers), None)
        gate[asked] = _first_missed(rows.of(asked, numbers), strictly)
    return Relaxed(gate, current, numbers, unreachable, in_time)


def _first_missed(rows: Rows, in_time: Bools | None) -> Ints:
    """The first target that each row misses. in_time: the jobs of which a move may not risk the deadline."""
    found = np.full(len(rows.job), NONE, dtype=np.int64)
    for code in TARGETS:
        asked = rows
        if in_time is not None:
            least = np.where(in_time[rows.job], IN_TIME, EVEN) if code == DEADLINE else np.full(len(rows.job), EVEN)
            asked = replace(rows, least=least)
        found = np.where((found == NONE) & GATES[code - 1].rejects(asked), code, found)
    return found


def _no_worse(numbers: Numbers, here: Rows, unreachable: Ints) -> Numbers:
    """The numbers with each unreachable target where staying gets to. unreachable: one code a job."""
    reason = REASONS[unreachable]
    rest = numbers.work_left / here.rate
    money = here.price * (rest * (1.0 + SAME) + numbers.restart) / HOUR
    hourly, dear = reason == RejectionReason.COST_PER_HOUR, reason == RejectionReason.COST_PER_SAMPLE
    utilization = reason == RejectionReason.FLOPS_UTILIZATION
    scaling, deadline = reason == RejectionReason.SCALING, reason == RejectionReason.DEADLINE
    return replace(
        numbers,
        hourly=np.where(hourly, here.price, numbers.hourly),
        per_million=np.where(dear, here.cost * (1.0 + SAME), numbers.per_million),
        efficiency=np.where(scaling, here.efficiency / (1.0 + SAME), numbers.efficiency),
        utilization=np.where(utilization, here.rate / here.full / (1.0 + SAME), numbers.utilization),
        time_left=np.where(deadline, rest * (1.0 + SAME) + numbers.restart, numbers.time_left),
        budget_left=np.where(
            reason == RejectionReason.BUDGET, np.where(np.isnan(money), np.inf, money), numbers.budget_left
        ),
    )
