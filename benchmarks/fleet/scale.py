"""What a plan of a large fleet costs, and how far it is from the best there could be.

    PYTHONPATH=operator python -m benchmarks.fleet.scale [JOBS] [--load SHARE]

A made-up fleet, the same for the same seed: 60 pools of ten kinds of chips, and jobs each of which could have four
sizes on ten of them, most of which run. Chips are scarce by the load: what favourites would take ÷ what there is.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rightpool.api.placement import Placement
from rightpool.planning.allocate.market import NOTHING, Market, Stake
from rightpool.planning.allocate.share_out import SharedOut, shared_out
from rightpool.planning.allocate.surplus import surplus
from rightpool.planning.jobs.job import JobKey
from rightpool.prediction.columns import Floats, Ints

SIZES = (1, 2, 4, 8)
POOLS = 60
POOLS_EACH = 10
RUNNING = 0.85
# Speed of a chip, and its dollars an hour.
KINDS = np.array(
    [(1.0, 0.60), (1.3, 0.85), (1.9, 1.0), (2.4, 1.2), (3.6, 1.8), (5.5, 2.9), (6.5, 4.1), (9.0, 5.0), (12.0, 7.5)]
)


def _anywhere(draw: np.random.Generator) -> Ints:
    return np.sort(draw.permutation(POOLS)[:POOLS_EACH])


class MadeFleet:
    """Jobs, and pools for them."""

    def __init__(
        self,
        jobs: int,
        load: float,
        seed: int = 1,
        pools: int = POOLS,
        sizes: Sequence[int] = SIZES,
        drawn: Callable[[np.random.Generator], Ints] = _anywhere,
    ) -> None:
        """drawn: the pools that a job could be on, by number."""
        draw = np.random.default_rng(seed)
        kind = draw.integers(0, len(KINDS), pools)
        price = KINDS[kind, 1] * draw.lognormal(0.0, 0.08, pools)
        self.names = [f"pool-{pool:0{len(str(pools - 1))}}" for pool in range(pools)]
        self.places = [Placement(name, size, 1) for name in self.names for size in sizes]
        self.stakes: list[Stake] = []
        self._add(jobs, draw, kind, price, np.array(sizes, dtype=np.float64), drawn)
        share = draw.lognormal(0.0, 1.0, pools)
        self.chips = self._scarce(share / share.sum(), load)
        self._start(draw.permutation(jobs)[: int(RUNNING * jobs)].tolist())

    def _add(
        self,
        jobs: int,
        draw: np.random.Generator,
        kind: Ints,
        price: Floats,
        sizes: Floats,
        drawn: Callable[[np.random.Generator], Ints],
    ) -> None:
        for number in range(jobs):
            pools = drawn(draw)
            likes = draw.lognormal(0.0, 0.35, len(KINDS))
            speed = KINDS[kind[pools], 0] * likes[kind[pools]]
            rates = (speed[:, None] * sizes ** draw.uniform(0.6, 0.98)).ravel()
            stake = Stake(
                key=JobKey("team", f"job-{number:06}"),
                places=(pools[:, None] * len(sizes) + np.arange(len(sizes))).ravel(),
                rates=rates,
                prices=(price[pools][:, None] * sizes).ravel(),
                left=draw.lognormal(np.log(2.0), 1.3) * 3600.0 * 10.0 / rates,
                value=2.0 * draw.lognormal(0.0, 1.0),
                restart=float(np.exp(draw.uniform(np.log(60.0), np.log(900.0)))),
            )
            self.stakes.append(stake)

    def market(self) -> Market:
        """As it is."""
        return Market(self.places, self.stakes, self.chips)

    def carry_out(self, plan: SharedOut) -> int:
        """Every job gets what the plan gives it, in no time. How many change."""
        number = {place: index for index, place in enumerate(self.places)}
        changed = 0
        for index, stake in enumerate(self.stakes):
            place = plan.places[stake.key]
            here = NOTHING if place is None else number[place]
            if here != stake.here:
                changed += 1
                self.stakes[index] = put(stake, here)
        return changed

    def _scarce(self, share: Floats, load: float) -> Mapping[str, int]:
        market = Market(self.places, self.stakes, dict.fromkeys(self.names, 0))
        worth = surplus(market)
        best = np.maximum.reduceat(worth, market.first[:-1])
        favourite = np.flatnonzero(worth == best[market.job])
        need = np.bincount(market.pool[favourite], market.size[favourite], len(self.names))
        chips = np.maximum(np.round(0.5 * (need + need.sum() * share) / load / 8.0) * 8.0, 8.0)
        return {name: int(count) for name, count in zip(market.pools, chips.tolist(), strict=True)}

    def _start(self, order: Sequence[int]) -> None:
        """These run somewhere they like, as long as there are chips."""
        free = dict(self.chips)
        for index in order:
            stake = self.stakes[index]
            for option in np.argsort(-stake.rates / stake.prices).tolist():
                place = self.places[int(stake.places[option])]
                if place.chips <= free[place.pool]:
                    free[place.pool] -= place.chips
                    self.stakes[index] = put(stake, int(stake.places[option]))
                    break


def put(stake: Stake, here: int) -> Stake:
    """The job at this place."""
    changed = stake.changes + (stake.started and here != stake.here)
    return Stake(
        stake.key, stake.places, stake.rates, stake.prices, stake.left, stake.value, here, True, stake.restart, changed
    )


def main() -> int:
    """Print what plans cost, one after another, with nothing changed but what they change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=int, nargs="?", default=10_000)
    parser.add_argument("--load", type=float, default=1.15)
    options = parser.parse_args()
    small = MadeFleet(20, options.load)  # which loads the solver
    shared_out(small.market(), {})
    fleet = MadeFleet(options.jobs, options.load)
    before = megabytes()
    prices: Mapping[str, float] = {}
    print(f"{'plan':8} {'CPU s':>7} {'changes':>8} {'$ an hour':>10} {'from the bound':>15}")
    for name in ("cold", "second", "third"):
        began = time.process_time()
        plan = shared_out(fleet.market(), prices)
        seconds = time.process_time() - began
        prices = plan.prices
        off = plan.bound / plan.worth - 1.0
        print(f"{name:8} {seconds:7.2f} {fleet.carry_out(plan):8} {plan.worth:10.0f} {off:15.3%}", flush=True)
    print(f"{megabytes() - before:.0f} MB more at most than the fleet itself")
    return 0


def megabytes() -> float:
    """That the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


if __name__ == "__main__":
    raise SystemExit(main())
