"""The stories: each makes a fleet, lets the operator run it, and counts what it did, for one seed.

A story returns the counts of its measures: (events, cases) for a share, (amount, truth) of each job for a ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import numpy as np

from benchmarks.decisions.afterwards import fading, gone, growing, learning, mistyped
from benchmarks.decisions.crowding import slowing
from benchmarks.decisions.interruptions import taken
from benchmarks.decisions.prices import daily, for_good, hourly, meanwhile
from benchmarks.decisions.queue import queued
from benchmarks.decisions.trace import Trace
from benchmarks.decisions.trials import tried
from benchmarks.decisions.world import BEGAN, HOUR, OPEN, STEP, Maker, pool, world
from rightpool.api.placement import Placement
from rightpool.planning.jobs.job import JobKey
from rightpool.simulation.chips import SimulatedPool
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.simulator import Simulator

Counts = dict[str, list[tuple[float, float]]]
Story = Callable[[str, int, int], Counts]
"""Noise, seed and number of jobs."""

A100: Final = "A100-SXM4-80GB"
H100: Final = "H100-SXM5-80GB"
A10G: Final = "A10G-24GB"
L40S: Final = "L40S-48GB"
DAY: Final = 24.0
WORK: Final = 8.0
"""Hours that a job with a deadline takes by staying."""
MIN_SAVINGS: Final = 0.10
OFTEN: Final = {"mode": "Auto", "maxMoves": 1000, "cooldown": "0s"}


def saving(noise: str, seed: int, count: int, hours: float = DAY) -> Counts:
    """Half of the jobs can save 15%; half of these are shown at noon that going back would save 5%, which is less than
    what a move must save. All others could save 5% all day."""
    pools = [
        pool("base", A100, 3.00),
        pool("near", A100, 2.85),
        pool("better", A100, 2.55),
        pool("turns", A100, 2.55),
        pool("dear", A100, 3.30),
        pool("small", A10G, 1.00),
    ]
    maker = Maker(seed, noise, pools, hours)
    trace, simulator = Trace(), world(pools)
    simulator.watch = trace
    allowed = (["base", "better", "dear"], ["base", "turns", "dear"], ["base", "near", "dear", "small"])
    groups: list[list[SimulatedJob]] = [[], [], []]
    for number in range(count):
        group = (0, 1, 2, 2)[number % 4]
        chosen = {"pools": {"allow": allowed[group]}}
        groups[group].append(maker.job("base", 4, placement=chosen, adaptation=OFTEN))
    simulator.add(job for group in groups for job in group)
    simulator.run(BEGAN + hours / 2 * HOUR)
    simulator.pools["turns"].priced(3.00 / 0.95)
    simulator.run(BEGAN + hours * HOUR)
    right = [*groups[0], *groups[1]]
    false = sum(_false(simulator, trace, job, HOUR * hours / 2) for group in groups for job in group)
    made = [job for job in right if _first(trace, job) <= 2.0 * HOUR]
    undone = sum(any(moved.rolled_back for moved in trace.left[job.job.key]) for job in right)
    moved = sum(bool(trace.left[job.job.key]) for job in right)
    counted = [job for job in groups[0] if trace.left[job.job.key]]
    return {
        "false moves": [(false, count * hours / DAY)],
        "right moves made within 2 h": [(len(made), len(right))],
        "right moves undone": [(undone, max(moved, 1))],
        "saved": [
            (
                job.job.state.account.settled(simulator.now).saved,
                _truly_saved(simulator, job, Placement("base", 4, 1), 3.00),
            )
            for job in counted
        ],
    }


def worse(noise: str, seed: int, count: int) -> Counts:
    """Half a day. A pool that promises 25% delivers 30% less than it promised: the move is to be undone."""
    pools = [pool("base", A100, 3.00), pool("lame", A100, 2.25)]
    trace, simulator, jobs = _movable(noise, seed, count, pools)
    for job in jobs:
        usual = job.rate
        job.rate = lambda place, usual=usual: usual(place) * (0.6 if place.pool == "lame" else 1.0)  # type: ignore[misc]
    simulator.add(jobs)
    simulator.run(BEGAN + 6.0 * HOUR)
    moved = [job for job in jobs if trace.left[job.job.key]]
    back = sum(any(moved.rolled_back for moved in trace.left[job.job.key][:2]) for job in moved)
    return {"wrong moves undone within 6 h": [(back, max(len(moved), 1))]}


def hangs(noise: str, seed: int, count: int) -> Counts:
    """Seven hours. On the cheaper pool the program hangs: half of the jobs take no step there, the others stop after
    two minutes. What its chips cost meanwhile is lost, and booked as such."""
    pools = [pool("base", A100, 3.00), pool("hangs", A100, 2.25)]
    trace, simulator, jobs = _movable(noise, seed, count, pools)
    for number, job in enumerate(jobs):
        usual, works = job.rate, (0.0, 120.0)[number % 2]
        job.rate = lambda place, job=job, usual=usual, works=works: (  # type: ignore[misc]
            0.0 if place.pool == "hangs" and _worked(job, place, simulator.now) >= works else usual(place)
        )
        job.saves = lambda place: place.pool != "hangs"
    simulator.add(jobs)
    simulator.run(BEGAN + 7.0 * HOUR)
    moved = [job for job in jobs if trace.left[job.job.key]]
    back = sum(_back_within(trace, job, 2.0 * HOUR) for job in moved)
    return {
        "hanging jobs back within 2 h": [(back, max(len(moved), 1))],
        "lost where it hangs, booked": [
            (
                -job.job.state.account.settled(simulator.now).saved,
                -_truly_saved(simulator, job, Placement("base", 4, 1), 3.00),
            )
            for job in moved
        ],
    }


def slow_start(noise: str, seed: int, count: int) -> Counts:
    """Half a day. Wherever a job starts it is half as fast for three quarters of an hour, as with a cache that is cold
    then. After four hours the price of another pool falls by 25%."""
    pools = [pool("base", A100, 3.00), pool("turns", A100, 3.00)]
    trace, simulator, jobs = _movable(noise, seed, count, pools)
    for job in jobs:
        usual = job.rate
        job.rate = lambda place, job=job, usual=usual: (  # type: ignore[misc]
            usual(place) * (0.5 if _worked(job, place, simulator.now) < 0.75 * HOUR else 1.0)
        )
    simulator.add(jobs)
    simulator.run(BEGAN + 4.0 * HOUR)
    simulator.pools["turns"].priced(2.25)
    simulator.run(BEGAN + 12.0 * HOUR)
    moved = [job for job in jobs if trace.left[job.job.key]]
    undone = sum(any(moved.rolled_back for moved in trace.left[job.job.key]) for job in moved)
    return {
        "moves of slow starters made": [(len(moved), count)],
        "moves of slow starters undone": [(undone, max(len(moved), 1))],
    }


def _movable(
    noise: str, seed: int, count: int, pools: list[SimulatedPool]
) -> tuple[Trace, Simulator, list[SimulatedJob]]:
    """Where jobs will have been, a day, and so many jobs of four chips of the first pool that may move at any time."""
    maker, trace, simulator = Maker(seed, noise, pools, DAY), Trace(), world(pools)
    simulator.watch = trace
    return trace, simulator, [maker.job(pools[0].pool.name, 4, adaptation=OFTEN) for _ in range(count)]


def _worked(job: SimulatedJob, place: Placement, now: float) -> float:
    """Seconds since its first step where it is."""
    child = next(child for child in job.children.values() if child.placement == place)
    return now - child.works_from(job.delays)


def bad_pool(noise: str, seed: int, count: int) -> Counts:
    """A week with the limits that a fleet has by default. A pool delivers 40% less than it promises, and is mended
    after three days. Readings are a minute apart, which this is not about."""
    pools = [pool("base", A100, 3.00), pool("lame", A100, 2.25)]
    maker = Maker(seed, noise, pools, 7.0 * DAY)
    trace, simulator = Trace(), world(pools, {"defaultAdaptationMode": "Auto"})
    simulator.watch = trace
    mended = BEGAN + 3.0 * DAY * HOUR
    jobs = []
    for number in range(count):
        job = maker.job("base", 4, adaptation=OFTEN, profiling={"interval": "1m", "window": "10m"})
        job.job = replace(job.job, key=JobKey(f"team-{number % 4}", job.job.key.name))
        job.step = 60.0
        usual = job.rate
        job.rate = lambda place, usual=usual: (  # type: ignore[misc]
            usual(place) * (0.6 if place.pool == "lame" and simulator.now < mended else 1.0)
        )
        jobs.append(job)
    simulator.add(jobs)
    simulator.run(BEGAN + 7.0 * DAY * HOUR)
    came = [moved.at for job in jobs for moved in trace.left[job.job.key] if moved.target.pool == "lame"]
    harmed = sum(at < mended for at in came)
    waited = min((at for at in came if at >= mended), default=simulator.now) - mended
    return {
        "jobs moved to a bad pool in three days": [(harmed, 1.0)],
        "wait for a mended pool ÷ time it was bad": [(waited, mended - BEGAN)],
    }


def _deadline(
    noise: str, seed: int, count: int, slack: float, work: float
) -> tuple[Simulator, Trace, list[SimulatedJob]]:
    """Jobs whose work takes so many hours by staying, with `slack` to their deadline; a dearer pool is faster."""
    pools = [pool("base", A100, 3.00), pool("dear", A100, 3.15), pool("fast", H100, 7.50)]
    hours = work * (1.0 + slack)
    maker = Maker(seed, noise, pools, 3.0 * hours)
    trace, simulator = Trace(), world(pools)
    simulator.watch = trace
    jobs = []
    deadline = datetime.fromtimestamp(BEGAN + hours * HOUR, UTC).isoformat()
    for _ in range(count):
        twin = Maker(seed, noise, pools, 3.0 * hours, count=maker.count).job("base", 4)
        factors = twin.noise("base")[: int(work * HOUR / STEP)]
        # Samples that are done by staying.
        total = twin.rate(Placement("base", 4, 1)) * float(np.sum(factors)) * STEP
        jobs.append(maker.job("base", 4, total=total, targets={"deadline": deadline}, adaptation=OFTEN))
    simulator.add(jobs)
    simulator.run(BEGAN + (hours + 1.0) * HOUR)
    return simulator, trace, jobs


def in_time(noise: str, seed: int, count: int, work: float = WORK, slacks: Sequence[float] = (0.15, 0.30)) -> Counts:
    """Jobs that are in time by staying, with so much slack."""
    counts: Counts = {}
    for slack in slacks:
        _, trace, jobs = _deadline(noise, seed, count, slack, work)
        moved = sum(bool(trace.left[job.job.key]) for job in jobs)
        counts[f"moved for a deadline in time, slack {slack:.0%}"] = [(moved, len(jobs))]
    return counts


def late(noise: str, seed: int, count: int, work: float = WORK) -> Counts:
    """Jobs that are 25% late by staying, and in time on the faster pool."""
    _, _, jobs = _deadline(noise, seed, count, -0.20, work)
    end = BEGAN + work * 0.8 * HOUR
    done = sum(job.truth.finished_at is not None and job.truth.finished_at <= end for job in jobs)
    return {"true misses repaired in time": [(done, len(jobs))]}


def crowded(noise: str, seed: int, count: int) -> Counts:
    """A day in which pools are 95% full and jobs come and go; a pool promises more than it delivers."""
    chips = 4 * count
    pools = [
        pool("base", A100, 3.00, chips=_nodes(chips * 0.65)),
        pool("better", A100, 2.40, chips=_nodes(chips * 0.40)),
    ]
    maker = Maker(seed, noise, pools, DAY)
    trace, simulator = Trace(), world(pools, {**OPEN, "maxConcurrentMigrations": 10})
    simulator.watch = trace
    draw = np.random.default_rng([seed, 99])
    jobs = []
    for number in range(2 * count):
        hours = float(draw.exponential(6.0)) + 0.5
        delay = 0.0 if number < count else float(draw.uniform(0.0, 18.0)) * HOUR
        job = maker.job("base", 4, total=1.0, started=False, delay=delay, adaptation={"mode": "Auto"})
        job.total = job.rate(Placement("base", 4, 1)) * hours * HOUR
        slow = number % 5 == 0
        usual = job.rate
        job.rate = lambda place, usual=usual, slow=slow: (
            usual(place)
            * (  # type: ignore[misc]
                0.6 if slow and place.pool == "better" else 1.0
            )
        )
        jobs.append((delay, job))
    without = 0.0
    waiting = sorted(jobs, key=lambda entry: entry[0])
    while simulator.now < BEGAN + DAY * HOUR:
        due = [job for delay, job in waiting if BEGAN + delay <= simulator.now]
        waiting = [(delay, job) for delay, job in waiting if BEGAN + delay > simulator.now]
        for job in due:
            job.at = simulator.now
        simulator.add(due)
        simulator.run(simulator.now + 600.0)
    for _, job in jobs:
        moves = len(trace.left[job.job.key])
        if moves:
            first = trace.left[job.job.key][0].at
            without += max(_idle_since(job, first) - moves * 300.0, 0.0) / HOUR
    return {"hours without a pod beyond the moves' need": [(without, 1.0)]}


def _idle_since(job: SimulatedJob, first: float) -> float:
    """Seconds without a running pod after its first move."""
    return sum(end - begin for begin, end in job.truth.gaps if begin >= first - 60.0)


def mixed(noise: str, seed: int, count: int, hours: float = DAY) -> Counts:
    """A day of a fleet whose jobs begin anywhere, on chips of which the model is as wrong as it says it may be."""
    pools = [
        pool("a100", A100, 3.43),
        pool("a100-reserved", A100, 2.40),
        pool("h100", H100, 6.88),
        pool("l40s", L40S, 1.86),
        pool("a10g", A10G, 1.006),
    ]
    maker = Maker(seed, noise, pools, hours, error=1.0)
    simulator = world(pools)
    draw = np.random.default_rng([seed, 7])
    jobs = []
    for _ in range(count):
        name, chips = str(draw.choice(["a100", "a100", "h100", "l40s", "a10g"])), int(draw.choice([1, 2, 4, 8]))
        jobs.append((Placement(name, chips, 1), maker.job(name, chips, adaptation={"mode": "Auto"})))
    simulator.add(job for _, job in jobs)
    simulator.run(BEGAN + hours * HOUR)
    prices = {made.pool.name: made.pool.price.on_demand or 0.0 for made in pools}
    saved: list[tuple[float, float]] = []
    spent: list[tuple[float, float]] = []
    for home, job in jobs:
        worked = job.truth.done
        factor = float(np.mean(job.noise(home.pool)))
        costs = {
            name: prices[name] * home.chips / (job.rate(Placement(name, home.chips, 1)) * factor) / HOUR
            for name in prices
        }
        stay, oracle, paid = costs[home.pool] * worked, min(costs.values()) * worked, job.truth.spent
        saved.append((stay - paid, stay - oracle))
        spent.append((paid, stay))
    return {"share of the oracle's saving": saved, "cost against staying": spent}


def _nodes(chips: float) -> int:
    """The nearest whole nodes."""
    return max(round(chips / 8.0), 1) * 8


def _first(trace: Trace, job: SimulatedJob) -> float:
    """Seconds until it left for the first time."""
    moves = trace.left[job.job.key]
    return moves[0].at - BEGAN if moves else float("inf")


def _back_within(trace: Trace, job: SimulatedJob, seconds: float) -> bool:
    """Whether its first move was undone so soon."""
    first, *later = trace.left[job.job.key]
    return any(moved.rolled_back and moved.at - first.at <= seconds for moved in later[:1])


def _false(simulator: Simulator, trace: Trace, job: SimulatedJob, turn: float) -> int:
    """Moves whose true gain was below what a move must save; a way back after a verdict is counted by itself."""
    wrong = 0
    for moved in trace.left[job.job.key]:
        if not moved.rolled_back:
            before, after = (_cost(simulator, job, place, moved.at, turn) for place in (moved.source, moved.target))
            wrong += 1.0 - after / before < MIN_SAVINGS
    return wrong


def _cost(simulator: Simulator, job: SimulatedJob, place: Placement, at: float, turn: float) -> float:
    """True dollars for a sample, by the whole day's noise, at the prices of then."""
    price = simulator.pools[place.pool].pool.price.on_demand or 0.0
    if place.pool == "turns" and at < BEGAN + turn:
        price = 2.55
    return price / (job.rate(place) * float(np.mean(job.noise(place.pool))))


def _truly_saved(simulator: Simulator, job: SimulatedJob, home: Placement, price: float) -> float:
    """Dollars that the work done would have cost at home, at home's rate in those hours, less what was spent."""
    counted = int((simulator.now - BEGAN) / STEP)
    work = job.rate(home) * np.cumsum(job.noise(home.pool)[:counted]) * STEP
    hours = float(np.searchsorted(work, job.truth.done)) * STEP / HOUR
    # What it could not have done there by now, at the mean rate of these hours.
    hours *= max(job.truth.done / float(work[-1]), 1.0)
    return price * home.chips * hours - job.truth.spent


STORIES: Final[Mapping[str, Story]] = {
    "saving": saving,
    "worse": worse,
    "hangs": hangs,
    "slow start": slow_start,
    "bad pool": bad_pool,
    "in time": in_time,
    "late": late,
    "crowded": crowded,
    "mixed": mixed,
    "hourly prices": hourly,
    "daily tariffs": daily,
    "cheaper for good": for_good,
    "prices meanwhile": meanwhile,
    "fading pool": fading,
    "mistyped price": mistyped,
    "pool gone": gone,
    "growing batch": growing,
    "jobs that slow each other": slowing,
    "learning": learning,
    "spot taken": taken,
    "queue": queued,
    "trials": tried,
}
