"""Plans by region, with prices as the only thing between them, beside one plan of all.

    PYTHONPATH=operator python -m benchmarks.fleet.regions [JOBS] [--rounds N] [--one]

The fleet of `benchmarks.fleet.scale` with 400 pools in 20 regions. Each job could be on five pools of each of two
regions. In a round every region shares out its own pools among the jobs that are in it or ask for it, by the operator's
own `shared_out`, and publishes what a chip of each is worth. By these prices alone a job then asks for another region:
one that waits for the best that it could have, one that runs for what is better than what it has, a restart paid. It
keeps its chips until it has others. Plans are carried out in no time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from benchmarks.fleet.scale import MadeFleet, megabytes, put
from rightpool.planning.allocate.market import NOTHING, Market, Stake
from rightpool.planning.allocate.share_out import shared_out
from rightpool.planning.allocate.surplus import surplus
from rightpool.prediction.columns import Ints

REGIONS: Final = 20
POOLS: Final = 400
SIZES: Final = (2, 4, 8, 16)
LOAD: Final = 1.15
_EACH: Final = POOLS // REGIONS
_OWN: Final = 5


def two_regions(draw: np.random.Generator) -> Ints:
    """Five pools of each of two regions."""
    regions = draw.permutation(REGIONS)[:2]
    return np.sort(np.concatenate([region * _EACH + draw.permutation(_EACH)[:_OWN] for region in regions]))


def made(jobs: int, seed: int = 1) -> MadeFleet:
    """The fleet."""
    return MadeFleet(jobs, LOAD, seed, POOLS, SIZES, two_regions)


@dataclass(frozen=True, slots=True)
class Round:
    """What a round took and brought."""

    longest: float
    """CPU seconds of the region that took most."""
    seconds: float
    """Of all of them."""
    changes: int
    """Jobs that were placed, moved or resized."""
    worth: float
    """Dollars an hour of all placements beyond their list prices, once it is carried out."""


class RegionalPlans:
    """Regions that know of one another nothing but prices."""

    def __init__(self, fleet: MadeFleet) -> None:
        self.fleet = fleet
        self.prices: dict[str, float] = dict.fromkeys(fleet.names, 0.0)
        # Of each place its pool's region.
        self._region = np.arange(len(fleet.places)) // (_EACH * len(SIZES))

    def step(self, number: int) -> Round:
        """Every region plans once."""
        asked = self._asked(number)
        free, took = self._left(asked), []
        prices: dict[str, float] = {}
        moves: dict[int, int] = {}
        for region in range(REGIONS):
            began = time.process_time()
            own, changed = self._planned(region, np.flatnonzero(asked == region), free)
            took.append(time.process_time() - began)
            prices |= own
            moves |= changed
        for job, place in moves.items():
            self.fleet.stakes[job] = put(self.fleet.stakes[job], place)
        self.prices = prices
        return Round(max(took), sum(took), len(moves), worth(self.fleet.market()))

    def _asked(self, number: int) -> Ints:
        """The region that each job asks for, by the prices there are."""
        market = self.fleet.market()
        each = np.array([self.prices[pool] for pool in market.pools])
        net = surplus(market) - each[market.pool] * market.size
        home = np.full(len(market.keys), NOTHING)
        home[market.runs] = self._region[market.options[market.here[market.runs]]]
        best = np.maximum.reduceat(net, market.first[:-1])
        at = np.flatnonzero(net == best[market.job])
        job, first = np.unique(market.job[at], return_index=True)
        wanted = np.full(len(market.keys), NOTHING)
        wanted[job] = self._region[market.options[at[first]]]
        # Half of those that run may ask at a time: prices tell only afterwards that many did.
        may = (np.arange(len(home)) + number) % 2 == 0
        has = np.where(market.runs, net[market.here], -np.inf)
        stays = market.runs & ~(may & (best > np.maximum(has, 0.0)) & (number > 0))
        asked: Ints = np.where(stays, home, wanted)
        return asked

    def _planned(
        self, region: int, jobs: Ints, free: Mapping[str, int]
    ) -> tuple[Mapping[str, float], Mapping[int, int]]:
        """Prices of its pools, and where jobs get another place. free: chips less those of jobs that ask elsewhere."""
        fleet, first = self.fleet, region * _EACH * len(SIZES)
        places = fleet.places[first : first + _EACH * len(SIZES)]
        stakes = [self._within(fleet.stakes[job], region, len(jobs)) for job in jobs.tolist()]
        names = fleet.names[region * _EACH : (region + 1) * _EACH]
        market = Market(places, stakes, {name: free[name] for name in names})
        plan = shared_out(market, {name: self.prices[name] for name in names})
        position = {place: first + index for index, place in enumerate(places)}
        given = {job: plan.places.get(fleet.stakes[job].key) for job in jobs.tolist()}
        changed = {job: position[place] for job, place in given.items() if place is not None}
        return plan.prices, {job: place for job, place in changed.items() if place != fleet.stakes[job].here}

    def _left(self, asked: Ints) -> Mapping[str, int]:
        """Chips of each pool, less those that jobs keep while they ask for another region."""
        free = dict(self.fleet.chips)
        for stake, region in zip(self.fleet.stakes, asked.tolist(), strict=True):
            if stake.here != NOTHING and self._region[stake.here] != region:
                place = self.fleet.places[stake.here]
                free[place.pool] -= place.chips
        return free

    def _within(self, stake: Stake, region: int, jobs: int) -> Stake:
        """As the region sees it. What an hour of it is worth goes by its rank among all jobs: of few it is less."""
        first = region * _EACH * len(SIZES)
        own = self._region[stake.places] == region
        columns = {name: getattr(stake, name)[own] for name in ("places", "rates", "prices", "left")}
        columns["places"] = columns["places"] - first
        here = stake.here - first if stake.here != NOTHING and self._region[stake.here] == region else NOTHING
        value = stake.value * (len(self.fleet.stakes) / max(jobs, 1)) ** 0.5
        return replace(stake, **columns, here=here, value=value)


def worth(market: Market) -> float:
    """Dollars an hour of what jobs have, beyond list prices."""
    return float(surplus(market)[market.here[market.runs]].sum())


def overfull(fleet: MadeFleet) -> list[str]:
    """Pools of which more is taken than there is."""
    used = dict.fromkeys(fleet.names, 0)
    for stake in fleet.stakes:
        if stake.here != NOTHING:
            used[fleet.places[stake.here].pool] += fleet.places[stake.here].chips
    return [name for name, chips in used.items() if chips > fleet.chips[name]]


def main() -> int:
    """Print rounds, and plans of all beside them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=int, nargs="?", default=10_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--one", action="store_true", help="plan all at once, too")
    options = parser.parse_args()
    small = made(20)  # which loads the solver
    shared_out(small.market(), {})
    fleet, other = made(options.jobs), made(options.jobs) if options.one else None
    print(f"{options.jobs:,} jobs, {sum(fleet.chips.values()):,} chips, {worth(fleet.market()):.0f} $ an hour at first")
    before, plans = megabytes(), RegionalPlans(fleet)
    print(f"{'by region':12} {'longest':>8} {'CPU s':>7} {'changes':>8} {'$ an hour':>10}")
    for number in range(options.rounds):
        found = plans.step(number)
        _print(str(number + 1), found)
    print(f"{megabytes() - before:.0f} MB more at most than the fleet itself; overfull: {overfull(fleet)}")
    prices: Mapping[str, float] = {}
    before = megabytes()
    for _ in range(options.rounds if other is not None else 0):
        assert other is not None
        began = time.process_time()
        plan = shared_out(other.market(), prices)
        seconds, prices = time.process_time() - began, plan.prices
        _print("all at once", Round(seconds, seconds, other.carry_out(plan), worth(other.market())))
    if other is not None:
        print(f"{megabytes() - before:.0f} MB more at most")
    return 0


def _print(name: str, one: Round) -> None:
    print(f"{name:12} {one.longest:8.2f} {one.seconds:7.2f} {one.changes:8} {one.worth:10.0f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
