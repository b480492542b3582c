"""Repair: what is taken where a declared target is missed, and what is asked instead of one that no placement holds
surely enough.

Instead of such a target the least of it is asked: no placement may miss it by more than staying does. Within that money
is saved as usual; a target of which nothing else is to be expected must not keep a job where it costs twice as much.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.gates import PAID, TARGET_CODES, TIMED
from rightpool.planning.offers.offers import Numbers, Offers
from rightpool.planning.offers.register import NONE
from rightpool.planning.offers.targets.target import EVEN, JobTarget
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.cost import probability_cheaper

Repaired = Callable[[Numbers, Ints, Ints], Ints]
"""Numbers, rows that pass all gates, and the broken target of each job, by its code; the jobs that a row repairs."""


def repairing(rows: Offers, here: Offers, broken: Ints) -> Ints:
    """First what holds the broken target surely enough, in the order of the rows; then what surely comes nearer to it,
    the likeliest first.

    rows: those that pass all gates, the rows of a job together; `least` says how sure it has to be. here: one row a
    job, where it is. broken: the target that each job misses there, by code. The result is places among the rows. The
    gates have seen to it that the target holds at the median of whatever is eligible.
    """
    rows, here, codes = _priced(rows), _priced(here), broken[rows.job]
    holds = np.ones(len(rows.job))
    for target, part in _by_target(codes):
        holds[part] = target.holds(rows.of(part))
    nearer = _nearer(rows, here, np.isin(codes, TIMED))
    sure = holds >= rows.least
    taken = np.flatnonzero((sure | (nearer >= rows.least)) & _pays(rows, here, codes))
    order = np.lexsort((taken, np.where(sure[taken], 0.0, -holds[taken]), ~sure[taken], rows.job[taken]))
    return taken[order]


def approaching(rows: Offers, here: Offers, broken: Ints) -> Ints:
    """What surely misses an unreachable target by less, by at least what a move must save: what misses it least first.

    As `repairing`.
    """
    rows, here, codes = _priced(rows), _priced(here), broken[rows.job]
    level, nearer = np.full(len(rows.job), np.nan), _nearer(rows, here, np.isin(codes, TIMED))
    for target, part in _by_target(codes):
        level[part] = target.level(rows.of(part), here)
        if target.yardstick is Yardstick.NONE:
            nearer[part] = 1.0
    enough = level <= 1.0 - rows.numbers.savings[rows.job]
    taken = np.flatnonzero((nearer >= rows.least) & enough & _pays(rows, here, codes))
    return taken[np.lexsort((taken, level[taken], rows.job[taken]))]


def _by_target(codes: Ints) -> Iterator[tuple[JobTarget, Ints]]:
    """The rows of each target that is broken."""
    for code, target in TARGET_CODES.items():
        part = np.flatnonzero(codes == code)
        if part.size:
            yield target, part


def _nearer(rows: Offers, here: Offers, timed: Bools) -> Floats:
    """How likely a sample costs less there; where `timed`, how likely it takes less time."""
    noise = here.sd[rows.job] ** 2
    ratio = rows.sd**2 + noise - 2.0 * rows.shared
    return probability_cheaper(
        rows.worth,
        np.where(timed, 1.0, rows.price),
        here.worth[rows.job],
        np.where(timed, 1.0, here.price[rows.job]),
        np.where(ratio > 1e-18, ratio, 0.0) + noise,
    )


def _pays(rows: Offers, here: Offers, codes: Ints) -> Bools:
    """Whether a repair brings more than the restart costs: time for a target of time, dollars for one of cost. Whatever
    it is for, the job must not end before it is there.

    Where the work that is left is not known, over the horizon of all moves.
    """
    restart, horizon = rows.numbers.restart[rows.job], rows.numbers.horizon[rows.job]
    now = here.price[rows.job]
    spent = here.rate[rows.job] * horizon / rows.rate + restart
    sooner = spent < horizon
    cheaper = rows.price * spent < now * horizon
    money = np.isin(codes, PAID) & (now > 0.0)
    pays = np.where(np.isin(codes, TIMED), sooner, cheaper | ~money)
    found: Bools = pays & (horizon > restart)
    return found


def _priced(rows: Offers) -> Offers:
    """What has no price is taken to cost nothing."""
    return replace(rows, price=np.where(np.isnan(rows.price), 0.0, rows.price))


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
