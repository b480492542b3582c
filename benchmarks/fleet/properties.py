"""What has to hold of the plan of any fleet, shown on thousands of random ones.

    PYTHONPATH=operator python -m benchmarks.fleet.properties [FLEETS]

No chip is promised twice, and nobody that has a place goes without. With nothing changed but what a plan has changed,
the next one changes nothing, whether the operator remembers its prices or has just begun. The plan is the same in
whatever order jobs and pools come. It is worth no less than what one job after another would get. Ends with 1 where one
of them does not hold, and says for which seed.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import replace
from typing import Final

import numpy as np

from rightpool.api.placement import Placement
from rightpool.planning.allocate.market import NOTHING, Market, Stake
from rightpool.planning.allocate.share_out import LEAST_GAIN, SharedOut, shared_out
from rightpool.planning.allocate.surplus import surplus
from rightpool.planning.jobs.job import JobKey

SIZES: Final = (1, 2, 4, 8)
MOST_JOBS: Final = 16


class RandomFleet:
    """Jobs and the chips of pools, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        draw = self._draw = np.random.default_rng([seed, 34])
        pools = int(draw.integers(1, 5))
        self.chips = {f"pool-{pool}": int(draw.integers(0, 25)) for pool in range(pools)}
        self.places = [Placement(pool, size, 1) for pool in self.chips for size in SIZES]
        self.price = draw.choice([0.5, 1.0, 2.0, 4.0], pools)
        free = dict(self.chips)
        self.stakes = [self._stake(number, free) for number in range(int(draw.integers(1, MOST_JOBS + 1)))]

    def _stake(self, number: int, free: dict[str, int]) -> Stake:
        draw = self._draw
        count = int(draw.integers(1, len(self.places) + 1))
        places = np.sort(draw.permutation(len(self.places))[:count])
        pools, sizes = places // len(SIZES), np.array(SIZES)[places % len(SIZES)]
        # Some rates are equal on purpose: ties are where order would show.
        speed = draw.choice([1.0, 2.0, 3.0], len(self.price)) if draw.random() < 0.3 else draw.lognormal(0.5, 0.5, 99)
        rates = speed[pools] * sizes ** float(draw.choice([0.5, 0.8, 1.0]))
        here = NOTHING
        first = self.places[int(places[0])]
        if draw.random() < 0.6 and first.chips <= free[first.pool]:
            free[first.pool] -= first.chips
            here = int(places[0])
        return Stake(
            key=JobKey("team", f"job-{number:02}"),
            places=places,
            rates=rates,
            prices=self.price[pools] * sizes,
            left=float(draw.lognormal(9.0, 1.5)) / rates,
            value=float(draw.choice([0.0, 1.0, 5.0, 20.0])),
            here=here,
            started=here != NOTHING or draw.random() < 0.2,
            restart=float(draw.choice([0.0, 60.0, 900.0])),
            changes=float(draw.choice([0.0, 1.0, 4.0])),
        )

    def market(self) -> Market:
        """As it is."""
        return Market(self.places, self.stakes, self.chips)

    def shuffled(self) -> Market:
        """The same, in another order."""
        draw = self._draw
        order = draw.permutation(len(self.places))
        position = np.argsort(order)
        stakes = []
        for number in draw.permutation(len(self.stakes)).tolist():
            one = self.stakes[number]
            mixed = draw.permutation(len(one.places))
            columns = {name: getattr(one, name)[mixed] for name in ("rates", "prices", "left")}
            here = one.here if one.here == NOTHING else int(position[one.here])
            stakes.append(replace(one, places=position[one.places[mixed]], here=here, **columns))
        pools = draw.permutation(sorted(self.chips)).tolist()
        return Market([self.places[n] for n in order.tolist()], stakes, {pool: self.chips[pool] for pool in pools})

    def carry_out(self, plan: SharedOut) -> None:
        """Every job gets what the plan gives it, in no time."""
        number = {place: index for index, place in enumerate(self.places)}
        for index, one in enumerate(self.stakes):
            place = plan.places[one.key]
            here = NOTHING if place is None else number[place]
            changes = one.changes + (one.started and here != one.here)
            self.stakes[index] = replace(one, here=here, started=one.started or here != NOTHING, changes=changes)


def violations(seed: int) -> list[str]:
    """What does not hold of this fleet."""
    fleet, found = RandomFleet(seed), []
    market = fleet.market()
    plan = shared_out(market, {})
    used = Counter[str]()
    for place in plan.places.values():
        if place is not None:
            used[place.pool] += place.chips
    if any(count > fleet.chips[pool] for pool, count in used.items()):
        found.append("a chip is promised twice")
    if any(plan.places[one.key] is None for one in fleet.stakes if one.here != NOTHING):
        found.append("a job that runs goes without")
    if shared_out(fleet.shuffled(), {}).places != plan.places:
        found.append("the order matters")
    greedy = one_after_another(market)
    if plan.worth < greedy - LEAST_GAIN * abs(greedy) - 1e-9:
        found.append(f"worth {plan.worth:.6f}, and {greedy:.6f} one after another")
    fleet.carry_out(plan)
    for name, prices in (("with its prices", plan.prices), ("after a restart", {})):
        if shared_out(fleet.market(), prices).places != plan.places:
            found.append(f"the next plan changes something, {name}")
    return found


def one_after_another(market: Market) -> float:
    """Dollars an hour of all placements where each job in turn, first who waits, takes the best of what is free."""
    worth = surplus(market)
    free = market.chips.tolist()
    for here in market.here[market.runs].tolist():
        free[market.pool[here]] -= int(market.size[here])
    total = 0.0
    for job in np.argsort(market.runs, kind="stable").tolist():
        here = int(market.here[job])
        if here != NOTHING:
            free[market.pool[here]] += int(market.size[here])
        options = range(int(market.first[job]), int(market.first[job + 1]))
        fits = [option for option in options if market.size[option] <= free[market.pool[option]]]
        best = max(fits, key=lambda option: float(worth[option]), default=NOTHING)
        if best == NOTHING or (here == NOTHING and not worth[best] > 0.0):
            continue
        free[market.pool[best]] -= int(market.size[best])
        total += float(worth[best])
    return total


def main() -> int:
    """Print what does not hold; 1 where there is such."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fleets", type=int, nargs="?", default=10_000)
    options = parser.parse_args()
    began, bad = time.process_time(), 0
    for seed in range(options.fleets):
        found = violations(seed)
        bad += bool(found)
        for line in found:
            print(f"seed {seed}: {line}", flush=True)
    print(f"{options.fleets} fleets, {bad} of which break something; {time.process_time() - began:.0f} CPU s")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
