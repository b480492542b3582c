"""Scoring: what a unit of progress costs on a placement when the time that it takes has a value.

    score(c) = (v + p(c)) / g(c)

v: dollars that an hour of waiting is worth; p: dollars an hour; g: million units of work an hour. Lower is better. With
v = 0 it is dollars per million units; with v large only speed counts. v alone moves along the frontier between time and
money, so that one formula serves every objective.
"""

from typing import Final

import numpy as np

from rightpool.api.units import DAY, HOUR
from rightpool.prediction.columns import Bools, Floats
from rightpool.prediction.cost import MILLION

# MinimizeTime: so much above any price that money only breaks ties.
TIME_ABOVE_ALL: Final = 1000.0


def score(value_of_time: Floats, price: Floats, throughput: Floats) -> Floats:
    """Dollars per million units, time included."""
    return (value_of_time + price) / (throughput * HOUR / MILLION)


def value_for_time(dearest: Floats, current_price: Floats) -> Floats:
    """MinimizeTime: dollars that an hour is worth, 1000 times the dearest offer."""
    value = TIME_ABOVE_ALL * np.maximum(dearest, current_price)
    return np.where(value > 0.0, value, 1.0)


def value_for_deadline(rates: Floats, prices: Floats, in_time: Bools) -> float:
    """MinimizeCost: the least v ≥ 0 at which an offer that is in time is preferred to all that are not; 0 where there
    is none.

    A slow offer n loses to a fast one m from v = (p_m·g_n − p_n·g_m) / (g_m − g_n) on, by equating their scores.
    """
    late = ~in_time
    if not late.any() or not in_time.any():
        return 0.0
    gain = rates[in_time, np.newaxis] - rates[late]
    lead = prices[in_time, np.newaxis] * rates[late] - prices[late] * rates[in_time, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        level = lead / gain
    least = np.max(np.where(gain > 0.0, level, 0.0), axis=1, initial=0.0)
    most = np.min(np.where(gain < 0.0, level, np.inf), axis=1)
    possible = (least <= most) & ~np.any((gain == 0.0) & (lead > 0.0), axis=1)
    return float(np.min(least[possible], initial=np.inf)) if possible.any() else 0.0


def saving(candidate_score: Floats, current_score: Floats) -> Floats:
    """Share of the current score that moving saves; negative where it costs more. 0 where staying is free."""
    costs = current_score > 0.0
    return np.where(costs, 1.0 - candidate_score / np.where(costs, current_score, 1.0), 0.0)


def saving_over(
    now: Floats, usually: Floats, lasts: Floats, other_lasts: Floats, horizon: Floats, least: Floats
) -> Floats:
    """Share that a move saves over the horizon, seconds, where prices change.

    now, usually: shares saved at the present and at usual prices; lasts, other_lasts: seconds for which the prices of
    both placements last. Their difference ends when either changes, and changes that have nothing to do with each
    other add up: 1 / (1 / a + 1 / b). From then on a usual saving counts, if it is one to move for: at least `least`.
    """
    together = 1.0 / (1.0 / lasts + 1.0 / other_lasts)
    share = np.minimum(together / horizon, 1.0)
    return now * share + np.where(usually >= least, usually, 0.0) * (1.0 - share)


def payback(
    value: Floats, now: Floats, there: Floats, saved_share: Floats, horizon: Floats, restart: Floats
) -> tuple[Floats, Floats]:
    """Dollars that a move brings over the horizon, and dollars that it costs, time at its value included.

    now, there: dollars an hour. horizon, restart: seconds. The work that the current placement does in `horizon` costs
    (v + p)·horizon here, and `saved_share` less there. While the job restarts the chips there are paid and the time is
    lost.
    """
    return (value + now) * saved_share * horizon / HOUR, (value + there) * restart / HOUR


def useful_share(interruptions: Floats, restart: Floats) -> Floats:
    """Share of the time that work goes on: each of so many interruptions a day costs a restart of so many seconds.
    Where these would take more than half of the time, one comes within another and costs less."""
    lost = interruptions * restart / DAY
    return np.where(lost > 0.5, 0.25 / np.maximum(lost, 0.5), 1.0 - lost)
