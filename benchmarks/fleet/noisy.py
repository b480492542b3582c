"""A fleet under noise: jobs of mixed chips come, wait for chips and end, decided on by the operator as it is.

Three operators have the same jobs. One has the planner of the whole fleet; one gives chips to who asks first; and one
has the planner too, is told what every job that has begun truly does on all chips, and sees it do so without noise. All
run the operator's own profiles, plans, moves, verdicts and ways back, with the limits that every fleet has by default.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat, zip_longest
from typing import Any, Final

import numpy as np

from benchmarks.decisions.measures import Row, row
from benchmarks.decisions.trace import Moved, Trace
from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.choices import Objective
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.state import JobState
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.features import Features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations, Missing, Origin, Prediction
from rightpool.simulation.chips import SimulatedPool
from rightpool.simulation.noise import NOISES as KINDS
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.simulator import Simulator

COLUMNS: Final = ("dollars", "hours", "p95", "wait", "longest", "left", "moves", "right", "undone", "CPU s")
NOISES: Final = tuple(name for name in KINDS if name != "drift")
"""Names: a drift of 4% an hour for a week is no noise."""
USUAL: Final = "ar-10m"
"""Where none is named."""
PLAYERS: Final = ("greedy", "fleet", "oracle")
"""Who decides."""
WORKERS: Final = 2
JOBS, DAYS = 200, 7.0
"""How many jobs come, in so many days."""
STEP: Final = 300.0
"""Seconds between readings, and between cycles while a job starts or moves: a move takes a quarter of an hour."""
CYCLE: Final = 900.0
"""Seconds between cycles otherwise."""
PROFILED: Final = {"interval": "5m", "window": "15m"}
CHIPS: Final = {
    "a100": ("A100-SXM4-80GB", 3.43, 8),
    "a100-reserved": ("A100-SXM4-80GB", 2.40, 8),
    "h100": ("H100-SXM5-80GB", 6.88, 8),
    "l40s": ("L40S-48GB", 1.86, 8),
    "a10g": ("A10G-24GB", 1.006, 16),
}
"""By pool: chip, dollars a chip-hour, and how many there are for 200 jobs in 7 days."""
SIZES: Final = (1, 2, 4, 8)
HOURS: Final = (8.0, 0.8, 0.5, 24.0)
"""What a job takes on the chips that it would have by itself: median, standard deviation of the log, least, most."""
LATEST: Final = 10.0
"""Days after the last could have come, when the simulation ends at the latest."""


@dataclass(slots=True)
class KnownRates:
    """A model that is never wrong: it knows each job by the rate that the job has."""

    rates: Floats
    """Units of work a second of one chip, by job and pool."""
    pools: Sequence[str]
    """Names, in the order of the columns."""
    version = "known"

    def of_fleet(self, experience: Sequence[Comparison]) -> KnownRates:
        """There is nothing to learn."""
        return self

    def predict(self, jobs: Features, machines: Machines, targets: Destinations) -> Prediction:
        """As it is."""
        column = np.array([self.pools.index(made.name) for made in machines.pools], dtype=np.int64)
        here = self.rates[:, column[jobs.pool]] * jobs.chips
        found = np.abs(here - jobs.rate).argmin(axis=0)
        count = len(targets.job)
        return Prediction(
            median=self.rates[found[targets.job], column[targets.pool]] * targets.chips,
            sd=np.zeros(count),
            shared=np.zeros(count),
            healthy=np.full(count, np.nan),
            missing=np.full(count, Missing.NOTHING),
            origin=np.full(count, Origin.PREDICTED),
            describe=lambda row: ((), ()),
        )


@dataclass(slots=True)
class Coming:
    """A job, and when it comes."""

    at: float
    """Unix seconds."""
    job: SimulatedJob
    """As it is when it comes."""


@dataclass(frozen=True, slots=True)
class Played:
    """What one of them did. By job, in the order in which they came."""

    dollars: Floats
    """For all chips that its pods held."""
    hours: Floats
    """From when it came to its end, or to that of the simulation."""
    waits: Floats
    """Hours until its pods ran for the first time; infinite where they never did."""
    left: int
    """Jobs that have not ended."""
    moves: int
    """All, ways back not among them."""
    right: int
    """Moves that truly made work cheaper."""
    undone: int
    """Those of them that were undone."""
    seconds: float
    """Of the processor."""


def jobs_of(pools: Sequence[SimulatedPool], noise: str, seed: int, count: int, days: float) -> list[Coming]:
    """The jobs. Half of them say how much work they have, and every third asks for speed, too, at twice the price."""
    maker = Maker(seed, noise, pools, (days + LATEST) * 24.0, error=1.0, step=STEP)
    draw = np.random.default_rng([seed, 53])
    names, (median, sd, least, most) = [made.pool.name for made in pools], HOURS
    delays = np.sort(draw.uniform(0.0, days * 24.0 * HOUR, count))
    found = []
    for number, delay in enumerate(delays.tolist()):
        home, chips = str(draw.choice(names)), int(draw.choice(SIZES))
        hours = float(np.clip(median * np.exp(sd * draw.standard_normal()), least, most))
        twin = replace(maker).job(home, chips)
        total = twin.rate(Placement(home, chips, 1)) * hours * HOUR
        spec: dict[str, Any] = {"progress": {"totalSamples": int(total)}} if number % 2 == 0 else {}
        spec["adaptation"] = {"mode": "Auto", "yield": "Move"}
        spec["targets"] = {"objective": "Balanced" if number % 3 == 0 else "MinimizeCost"}
        job = maker.job(home, chips, started=False, delay=delay, profiling=PROFILED, **spec)
        job.total = total
        # Nobody else runs its program.
        job.job = replace(job.job, workload_hash=job.job.key.name)
        found.append(Coming(BEGAN + delay, job))
    return found


def played(player: str, noise: str, seed: int = 1, count: int = JOBS, days: float = DAYS) -> Played:
    """All jobs come and end, or the simulation does."""
    began, scale = time.process_time(), count / JOBS * DAYS / days
    pools = [
        pool(name, chip, price, max(round(chips * scale / 8.0), 1) * 8) for name, (chip, price, chips) in CHIPS.items()
    ]
    jobs = jobs_of(pools, noise, seed, count, days)
    mode = {} if player == "greedy" else {"fleet": {"mode": "Auto"}}
    trace, simulator = Trace(), world(pools, {"defaultAdaptationMode": "Auto", **mode})
    simulator.watch = trace
    if player != "greedy":
        simulator.allocator = FleetAllocator()
    if player == "oracle":
        simulator.predictor = known_rates(jobs)
    _run(simulator, jobs, BEGAN + (days + LATEST) * 24.0 * HOUR)
    ends = [one.job.truth.finished_at for one in jobs]
    moves = [(one.job, move, after) for one in jobs for move, after in _moves(trace, one.job)]
    right = [after for job, move, after in moves if _is_right(job, move)]
    return Played(
        dollars=floats([one.job.truth.spent for one in jobs]),
        hours=floats([((end or simulator.now) - one.at) / HOUR for one, end in zip(jobs, ends, strict=True)]),
        waits=floats([_waited(one, simulator.now) for one in jobs]),
        left=ends.count(None),
        moves=len(moves),
        right=len(right),
        undone=sum(after is not None and after.rolled_back for after in right),
        seconds=time.process_time() - began,
    )


def _waited(one: Coming, now: float) -> float:
    first = one.job.truth.gaps[0][1]
    return math.inf if first >= now else (first - one.at) / HOUR


def _moves(trace: Trace, job: SimulatedJob) -> Iterator[tuple[Moved, Moved | None]]:
    """Each move of a job that is no way back, and what came after it."""
    moves = trace.left[job.job.key]
    return ((move, after) for move, after in zip_longest(moves, moves[1:]) if not move.rolled_back)


def _is_right(job: SimulatedJob, move: Moved) -> bool:
    """Whether it truly made the job's work cheaper, by all noise of the week. Who asks for speed, too, has an hour
    worth what it pays for it."""
    prices = {place: CHIPS[place.pool][1] * place.chips for place in (move.source, move.target)}
    hour = prices[move.source] if job.job.spec.targets.objective is Objective.BALANCED else 0.0
    source, target = (
        (hour + prices[place]) / (job.rate(place) * float(np.mean(job.noise(place.pool))))
        for place in (move.source, move.target)
    )
    return target < source


def known_rates(jobs: Sequence[Coming]) -> KnownRates:
    """Jobs that go without noise at their mean rates, and a model that knows these."""
    pools = list(CHIPS)
    rates = np.zeros((len(jobs), len(pools)))
    for number, coming in enumerate(jobs):
        job, noise = coming.job, coming.job.noise
        job.noise = lambda name, noise=noise: np.array([np.mean(noise(name))])  # type: ignore[misc]
        for column, name in enumerate(pools):
            rates[number, column] = job.rate(Placement(name, 1, 1)) * job.noise(name)[0]
    return KnownRates(rates, pools)


def _run(simulator: Simulator, jobs: Sequence[Coming], end: float) -> None:
    to_come, there = list(jobs), len(jobs)
    while there and simulator.now < end:
        coming = [to_come.pop(0).job for _ in range(sum(one.at <= simulator.now for one in to_come))]
        for job in coming:
            job.at = simulator.now
        simulator.add(coming)
        left = sum(one.job.truth.finished_at is None for one in jobs)
        soon = bool(coming) or left < there or any(_in_between(job.job.state) for job in simulator.jobs.values())
        there, simulator.now = left, simulator.now + (STEP if soon else CYCLE)
        simulator.cycle()


def _in_between(state: JobState) -> bool:
    """Whether it starts or moves. Who waits for chips waits for the end of another job."""
    migration, revision = state.migration, state.revision
    if migration is not None:
        return migration.phase not in (Phase.WARMING_UP, Phase.VERIFYING)
    return state.finished is None and revision is not None and revision.since is None


def measured(found: Sequence[Mapping[str, Played]], noise: str) -> list[Row]:
    """The measures, against their bars. found: by seed. Of one seed an interval is over jobs; those of one fleet share
    its chips, so that of several it is over their sums."""
    counts: dict[str, list[list[tuple[float, float]]]] = {}
    for greedy, fleet, oracle in ([seed[player] for player in PLAYERS] for seed in found):
        pairs: dict[str, list[tuple[float, float]]] = {
            "share of the oracle's gain, dollars": _gains(greedy.dollars, fleet.dollars, oracle.dollars),
            "share of the oracle's gain, time": _gains(greedy.hours, fleet.hours, oracle.hours),
            "dollars, fleet ÷ greedy": list(zip(fleet.dollars.tolist(), greedy.dollars.tolist(), strict=True)),
            "time, fleet ÷ greedy": list(zip(fleet.hours.tolist(), greedy.hours.tolist(), strict=True)),
            "right moves undone": [(fleet.undone, max(fleet.right, 1))],
            "jobs that do not end": [(fleet.left, len(fleet.hours))],
            "longest wait, fleet ÷ greedy": [(float(fleet.waits.max()), float(greedy.waits.max()))],
        }
        for measure, by_job in pairs.items():
            counts.setdefault(measure, []).append(by_job)
    return [
        row(noise, measure, seeds[0] if len(seeds) == 1 else [_sum(by_job) for by_job in seeds])
        for measure, seeds in counts.items()
    ]


def _sum(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(one for one, _ in pairs), sum(of for _, of in pairs)


def _gains(greedy: Floats, fleet: Floats, oracle: Floats) -> list[tuple[float, float]]:
    """By job."""
    return list(zip((greedy - fleet).tolist(), (greedy - oracle).tolist(), strict=True))


def compared(noise: str, seeds: Sequence[int], count: int, days: float) -> list[Row]:
    """Print what each of them did; the measures over all seeds."""
    print(f"{noise:8} seed" + "".join(f"{name:>11}" for name in COLUMNS), flush=True)
    asked = [(seed, player) for seed in seeds for player in PLAYERS]
    found: dict[int, dict[str, Played]] = {seed: {} for seed in seeds}
    with ProcessPoolExecutor(WORKERS) as workers:
        made = workers.map(
            played,
            [player for _, player in asked],
            repeat(noise),
            [seed for seed, _ in asked],
            repeat(count),
            repeat(days),
        )
        for (seed, player), one in zip(asked, made, strict=True):
            found[seed][player] = one
            figures = (
                one.dollars.sum(),
                one.hours.mean(),
                np.percentile(one.hours, 95),
                one.waits.mean(),
                one.waits.max(),
            )
            numbers = (one.left, one.moves, one.right, one.undone)
            line = "".join(f"{value:11.2f}" for value in figures) + "".join(f"{number:11}" for number in numbers)
            print(f"{player:8}{seed:5}{line}{one.seconds:11.1f}", flush=True)
    return measured(list(found.values()), noise)
