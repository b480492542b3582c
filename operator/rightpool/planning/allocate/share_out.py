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
from rightpool.planning.offers.evidence import Outbid
from rightpool.prediction.columns import Floats, Ints, floats

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
    outbid: Mapping[JobKey, Outbid] = field(repr=False)
    """Of jobs that get something else than what is worth most to them: by how much its chips are worth more to others.
    """
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
    runs, value, whole = program.keeps, program.value(choice), program
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
    rest, others = (whole, found.prices) if not market.ahead.any() else _without_those_ahead(market, worth, options)
    prices = dict(zip(market.pools, others.tolist(), strict=True))
    gets = np.zeros(len(choice))
    gets[taken] = program.worth[choice[taken]]
    gets[runs] -= program.worth[program.here[runs]]
    gains = dict(zip(market.keys, gets.tolist(), strict=True))
    outbid = _outbid(market, rest, others, options)
    return SharedOut(market.placements(options), gains, prices, outbid, program.value(choice), found.bound)


def _without_those_ahead(market: Market, worth: Floats, options: Ints) -> tuple[AllocationProgram, Floats]:
    """What all others compete for, and at which prices: who comes before them pays none. options: what each gets."""
    program = AllocationProgram(market, np.where(market.ahead[market.job], -np.inf, worth))
    taken = options[market.ahead & (options != NOTHING)]
    program.chips = program.chips - np.bincount(market.pool[taken], market.size[taken], len(market.chips))
    return program, priced(program, np.zeros(len(market.pools))).prices


def _outbid(market: Market, program: AllocationProgram, prices: Floats, options: Ints) -> dict[JobKey, Outbid]:
    """Who would take something else, were there enough of it, where what that is worth to others decides. options: of
    the market, what each job gets."""
    if not len(program.worth):
        return {}
    best, most = program.best_of(program.worth)
    has = np.where(program.keeps, program.here, NOTHING)
    own = most - np.where(program.keeps, program.worth[has], 0.0)
    cost = np.append(prices[program.pool] * program.size, 0.0)  # the last is that of nothing
    worth = cost[best] - cost[has]
    misses = (best != NOTHING) & (own > 0.0) & (program.options[best] != options)
    # Of what jobs hold that nobody may move no price says who gains more.
    enough = program.size[best] <= program.chips[program.pool[best]]
    dearer = worth >= (1.0 - LEAST_GAIN) * own  # prices are as exact as the plan
    found = {}
    for job in np.flatnonzero(misses & enough & dearer).tolist():
        place = market.places[market.options[program.options[best[job]]]]
        here = None if has[job] == NOTHING else market.places[market.options[program.options[has[job]]]]
        more = place.chips - (here.chips if here is not None and here.pool == place.pool else 0)
        found[market.keys[job]] = Outbid(place.pool, more, max(float(worth[job]), float(own[job])), float(own[job]))
    return found
