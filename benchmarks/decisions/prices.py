"""Stories of prices: of three equal pools they change each hour, each day, once for good, or while moves are judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from benchmarks.decisions.trace import Trace
from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.placement import Placement
from rightpool.simulation.child import Delays
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.simulator import Simulator

Counts = dict[str, list[tuple[float, float]]]
Prices = Callable[[int, np.random.Generator], tuple[float, ...]]
"""Dollars for a chip-hour of each pool, by the hour since the beginning."""

POOLS: Final = ("one", "two", "three")
USUAL: Final = 3.00
STEP: Final = 60.0
SETTLED: Final = 24
"""Hours of a market before one of its pools becomes cheaper for good."""
OFTEN: Final = {"mode": "Auto", "maxMoves": 1000, "cooldown": "0s"}
RESTARTS: Final = {"1 min": Delays(), "10 min": Delays(start=300.0, load=300.0)}


def market(hour: int, draw: np.random.Generator) -> tuple[float, ...]:
    """Each within 20% of what is usual, anew every hour."""
    return tuple(USUAL * draw.uniform(0.8, 1.2, len(POOLS)))


def tariffs(hour: int, draw: np.random.Generator) -> tuple[float, ...]:
    """The second pool costs 25% less from 22 to 6 o'clock, and as much more by day."""
    return USUAL, USUAL * (0.75 if hour % 24 >= 22 or hour % 24 < 6 else 1.25), USUAL


def cheaper(hour: int, draw: np.random.Generator) -> tuple[float, ...]:
    """The second pool costs 25% less from some time on."""
    return USUAL, USUAL * (0.75 if hour >= SETTLED else 1.0), USUAL


def cheaper_market(hour: int, draw: np.random.Generator) -> tuple[float, ...]:
    """A market in which the second pool costs 25% less from some time on."""
    one, two, three = market(hour, draw)
    return one, two * (0.75 if hour >= SETTLED else 1.0), three


def hourly(noise: str, seed: int, count: int) -> Counts:
    """Two days of a market: moves bring little at best."""
    counts = {}
    for restart in RESTARTS:
        moves, costs, _ = _run(noise, seed, count, 48, market, restart)
        counts[f"moves a day, hourly prices, restart {restart}"] = moves
        counts[f"cost against staying, hourly prices, restart {restart}"] = costs
    return counts


def daily(noise: str, seed: int, count: int) -> Counts:
    """Four days of tariffs: moves bring what the nights are cheaper."""
    moves, costs, _ = _run(noise, seed, count, 96, tariffs, "10 min")
    return {"moves a day, daily tariffs": moves, "cost against staying, daily tariffs": costs}


def for_good(noise: str, seed: int, count: int) -> Counts:
    """A pool becomes cheaper after a day, where prices were steady and in a market."""
    _, _, steady = _run(noise, seed, count, SETTLED + 6, cheaper, "10 min")
    _, _, moving = _run(noise, seed, count, SETTLED + 12, cheaper_market, "10 min")
    return {
        "at a pool 2 h after its price fell": [(sum(wait <= 2.0 for wait in steady), len(steady))],
        "at a pool 8 h after its price fell, in a market": [(sum(wait <= 8.0 for wait in moving), len(moving))],
    }


def meanwhile(noise: str, seed: int, count: int) -> Counts:
    """The second pool costs 25% less after four hours. Six minutes later, while moves to it are judged, all prices rise
    by 40%; or that one alone by 60%, for half an hour."""
    kept = 0
    for everywhere, there in ((1.4, 1.0), (1.0, 1.6)):
        trace, simulator, jobs = _fleet(noise, seed, count, 7.0, "1 min")
        for begin, factors in (
            (4.0, (1.0, 0.75, 1.0)),
            (4.1, (everywhere, 0.75 * everywhere * there, everywhere)),
            (4.6, (everywhere, 0.75 * everywhere, everywhere)),
        ):
            simulator.run(BEGAN + begin * HOUR)
            for name, factor in zip(POOLS, factors, strict=True):
                simulator.pools[name].priced(USUAL * factor)
        simulator.run(BEGAN + 7.0 * HOUR)
        moves = [trace.left[job.job.key] for job in jobs]
        kept += sum(bool(of) and not any(one.rolled_back for one in of) for of in moves)
    return {"right moves made and kept where prices change": [(kept, 2 * count)]}


def _run(
    noise: str, seed: int, count: int, hours: int, prices: Prices, restart: str
) -> tuple[list[tuple[float, float]], list[tuple[float, float]], list[float]]:
    """Moves with days, dollars with those of staying, and hours until a job was at the second pool after its price
    fell, of each job."""
    trace, simulator, jobs = _fleet(noise, seed, count, hours, restart)
    draw, home = np.random.default_rng([seed, 11]), Placement("one", 4, 1)
    paid: list[float] = []
    waits = [float("inf")] * count
    for hour in range(hours):
        dollars = prices(hour, draw)
        paid.append(dollars[0])
        for name, price in zip(POOLS, dollars, strict=True):
            if price != simulator.pools[name].pool.price.on_demand:
                simulator.pools[name].priced(price)
        simulator.run(BEGAN + (hour + 1) * HOUR)
        for number, job in enumerate(jobs):
            revision = job.job.state.revision
            if hour >= SETTLED and revision is not None and revision.placement.pool == "two":
                waits[number] = min(waits[number], hour + 1.0 - SETTLED)
    day = hours / 24.0
    moves = [(float(len(trace.left[job.job.key])), day) for job in jobs]
    return moves, [(job.truth.spent, _staying(job, home, paid)) for job in jobs], waits


def _fleet(
    noise: str, seed: int, count: int, hours: float, restart: str
) -> tuple[Trace, Simulator, list[SimulatedJob]]:
    """Where jobs will have been, and the jobs, each with four chips of the first pool; all pools cost the same."""
    pools = [pool(name, "A100-SXM4-80GB", USUAL) for name in POOLS]
    maker, trace, simulator = Maker(seed, noise, pools, hours, step=STEP), Trace(), world(pools)
    simulator.watch = trace
    jobs: list[SimulatedJob] = []
    for _ in range(count):
        job = maker.job("one", 4, adaptation=OFTEN, profiling={"interval": "1m", "window": "5m"})
        job.delays = RESTARTS[restart]
        jobs.append(job)
    simulator.add(jobs)
    return trace, simulator, jobs


def _staying(job: SimulatedJob, home: Placement, prices: list[float]) -> float:
    """Dollars that the work done would have cost at home, at the prices of the hours that it takes there."""
    each = round(HOUR / job.step)
    work = np.cumsum(job.rate(home) * job.noise(home.pool)[: len(prices) * each] * job.step)
    steps = int(np.searchsorted(work, job.truth.done))
    return float(np.sum(np.repeat(prices, each)[:steps])) * home.chips / each
