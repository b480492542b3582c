"""What a fleet has cost, how long its jobs took and waited, and what used which pool: as it was, or as played."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rightpool.api.estimate import Z80
from rightpool.api.units import HOUR
from rightpool.hardware.pool import Pool
from rightpool.simulation.history import History, charged, work_of_history
from rightpool.simulation.rounds import RoundJob


@dataclass(frozen=True, slots=True)
class PlayedFigures:
    """Of all jobs that have ended."""

    jobs: int
    """How many have ended."""
    left: int
    """How many have not."""
    figures: Mapping[str, float]
    """By name, one of FIGURES."""
    chip_hours: Mapping[str, float] = field(default_factory=dict)
    """By pool."""


FIGURES: Final = {
    "dollars": "dollars",
    "completionHoursMean": "completion, mean hours",
    "completionHoursMedian": "completion, median",
    "completionHoursP95": "completion, 95 of 100",
    "waitHoursMean": "waiting, mean hours",
    "waitHoursLongest": "waiting, longest",
    "moves": "moves",
    "restartShare": "chip-hours of restarts",
    "deadlinesMissed": "deadlines missed",
}
"""By name, what they are called in a table."""


@dataclass(slots=True)
class _Sums:
    hours: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    held: dict[str, float] = field(default_factory=dict)
    dollars: float = 0.0
    moves: int = 0
    restarts: float = 0.0
    missed: int = 0
    left: int = 0

    def figures(self) -> PlayedFigures:
        hours, waits = np.array(self.hours or [0.0]), np.array(self.waits or [0.0])
        total = sum(self.held.values())
        found = {
            "dollars": self.dollars,
            "completionHoursMean": float(hours.mean()),
            "completionHoursMedian": float(np.percentile(hours, 50)),
            "completionHoursP95": float(np.percentile(hours, 95)),
            "waitHoursMean": float(waits.mean()),
            "waitHoursLongest": float(waits.max()),
            "moves": float(self.moves),
            "restartShare": self.restarts / total if total else 0.0,
            "deadlinesMissed": float(self.missed),
        }
        return PlayedFigures(len(self.hours), self.left, found, dict(sorted(self.held.items())))


def as_it_was(history: History, pools: Mapping[str, Pool]) -> PlayedFigures:
    """By the records. Dollars are those that were paid; where a record has none, at the prices of these pools."""
    sums = _Sums()
    for record, spec in zip(history.records, history.specs, strict=True):
        sums.hours.append((record.ended - record.arrived) / HOUR)
        sums.waits.append(record.waited / HOUR)
        sums.moves += max(record.moves, len(record.stays) - 1)
        deadline = spec.targets.deadline
        sums.missed += deadline is not None and record.ended > deadline
        spent = 0.0
        for stay in record.stays:
            hours = stay.seconds / HOUR
            spent += hours * (charged(pools, stay.placement) or 0.0)
            name = stay.placement.pool
            sums.held[name] = sums.held.get(name, 0.0) + stay.placement.chips * hours
            sums.restarts += stay.placement.chips * stay.lost / HOUR
        sums.dollars += spent if record.spent is None else record.spent
    return sums.figures()


def as_played(jobs: Sequence[RoundJob], history: History, pools: Mapping[str, Pool]) -> PlayedFigures:
    """By a simulation."""
    sums = _Sums()
    for job in jobs:
        chip_hours = {name: seconds / HOUR for name, seconds in job.held.items()}
        for name, hours in chip_hours.items():
            price = pools[name].price
            per_hour = price.spot if price.on_demand is None else price.on_demand
            sums.dollars += hours * (per_hour or 0.0)
            sums.held[name] = sums.held.get(name, 0.0) + hours
        sums.moves += max(job.restarts, 0)
        deadline = work_of_history(job).spec.targets.deadline
        if job.done is None or job.first is None:
            sums.left += 1
            sums.missed += deadline is not None
            continue
        sums.hours.append(job.seconds / HOUR)
        sums.waits.append((job.first - job.came) / HOUR)
        sums.missed += deadline is not None and history.began + job.done > deadline
        total = sum(job.held.values())
        held = (job.done - job.first) or 1
        sums.restarts += total / held * (job.restarts + 1) * job.work.restart / HOUR
    return sums.figures()


@dataclass(frozen=True, slots=True)
class FigureRange:
    """A figure over several simulations, with its 80% interval."""

    mean: float
    """Over them."""
    low: float
    """10th percentile."""
    high: float
    """90th percentile."""

    @classmethod
    def of(cls, values: Iterable[float]) -> FigureRange:
        """By their mean and spread. Of one alone nothing is known of how far it may be off."""
        found = np.array(list(values), dtype=np.float64)
        half = Z80 * float(found.std(ddof=1)) if len(found) > 1 else 0.0
        mean = float(found.mean())
        return cls(mean, mean - half, mean + half)

    @property
    def certain(self) -> bool:
        """Whether 0 is outside."""
        return self.low > 0.0 or self.high < 0.0
