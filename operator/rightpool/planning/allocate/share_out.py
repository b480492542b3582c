"""Sharing out: the placements of all jobs with the largest sum of what they are worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rightpool.api.placement import Placement
from rightpool.planning.allocate.exchange import exchanged
from rightpool.planning.allocate.market import NOTHING, Market
from rightpool.planning.allocate.prices import CLOSE, priced
from rightpool.planning.allocate.program import AllocationProgram
from rightpool.planning.allocate.surplus import surplus
from rightpool.planning.jobs.job import JobKey
from rightpool.prediction.columns import Ints, floats

LEAST_GAIN: Final = 2.0 * CLOSE
"""Of a plan's worth, beyond the plan in which nobody that has a place changes it."""


@dataclass(frozen=True, slots=True)
class SharedOut:
    """Who is to have what."""

    places: Mapping[JobKey, Placement | None] = field(repr=False)
    """What each job of the market gets; None: nothing."""
    gains: Mapping[JobKey, float] = field(repr=False)
    """Dollars an hour that this is worth more to each than where it is, a restart paid."""
    prices: Mapping[str, float]
    """Dollars that one more chip of each pool would be worth an hour, beyond its list price; 0 where some are left."""
    worth: float
    """Dollars an hour of all placements, beyond their list prices."""
    bound: float
    """No other placements are worth more."""


def shared_out(market: Market, before: Mapping[str, float]) -> SharedOut:
    """The best placements. before: prices of the last plan.

    Who has a place keeps it, unless something is gained beyond what a plan may be off by: so plans come to rest.
    """
    worth = surplus(market)
    program = AllocationProgram(market, worth)
    found = priced(program, floats([before.get(pool, 0.0) for pool in market.pools]))
    choice = exchanged(program, found)
    runs, value = program.keeps, program.value(choice)
    if (choice[runs] != program.here[runs]).any():
        elsewhere = market.runs[market.job]
        elsewhere[market.here[runs]] = False
        still = AllocationProgram(market, np.where(elsewhere, -np.inf, worth))
        if value - still.bound(found.prices) <= LEAST_GAIN * abs(value):
            kept = exchanged(still, priced(still, found.prices))
            if value - still.value(kept) <= LEAST_GAIN * abs(value):
                program, choice = still, kept
    taken = choice != NOTHING
    options: Ints = choice.copy()
    options[taken] = program.options[choice[taken]]
    prices = dict(zip(market.pools, found.prices.tolist(), strict=True))
    gets = np.zeros(len(choice))
    gets[taken] = program.worth[choice[taken]]
    gets[runs] -= program.worth[program.here[runs]]
    gains = dict(zip(market.keys, gets.tolist(), strict=True))
    return SharedOut(market.placements(options), gains, prices, program.value(choice), found.bound)
