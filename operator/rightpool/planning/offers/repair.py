"""Repair: what is taken where a declared target is missed."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.gates import PAID, TARGET_CODES, TIMED
from rightpool.planning.offers.offers import Offers
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.cost import probability_cheaper


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
