"""Repair: what is taken where a declared target is missed."""

from dataclasses import dataclass

import numpy as np

from rightpool.api.units import HOUR
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.rows import Numbers
from rightpool.planning.offers.unreachable import REASONS
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.cost import MILLION, probability_above, probability_cheaper
from rightpool.prediction.predictor import Prediction


@dataclass(frozen=True, slots=True)
class Offers:
    """Rows of placements that jobs could go to for the sake of a target."""

    job: Ints
    """A place among the jobs."""
    there: Ints
    """A row of the prediction."""
    here: Ints
    """The row of the prediction for where the job is."""
    broken: Ints
    """The gate that the current placement does not pass, by code."""
    price: Floats
    """Dollars an hour there."""
    least: Floats
    """How sure it has to be."""


def repairing(numbers: Numbers, prediction: Prediction, offers: Offers) -> Ints:
    """First what holds the broken target surely enough, in the order of the rows; then what surely comes nearer to it,
    the likeliest first.

    The rows of a job are together; the result is places among the rows. The gates have seen to it that the target holds
    at the median of whatever is eligible.
    """
    job, price, least, reason = offers.job, offers.price, offers.least, REASONS[offers.broken]
    rate, sd = prediction.median[offers.there], prediction.sd[offers.there]
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
    holds = np.where(limited, probability_above(rate, sd, needed), 1.0)
    holds = np.where((timed & (time <= 0.0)) | (paid & (money <= 0.0)), 0.0, holds)
    nearer = _nearer(numbers, prediction, offers, deadline)
    sure = holds >= least
    taken = np.flatnonzero((sure | (nearer >= least)) & _pays(numbers, prediction, offers, reason))
    order = np.lexsort((taken, np.where(sure[taken], 0.0, -holds[taken]), ~sure[taken], job[taken]))
    return taken[order]


def approaching(numbers: Numbers, prediction: Prediction, offers: Offers) -> Ints:
    """What surely misses an unreachable target by less, by at least what a move must save: what misses it least first.

    The result is as that of `repairing`. A deadline that is over is not missed by less anywhere.
    """
    job, price, least, reason = offers.job, offers.price, offers.least, REASONS[offers.broken]
    rate, own = prediction.median[offers.there], prediction.median[offers.here]
    now = _price_now(numbers, offers)
    deadline, hourly = reason == RejectionReason.DEADLINE, reason == RejectionReason.COST_PER_HOUR
    money = (reason == RejectionReason.COST_PER_SAMPLE) | (reason == RejectionReason.BUDGET)
    level = np.where(hourly, price / now, np.where(deadline, own / rate, (price / rate) / (now / own)))
    nearer = _nearer(numbers, prediction, offers, deadline)
    sure = np.where(hourly, 1.0, nearer) >= least
    asked = hourly | money | (deadline & (numbers.time_left[job] > 0.0))
    enough = level <= 1.0 - numbers.savings[job]
    pays = _pays(numbers, prediction, offers, reason)
    taken = np.flatnonzero(asked & sure & enough & pays)
    return taken[np.lexsort((taken, level[taken], job[taken]))]


def _nearer(numbers: Numbers, prediction: Prediction, offers: Offers, timed: Bools) -> Floats:
    """How likely a sample costs less there; where `timed`, how likely it takes less time."""
    there, here, now = offers.there, offers.here, _price_now(numbers, offers)
    noise = prediction.sd[here] ** 2
    ratio = prediction.sd[there] ** 2 + noise - 2.0 * prediction.shared[there]
    return probability_cheaper(
        prediction.median[there],
        np.where(timed, 1.0, offers.price),
        prediction.median[here],
        np.where(timed, 1.0, now),
        np.where(ratio > 1e-18, ratio, 0.0) + noise,
    )


def _pays(
    numbers: Numbers,
    prediction: Prediction,
    offers: Offers,
    reason: np.ndarray[tuple[int], np.dtype[np.object_]],
) -> Bools:
    """Whether a repair brings more than the restart costs: time for a deadline, dollars for a budget or the cost of a
    sample. Whatever it is for, the job must not end before it is there.

    Where the work that is left is not known, over the horizon of all moves.
    """
    restart, horizon = numbers.restart[offers.job], numbers.horizon[offers.job]
    now = _price_now(numbers, offers)
    spent = prediction.median[offers.here] * horizon / prediction.median[offers.there] + restart
    sooner = spent < horizon
    cheaper = offers.price * spent < now * horizon
    money = ((reason == RejectionReason.BUDGET) | (reason == RejectionReason.COST_PER_SAMPLE)) & (now > 0.0)
    pays = np.where(reason == RejectionReason.DEADLINE, sooner, cheaper | ~money)
    found: Bools = pays & (horizon > restart)
    return found


def _price_now(numbers: Numbers, offers: Offers) -> Floats:
    """Dollars an hour where the job is; 0 where that is not known."""
    price = numbers.price[offers.job]
    return np.where(np.isnan(price), 0.0, price)
