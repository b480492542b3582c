"""Fading: whether a pool has become slower since its jobs were verified there.

A job whose rate falls may do so by itself, wherever it is, and so may others, each at its own time. Where all jobs of a
pool become slower in the same hour, the pool does. From then on each has lost there what it does less than at its
verdict, until that is made good. Who comes there finds what those have lost that are there or have left it: one job's
own measurement around its move home is not sure enough to keep it there.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from types import MappingProxyType
from typing import Final, NamedTuple

from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.units import DAY
from rightpool.planning.jobs.job import Job, JobKey, unit_of
from rightpool.planning.work.outlook import pace_of

# A job is where it was before these.
_UNMOVED: Final = frozenset({Outcome.HELD, Outcome.ROLLED_BACK})
# Of fewer jobs, those that have left it since included, nobody knows whether it is the pool.
_FEWEST: Final = 3
# What jobs lose in the mean is chance where it is less than so many standard deviations of that.
_SURE: Final = 3.0
# The same of their newest windows, by which each pool is looked at in each cycle.
_SURE_EACH_TIME: Final = 5.0
# By how much half an hour of a job differs from another one: standard deviation of the logarithm, until jobs tell.
_USUAL: Final = 0.15
# Nor does a pool fade where its jobs lose less than this from one half of their newest windows to the other.
_LEAST: Final = 0.08
# A loss counts in such steps, so that no window is a change.
_STEP: Final = 0.05


class Faded(NamedTuple):
    """What pools that have become slower make of rates; those of others are not in it."""

    jobs: Mapping[JobKey, float] = MappingProxyType({})
    """By job that is there: its rate ÷ what it would be, were its pool as it was when the job was verified there."""
    pools: Mapping[str, float] = MappingProxyType({})
    """By pool: what it leaves of the rate of a job that comes."""


def faded(jobs: Iterable[Job], now: float, crowded: Mapping[str, float] = MappingProxyType({})) -> Faded:
    """What pools that have become slower since make of the rates of jobs. What jobs elsewhere lose as well is no
    pool's. now: Unix seconds. crowded: by pool, what verdicts at its present use have shown that it leaves of their
    rates."""
    changes: dict[str, dict[JobKey, tuple[float, bool]]] = defaultdict(dict)
    lately: dict[str, list[float]] = defaultdict(list)
    shown: dict[str, list[float]] = defaultdict(list)
    left: Counter[str] = Counter()
    for job in jobs:
        revision = job.state.revision
        if revision is None or not job.state.history:
            continue
        left.update({entry.source.pool for entry in job.state.history if entry.finished_at > now - DAY})
        change, gone = _change(job), _left_behind(job, now)
        if change is not None:
            changes[revision.placement.pool][job.key] = change, _is_known(job)
            lately[revision.placement.pool] += _lately(job)
        if gone is not None:
            shown[gone[0]].append(gone[1])
    found: dict[JobKey, float] = {}
    for pool, there in changes.items():
        others = [change for name, of_pool in lately.items() if name != pool for change in of_pool]
        fades = _lost(lately[pool], left[pool], _SURE_EACH_TIME) - max(_lost(others), 0.0) > _LEAST
        crowds = -math.log(crowded.get(pool, 1.0))
        lost = -fmean(change for change, _ in there.values())
        for key, (change, known) in there.items():
            loss = max(lost if fades or known else 0.0, crowds)
            steps = round(min(loss, -change) / _STEP)
            if steps > 0:
                found[key] = math.exp(-_STEP * steps)
        if fades or any(known for _, known in there.values()):
            shown[pool] += [change for change, _ in there.values()]
    losses = {pool: round(_lost(of_pool) / _STEP) for pool, of_pool in shown.items()}
    return Faded(found, {pool: math.exp(-_STEP * steps) for pool, steps in losses.items() if _STEP * steps > _LEAST})


def _lost(changes: list[float], left: int = 0, sure: float = _SURE) -> float:
    """What these jobs, and as many that have left, have lost in the mean, in logarithms; 0 where that may be chance."""
    count = len(changes)
    if count + left < _FEWEST or not count:
        return 0.0
    mean = fmean(changes)
    # A few may be alike by chance: as if two more were seen that differ as much as jobs usually do.
    squares = math.fsum((change - mean) ** 2 for change in changes) + 2.0 * _USUAL**2
    variance = squares / (count + 1)
    return -mean if abs(mean) > sure * math.sqrt(variance / count) else 0.0


def _is_known(job: Job) -> bool:
    """Whether its pool was found to have faded, and has not become as fast again."""
    there = job.state.account.counterfactual
    return there is not None and there.faded < 1.0


def _lately(job: Job) -> list[float]:
    """The logarithm of its rate in the second half of its newest windows ÷ that in the first; nothing where it paused
    all of one."""
    variation, revision = job.observed.variation, job.state.revision
    if variation is None or revision is None or variation.revision != revision.revision:
        return []
    half = len(variation.recent) // 2
    early, late = math.fsum(variation.recent[:half]), math.fsum(variation.recent[len(variation.recent) - half :])
    return [math.log(late / early)] if early > 0.0 and late > 0.0 else []


def _left_behind(job: Job, now: float) -> tuple[str, float] | None:
    """The pool that its last move has left for another one of the same chips, and the logarithm of what it did there ÷
    what it does since; None where that is not known, or older than a day."""
    last = arrival_of(job)
    if last is None or last.finished_at < now - DAY or last.source.pool == last.target.pool:
        return None
    before, after = last.baseline_throughput, last.realised_throughput
    alike = last.source_chip is not None and last.source_chip == last.target_chip
    if not before or not after or not alike or last.source.chips != last.target.chips:
        return None
    return last.source.pool, math.log(before / after)


def arrival_of(job: Job) -> LedgerEntry | None:
    """The move that has brought a job where it is; None where none has, or its verdict was on throttled chips or counts
    in another unit."""
    arrival = next((entry for entry in reversed(job.state.history) if entry.outcome not in _UNMOVED), None)
    revision = job.state.revision
    if arrival is None or revision is None or arrival.target != revision.placement or arrival.throttled:
        return None
    return arrival if arrival.unit is unit_of(job) else None


def _change(job: Job) -> float | None:
    """The logarithm of its rate ÷ that at the verdict on the move that has brought it where it is."""
    arrival, (rate, _) = arrival_of(job), pace_of(job)
    verified = None if arrival is None else arrival.realised_throughput
    return math.log(rate / verified) if verified and rate > 0.0 else None
