"""Repair: what is taken where a declared target is missed."""

import numpy as np

from rightpool.api.units import HOUR
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.rows import Rows
from rightpool.planning.offers.unreachable import REASONS
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.cost import MILLION, probability_above, probability_cheaper


def repairing(rows: Rows, here: Rows, broken: Ints) -> Ints:
    """First what holds the broken target surely enough, in the order of the rows; then what surely comes nearer to it,
    the likeliest first.

    rows: those that pass all gates, the rows of a job together; `least` says how sure it has to be. here: one row a
    job, where it is. broken: the target that each job misses there, by code. The result is places among the rows. The
    gates have seen to it that the target holds at the median of whatever is eligible.
    """
    job, price, reason, numbers = rows.job, _price(rows), REASONS[broken[rows.job]], rows.numbers
    deadline, budget = reason == RejectionReason.DEADLINE, reason == RejectionReason.BUDGET
    dear = reason == RejectionReason.COST_PER_SAMPLE
    restart, left = numbers.restart[job], numbers.work_left[job]
    time = numbers.time_left[job] - restart
    money = numbers.budget_left[job] - price * restart / HOUR
    needed = np.where(deadline, left / time, 0.0)
    needed = np.where(dear, price / HOUR * MILLION / numbers.per_million[job], needed)
    needed = np.where(budget, price / HOUR * left / money, needed)
    timed, paid = deadline & ~np.isnan(left) & ~np.isnan(time), budget & ~np.isnan(left) & ~np.isnan(money)
    limited = timed | paid | (dear & (numbers.per_million[job] > 0.0))
    holds = np.where(limited, probability_above(rows.rate, rows.sd, needed), 1.0)
    holds = np.where((timed & (time <= 0.0)) | (paid & (money <= 0.0)), 0.0, holds)
    nearer = _nearer(rows, here, deadline)
    sure = holds >= rows.least
    taken = np.flatnonzero((sure | (nearer >= rows.least)) & _pays(rows, here, reason))
    order = np.lexsort((taken, np.where(sure[taken], 0.0, -holds[taken]), ~sure[taken], job[taken]))
    return taken[order]


def approaching(rows: Rows, here: Rows, broken: Ints) -> Ints:
    """What surely misses an unreachable target by less, by at least what a move must save: what misses it least first.

    As `repairing`. A deadline that is over is not missed by less anywhere.
    """
    job, price, reason, numbers = rows.job, _price(rows), REASONS[broken[rows.job]], rows.numbers
    rate, own, now = rows.rate, here.rate[job], _price(here)[job]
    deadline, hourly = reason == RejectionReason.DEADLINE, reason == RejectionReason.COST_PER_HOUR
    money = (reason == RejectionReason.COST_PER_SAMPLE) | (reason == RejectionReason.BUDGET)
    level = np.where(hourly, price / now, np.where(deadline, own / rate, (price / rate) / (now / own)))
    sure = np.where(hourly, 1.0, _nearer(rows, here, deadline)) >= rows.least
    asked = hourly | money | (deadline & (numbers.time_left[job] > 0.0))
    enough = level <= 1.0 - numbers.savings[job]
    taken = np.flatnonzero(asked & sure & enough & _pays(rows, here, reason))
    return taken[np.lexsort((taken, level[taken], job[taken]))]


def _nearer(rows: Rows, here: Rows, timed: Bools) -> Floats:
    """How likely a sample costs less there; where `timed`, how likely it takes less time."""
    noise = here.sd[rows.job] ** 2
    ratio = rows.sd**2 + noise - 2.0 * rows.shared
    return probability_cheaper(
        rows.rate,
        np.where(timed, 1.0, _price(rows)),
        here.rate[rows.job],
        np.where(timed, 1.0, _price(here)[rows.job]),
        np.where(ratio > 1e-18, ratio, 0.0) + noise,
    )


def _pays(rows: Rows, here: Rows, reason: np.ndarray[tuple[int], np.dtype[np.object_]]) -> Bools:
    """Whether a repair brings more than the restart costs: time for a deadline, dollars for a budget or the cost of a
    sample. Whatever it is for, the job must not end before it is there.

    Where the work that is left is not known, over the horizon of all moves.
    """
    restart, horizon = rows.numbers.restart[rows.job], rows.numbers.horizon[rows.job]
    now = _price(here)[rows.job]
    spent = here.rate[rows.job] * horizon / rows.rate + restart
    sooner = spent < horizon
    cheaper = _price(rows) * spent < now * horizon
    money = ((reason == RejectionReason.BUDGET) | (reason == RejectionReason.COST_PER_SAMPLE)) & (now > 0.0)
    pays = np.where(reason == RejectionReason.DEADLINE, sooner, cheaper | ~money)
    found: Bools = pays & (horizon > restart)
    return found


def _price(rows: Rows) -> Floats:
    """Dollars an hour; 0 where that is not known."""
    return np.where(np.isnan(rows.price), 0.0, rows.price)
