"""Unreachable targets: what is asked instead of a target that no placement holds surely enough.

The least of it: no placement may miss the target by more than staying does. Within that money is saved as usual; a
target of which nothing else is to be expected must not keep a job where it costs twice as much.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rightpool.planning.offers.gates import TARGET_CODES, TIMED
from rightpool.planning.offers.offers import Numbers, Offers
from rightpool.planning.offers.register import NONE
from rightpool.planning.offers.targets.target import EVEN, JobTarget
from rightpool.prediction.columns import Bools, Floats, Ints

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


def relax(rows: Offers, here: Offers, holds: Mapping[int, Bools], repaired: Repaired) -> Relaxed:
    """Relax one target of a job after the other, until it holds where the job is or can be repaired.

    rows: every placement of every job; here: one row a job, where it is, which gates other than targets may have ruled
    out. holds: of each target, by code, whether it holds where a job is.
    """
    gate, current = rows.gate, here.gate
    numbers, unreachable, codes = here.numbers, np.full_like(current, NONE), tuple(TARGET_CODES)
    asked_now = dict(holds)
    for _ in codes:
        missed = np.isin(current, codes) & ~np.isnan(here.rate)
        if missed.any():
            missed[repaired(numbers, np.flatnonzero((gate == NONE) & missed[rows.job]), current)] = False
        if not missed.any():
            break
        unreachable = np.where(missed & (unreachable == NONE), current, unreachable)
        numbers = _no_worse(numbers, here, np.where(missed, current, NONE))
        asked_now = {code: held | (missed & (current == code)) for code, held in asked_now.items()}
        stays, asked = (
            np.flatnonzero(missed),
            np.flatnonzero(missed[rows.job] & ((gate == NONE) | np.isin(gate, codes))),
        )
        gate, current = gate.copy(), current.copy()
        current[stays] = _first_missed(here.of(stays, numbers), None)
        gate[asked] = _first_missed(rows.of(asked, numbers), holds)
    in_time = np.logical_and.reduce([asked_now[code] for code in TIMED])
    return Relaxed(gate, current, numbers, unreachable, in_time)


def least_elsewhere(target: JobTarget, holds: Bools, job: Ints) -> Floats:
    """How likely a target has to hold on the rows of these jobs. holds: whether it does where each job is."""
    return np.where(holds[job], target.kept, EVEN)


def _first_missed(rows: Offers, holds: Mapping[int, Bools] | None) -> Ints:
    """The first target that each row misses. holds: of other rows than those of where jobs are."""
    found = np.full(len(rows.job), NONE, dtype=np.int64)
    for code, target in TARGET_CODES.items():
        asked = rows if holds is None else replace(rows, least=least_elsewhere(target, holds[code], rows.job))
        found = np.where((found == NONE) & target.misses(asked), code, found)
    return found


def _no_worse(numbers: Numbers, here: Offers, unreachable: Ints) -> Numbers:
    """The numbers with each unreachable target where staying gets to. unreachable: one code a job."""
    limits = dict(numbers.limits)
    for code, target in TARGET_CODES.items():
        relaxed = unreachable == code
        if relaxed.any():
            limits[target.field] = np.where(relaxed, target.relaxed(here), limits[target.field])
    return replace(numbers, limits=limits)
