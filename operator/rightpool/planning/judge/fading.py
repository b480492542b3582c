"""Fading: whether a pool has become slower since its jobs were verified there.

A job whose rate falls may do so by itself, wherever it is. Where all jobs of a pool have lost the same, the pool has.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from rightpool.api.ledger import Outcome
from rightpool.api.units import DAY
from rightpool.planning.jobs.job import Job, JobKey, unit_of
from rightpool.planning.judge.outlook import pace_of

# A job is where it was before these.
_UNMOVED: Final = frozenset({Outcome.HELD, Outcome.ROLLED_BACK})
# Of fewer jobs, those that have left it since included, nobody knows whether it is the pool.
_FEWEST: Final = 3
# What jobs lose in the mean is chance where it is less than so many standard deviations of that.
_SURE: Final = 3.0
# A loss counts in such steps, so that no window is a change.
_STEP: Final = 0.05


def faded(jobs: Iterable[Job], now: float) -> dict[JobKey, float]:
    """By job, its rate ÷ what it would be, were its pool as it was when the job was verified there, below 1; only jobs
    whose pool has become slower since. What jobs elsewhere have lost as well is no pool's. now: Unix seconds."""
    changes: dict[str, dict[JobKey, float]] = defaultdict(dict)
    left: Counter[str] = Counter()
    for job in jobs:
        if job.state.history:
            change = _change(job)
            if change is not None and job.state.revision is not None:
                changes[job.state.revision.placement.pool][job.key] = change
            left.update({entry.source.pool for entry in job.state.history if entry.finished_at > now - DAY})
    found: dict[JobKey, float] = {}
    for pool, there in changes.items():
        others = [change for name, of_pool in changes.items() if name != pool for change in of_pool.values()]
        lost = _lost(list(there.values()), left[pool]) - max(_lost(others), 0.0)
        steps = {key: round(min(lost, -change) / _STEP) for key, change in there.items()}
        found |= {key: math.exp(-_STEP * count) for key, count in steps.items() if count > 0}
    return found


def _lost(changes: list[float], left: int = 0) -> float:
    """What these jobs, and as many that have left, have lost in the mean, in logarithms; 0 where that may be chance."""
    count = len(changes)
    if count + left < _FEWEST or not count:
        return 0.0
    mean = math.fsum(changes) / count
    variance = math.fsum((change - mean) ** 2 for change in changes) / max(count - 1, 1)
    return -mean if abs(mean) > _SURE * math.sqrt(variance / count) else 0.0


def _change(job: Job) -> float | None:
    """The logarithm of its rate ÷ that at the verdict on the move that has brought it where it is."""
    arrival = next((entry for entry in reversed(job.state.history) if entry.outcome not in _UNMOVED), None)
    revision, (rate, _) = job.state.revision, pace_of(job)
    if arrival is None or revision is None or arrival.target != revision.placement or arrival.throttled:
        return None
    verified = arrival.realised_throughput
    return math.log(rate / verified) if verified and rate > 0.0 and arrival.unit is unit_of(job) else None
