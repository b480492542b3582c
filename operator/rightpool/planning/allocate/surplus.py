"""Surplus: dollars an hour by which what a job does on an option is worth more than the option costs.

A unit of a job's work is worth what it costs where that is least, its time at its value included:
κ = min (v + p) / g over its options. On an option it then earns κ·g - p an hour. v is larger for a job that will end
soon, since it is in the way of few and many wait for it: by the root of how many have at least as much left to do.

A change costs a restart, in which nothing is earned. It is paid over the time that the change is likely to last: until
the job's end, and no longer than what its own changes of late tell.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rightpool.planning.allocate.market import Market
from rightpool.prediction.columns import Floats

_RANK_POWER: Final = 0.5
# A restart costs more than its time: what it interrupts may be interrupted again.
_RESTART_WEIGHT: Final = 1.5
# A placement lasts at most so many restarts, and is the shorter the more changes a job has had of late.
_LONGEST_STAY: Final = 12.0
_OF_A_CHANGE: Final = 0.55
CHANGES_FADE_SECONDS: Final = 1920.0
"""After so long a change counts 1/e of what it did."""


def surplus(market: Market) -> Floats:
    """Of each option, dollars an hour; -inf where nothing is known of it."""
    rates, job = market.rates, market.job
    known = rates > 0.0
    if not len(job):
        return np.zeros(0)
    value = market.value * _ranks(market) ** _RANK_POWER
    earned = rates * _worth(market, value)[job]
    longest = np.maximum(_LONGEST_STAY * market.restart, 1.0)
    stay = 1.0 / (_OF_A_CHANGE * market.changes / CHANGES_FADE_SECONDS + 1.0 / longest)
    restart = market.restart[job]
    lasts = np.maximum(np.minimum(market.left + restart, stay[job]), 1.0)
    charge = earned * np.minimum(_RESTART_WEIGHT * restart / lasts, 1.0)
    charge[~market.started[job]] = 0.0
    charge[market.here[market.runs]] = 0.0
    return np.where(known, earned - market.prices - charge, -np.inf)


def _costs(market: Market, value: Floats) -> Floats:
    """Of a unit of work, at each option."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(market.rates > 0.0, (value[market.job] + market.prices) / market.rates, np.inf)


def _worth(market: Market, value: Floats) -> Floats:
    """Of a unit of each job's work."""
    worth = np.minimum.reduceat(_costs(market, value), market.first[:-1])
    return np.where(np.isfinite(worth), worth, 0.0)


def _ranks(market: Market) -> Floats:
    """Of each job, how many have at least as much left to do as it, each where its work costs least."""
    costs = _costs(market, market.value)
    least = np.minimum.reduceat(costs, market.first[:-1])
    best = np.flatnonzero(costs == least[market.job])
    _, first = np.unique(market.job[best], return_index=True)
    left = market.left[best[first]]
    return len(left) - np.searchsorted(np.sort(left), left - 1e-9, "left").astype(np.float64)
