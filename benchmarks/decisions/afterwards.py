"""Stories of what comes after a verdict: pools fade, prices are mistyped, pools go and come back, programs change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Self

import numpy as np

from benchmarks.decisions.world import BEGAN, HOUR, PREDICTOR, Maker, pool, world
from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.predictor import Predictor
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.profiles.sample import Field
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.simulator import Simulator

Counts = dict[str, list[tuple[float, float]]]
Factor = Callable[[str, float], float]
"""By how much jobs are faster on a pool than usual, at so many hours from the beginning."""

CHIP: Final = "A100-SXM4-80GB"
HOME: Final = Placement("home", 4, 1)
STEP: Final = 60.0
PROFILED: Final = {"interval": "1m", "window": "5m"}
OFTEN: Final = {"mode": "Auto", "maxMoves": 1000, "cooldown": "0s"}


def fading(noise: str, seed: int, count: int) -> Counts:
    """A day. Half of one after the verdicts the cheaper pool is 40% slower for all of its jobs: home is right again."""
    hours = 24.0

    def fades(pool: str, at: float) -> float:
        return 0.6 if pool == "cheap" and at >= 14.0 else 1.0

    simulator, jobs = _fleet(noise, seed, count, hours, fades, {"home": 3.00, "cheap": 2.40})
    simulator.run(BEGAN + 17.0 * HOUR)
    back = sum(_pool(job) != "cheap" for job in jobs)
    simulator.run(BEGAN + hours * HOUR)
    return {"jobs back 3 h after a pool fades": [(back, count)], "saved where a pool fades": saved(simulator, jobs)}


def mistyped(noise: str, seed: int, count: int) -> Counts:
    """Ten hours. After four the price of home is typed tenfold for an hour, and in another fleet a tenth of that of a
    dearer pool. Nobody is to move for it."""
    moves = 0
    booked: list[tuple[float, float]] = []
    for name, factor in (("home", 10.0), ("dear", 0.1)):
        simulator, jobs = _fleet(noise, seed, count, 10.0, _steady, {"home": 3.00, "dear": 3.30})
        usual = simulator.pools[name].pool.price.on_demand or 0.0
        simulator.run(BEGAN + 4.0 * HOUR)
        simulator.pools[name].priced(usual * factor, charged=usual)
        simulator.run(BEGAN + 5.0 * HOUR)
        simulator.pools[name].priced(usual)
        simulator.run(BEGAN + 10.0 * HOUR)
        moves += sum(job.job.state.moves for job in jobs)
        booked += [(dollars, job.truth.spent) for job, (dollars, _) in zip(jobs, saved(simulator, jobs), strict=True)]
    return {"moves for a mistyped price": [(moves, 2 * count)], "saved by a mistyped price ÷ spent": booked}


def gone(noise: str, seed: int, count: int) -> Counts:
    """Half a day. The pool of all jobs is gone for twenty minutes, and what is left is dearer."""
    simulator, jobs = _fleet(noise, seed, count, 12.0, _steady, {"home": 3.00, "dear": 3.15})
    simulator.run(BEGAN + 3.0 * HOUR)
    simulator.pools["home"].gone = True
    simulator.run(BEGAN + 3.0 * HOUR + 1200.0)
    simulator.pools["home"].gone = False
    simulator.run(BEGAN + 6.5 * HOUR)
    back = sum(_pool(job) == "home" for job in jobs)
    simulator.run(BEGAN + 12.0 * HOUR)
    return {"jobs home 3 h after their pool was gone": [(back, count)]}


def growing(noise: str, seed: int, count: int) -> Counts:
    """A day. The batch of each program grows in six stages, one of them while its move is judged: so does its rate,
    wherever it runs."""

    def stages(pool: str, at: float) -> float:
        return float(1.12 ** np.searchsorted((0.75, 1.3, 3.0, 6.0, 10.0, 15.0), at))

    simulator, jobs = _fleet(noise, seed, count, 24.0, stages, {"home": 3.00, "cheap": 2.55})
    simulator.run(BEGAN + 24.0 * HOUR)
    return {"saved where a batch grows": saved(simulator, jobs)}


def learning(noise: str, seed: int, count: int) -> Counts:
    """Eight hours. Jobs that wait for data are as fast on a small chip, and move there; what computes does 30% there.
    What the fleet learns of that must not move the latter: it is never worse than to learn nothing."""
    counts: Counts = {}
    for seen in ("with counters", "without counters"):
        (paid, undone), (paid_without, undone_without) = (
            _mixed(noise, seed, count, predictor, counters=seen == "with counters")
            for predictor in (PREDICTOR, _Unlearned())
        )
        counts[f"cost with learning ÷ without, {seen}"] = [(paid, paid_without)]
        counts[f"moves undone by learning a job, {seen}"] = [(undone - undone_without, count)]
    return counts


class _Unlearned(StepModelPredictor):
    """Learns nothing of the fleet's moves."""

    def of_fleet(self, experience: Sequence[Comparison]) -> Self:
        """The same."""
        return self


def _mixed(noise: str, seed: int, count: int, predictor: Predictor, *, counters: bool) -> tuple[float, int]:
    """What such a fleet costs for the work that it did, against that at home; and moves that were undone."""
    pools = [pool("home", CHIP, 3.43), pool("small", "A10G-24GB", 1.20)]
    maker, simulator = Maker(seed, noise, pools, 8.0, step=STEP), world(pools)
    simulator.predictor = predictor
    jobs = [maker.job("home", 1, adaptation=OFTEN, profiling=PROFILED) for _ in range(count)]
    for number, job in enumerate(jobs):
        # Work on the small chip takes 3.3 times as long; half of the jobs wait for data for 80% of their time.
        busy, usual = (0.2, 0.98)[number % 2], job.rate(Placement("home", 1, 1))
        there = max(busy / 0.3, 1.0)
        rates, shares = {"home": usual, "small": usual / there}, {"home": busy, "small": busy / 0.3 / there}
        job.rate = lambda place, rates=rates: rates[place.pool]  # type: ignore[misc]
        state = job.job.state
        assert state.revision is not None
        job.store(replace(state, revision=replace(state.revision, chip=CHIP)))  # only then anything is learned of it
        job.readings = {Field.MEMORY_USED: 12e9}
        if counters:
            job.shows = lambda place, shares=shares: {  # type: ignore[misc]
                Field.CHIP_BUSY: shares[place.pool],
                Field.SLOWEST_CHIP_BUSY: shares[place.pool],
                Field.INPUT_WAIT: 1.0 - shares[place.pool],
            }
    simulator.add(jobs)
    simulator.run(BEGAN + 8.0 * HOUR)
    undone = sum(entry.outcome is Outcome.ROLLED_BACK for job in jobs for entry in job.job.state.history)
    stay = sum(3.43 * job.truth.done / job.rate(Placement("home", 1, 1)) / HOUR for job in jobs)
    return sum(job.truth.spent for job in jobs) / stay, undone


def _steady(pool: str, at: float) -> float:
    return 1.0


def _fleet(
    noise: str, seed: int, count: int, hours: float, factor: Factor, prices: dict[str, float]
) -> tuple[Simulator, list[SimulatedJob]]:
    """So many jobs of four chips at home, which may move at any time."""
    pools = [pool(name, CHIP, price) for name, price in prices.items()]
    maker, simulator = Maker(seed, noise, pools, hours, step=STEP), world(pools)
    jobs = [maker.job("home", 4, adaptation=OFTEN, profiling=PROFILED) for _ in range(count)]
    moments = np.arange(int(hours * HOUR / STEP) + 1) * STEP / HOUR
    for job in jobs:
        usual = job.noise
        factors = {name: np.array([factor(name, at) for at in moments]) for name in prices}
        job.noise = lambda name, usual=usual, factors=factors: usual(name)[: len(moments)] * factors[name]  # type: ignore[misc]
    simulator.add(jobs)
    return simulator, jobs


def saved(simulator: Simulator, jobs: list[SimulatedJob]) -> list[tuple[float, float]]:
    """Dollars that are booked, and what the work done would have cost at home less what was paid."""
    price = simulator.pools["home"].charged * HOME.chips / HOUR
    found = []
    for job in jobs:
        work = np.cumsum(job.rate(HOME) * job.noise("home")) * STEP
        seconds = float(np.interp(job.truth.done, work, STEP * np.arange(1, len(work) + 1)))
        seconds *= max(job.truth.done / float(work[-1]), 1.0)
        found.append((job.job.state.account.settled(simulator.now).saved, price * seconds - job.truth.spent))
    return found


def _pool(job: SimulatedJob) -> str:
    """Where its work is done, or is to be."""
    revision = job.job.state.revision
    assert revision is not None
    return revision.placement.pool
