"""Scoring: what a unit of progress costs on a placement when the time that it takes has a value.

    score(c) = (v + p(c)) / g(c)

v: dollars that an hour of waiting is worth; p: dollars an hour; g: million samples an hour. Lower is better. With v = 0
it is dollars per million samples; with v large only speed counts. v alone moves along the frontier between time and
money, so that one formula serves every objective.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rightpool.api.choices import Objective
from rightpool.prediction.cost import HOUR, MILLION

# MinimizeTime: so much above any price that money only breaks ties.
TIME_ABOVE_ALL: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Offer:
    """rate: samples/s. price: dollars an hour. in_time: whether the deadline holds there (True where there is none)."""

    rate: float
    price: float
    in_time: bool = True


def score(value_of_time: float, price: float, samples_per_second: float) -> float:
    """Dollars per million samples, time included."""
    return (value_of_time + price) / (samples_per_second * HOUR / MILLION)


def value_of_time(objective: Objective, offers: Sequence[Offer], current_price: float) -> float:
    """Dollars that an hour of this job is worth.

    MinimizeTime: 1000 times the dearest offer. Balanced: what the job costs now, so that twice the speed may cost three
    times as much. MinimizeCost: the least v whose preferred offer is done by the deadline; 0 without one.
    """
    if objective is Objective.MINIMIZE_TIME:
        dearest = max((offer.price for offer in offers), default=0.0)
        return TIME_ABOVE_ALL * max(dearest, current_price) or 1.0
    if objective is Objective.BALANCED:
        return current_price
    return value_for_deadline(offers)


def value_for_deadline(offers: Sequence[Offer]) -> float:
    """The least v ≥ 0 at which an offer that is in time is preferred to all that are not; 0 where there is none.

    A slow offer n loses to a fast one m from v = (p_m·g_n − p_n·g_m) / (g_m − g_n) on, by equating their scores.
    """
    late = [offer for offer in offers if not offer.in_time]
    if not late:
        return 0.0
    best: float | None = None
    for offer in offers:
        if not offer.in_time:
            continue
        needed = _overtakes(offer, late)
        if needed is not None and (best is None or needed < best):
            best = needed
    return best or 0.0


def _overtakes(offer: Offer, late: Iterable[Offer]) -> float | None:
    """The least v at which `offer` scores no worse than each of `late`; None where no v does that."""
    least, most = 0.0, float("inf")
    for other in late:
        gain = offer.rate - other.rate
        lead = offer.price * other.rate - other.price * offer.rate
        if gain > 0.0:
            least = max(least, lead / gain)
        elif gain < 0.0:
            most = min(most, lead / gain)
        elif lead > 0.0:
            return None
    return least if least <= most else None


def saving(candidate_score: float, current_score: float) -> float:
    """Share of the current score that moving saves; negative where it costs more. 0 where staying is free."""
    return 1.0 - candidate_score / current_score if current_score > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class Payback:
    """What a move brings over the horizon and what it costs, both in dollars (time at its value included)."""

    gain: float
    cost: float

    @property
    def pays(self) -> bool:
        """Whether the gain exceeds the cost."""
        return self.gain > self.cost


def payback(
    value: float,
    prices: tuple[float, float],
    saved_share: float,
    horizon: float,
    restart: float,
    lost: float = 0.0,
) -> Payback:
    """prices: dollars an hour now and there. horizon, restart, lost: seconds; lost: work since the last checkpoint.

    The work that the current placement does in `horizon` costs (v + p)·horizon here, and `saved_share` less there.
    While the job restarts the chips there are paid and the time is lost; lost work is paid again at the current rate.
    """
    now, there = prices
    gain = (value + now) * saved_share * horizon / HOUR
    return Payback(gain, ((value + there) * restart + (value + now) * lost) / HOUR)
