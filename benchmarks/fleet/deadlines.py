"""Deadlines: when each job ended in Sia's published run, and what its time is worth where it has to by then."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.fleet.views import Outlooks
from rightpool.planning.offers.scores import value_for_deadline
from rightpool.prediction.columns import Floats
from rightpool.simulation.rounds import RoundJob

REPLAYED: Final = ("philly-1", "philly-2", "saturn-1")
"""Traces of which the end of each job was published."""
LATE: Final = 1.05
"""Who takes so many times as long is late."""
# What may come in between: a share of the time that is left, and seconds.
_MARGIN: Final = 1.05
_SLACK_SECONDS: Final = 200.0
# Dollars an hour: of who is in time by what is cheapest, so that it goes on, and of who can't be in time any more.
_LEAST_VALUE: Final = 5.0
_LATE_VALUE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Of one trace."""

    seconds: Mapping[str, float]
    """From the submission of each job to its end in the published run."""

    @classmethod
    def of(cls, folder: Path, trace: str, policy: str = "sia") -> Deadlines:
        """As published."""
        with (folder / "replay" / f"{policy}-{trace}.jct.csv").open(encoding="utf-8") as lines:
            return cls({row["job"]: float(row["jct_s"]) for row in csv.DictReader(lines)})

    def value(self, job: RoundJob, now: int, known: Outlooks, prices: Floats, here: int | None) -> float:
        """Dollars that an hour is worth: the least at which what is in time is preferred. here: where the job is,
        among the placements."""
        restart = np.full(len(prices), float(job.work.restart))
        if here is not None:
            restart[here] = job.restarting
        in_time = known.left * _MARGIN + restart + _SLACK_SECONDS <= job.came + self.seconds[job.name] - now
        if not in_time.any():
            return _LATE_VALUE
        return min(max(value_for_deadline(known.rates, prices, in_time), _LEAST_VALUE), _LATE_VALUE)

    def late(self, ended: Mapping[str, int]) -> float:
        """The share of jobs that are late. ended: seconds from submission to end, by name."""
        return sum(seconds > LATE * self.seconds[name] for name, seconds in ended.items()) / len(ended)
