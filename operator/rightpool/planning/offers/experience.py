"""Experience: what a job has been through that counts when it is evaluated."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import CapacityType, Placement
from rightpool.api.units import DAY
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.booked_move import BookedMove
from rightpool.planning.jobs.job import Job, throttled_now
from rightpool.planning.offers.register import Register
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.precision import HALF, UNKNOWN_PRECISION, class_of, peak

# By how much the rates of two placements change against each other in a day (standard deviation of the logarithm):
# nodes are throttled, shared and replaced. It grows with the root of the time.
CHANGE_A_DAY: Final = 0.15
# Whatever the outcome, what was realised was measured.
_PROVEN: Final = frozenset({Outcome.VERIFIED, Outcome.ROLLED_BACK, Outcome.FAILED, Outcome.CARRIED_OUT})
# Of a comparison of which no doubt was written down.
DOUBT_UNKNOWN: Final = 0.05


def ran_last(job: Job) -> Placement | None:
    """Where a job ran last that could not start on its way back: slow is better than not at all. None otherwise."""
    last = job.state.history[-1] if job.state.history else None
    if last is None or last.outcome is not Outcome.FAILED or last.reason != Reason.START_DEADLINE_EXCEEDED:
        return None
    return last.target if last.realised_throughput else None


def waiting_for(job: Job, register: Register) -> int:
    """Where a migration that has not left yet is to go."""
    migration = job.state.migration
    if migration is None or migration.phase not in (Phase.PLANNED, Phase.CHECKPOINTING):
        return -1
    target = migration.target.placement
    return register.option(target) if target.pool in register.machines.index else -1


@dataclass(frozen=True, slots=True)
class Experience:
    """What a job did on a placement against what it does where it is now."""

    ratio: float
    """Its rate there over its rate here, as they were measured one right after the other."""

    sd: float
    """Standard deviation of the logarithm: of the measurements, and of what may have changed since."""

    of_chips: bool = True
    """Whether it says something of chips and sizes, and not of that pool alone: no fault throttled either place."""


def measured_before(job: Job, now: float, faded: float = 1.0) -> dict[Placement, Experience]:
    """By placement, the newest comparison that leads there from where the job is. An edit by the user ends it, unless
    it changed the size alone and the new one was measured.

    Rates that were measured at different times do not compare: the job or its surroundings may have been slower by then
    as a whole. What compares is the windows right before a move with those right after it; further back such ratios
    are chained. With age they are trusted less, since pools change: one that was throttled is tried again.
    What a job does on throttled chips and on healthy ones of a pool are two things, and chained as such. faded: its
    rate here ÷ that when it was verified here, by what its pool has lost since.
    """
    revision = job.state.revision
    if revision is None or not job.state.history:
        return {}
    now_throttled = throttled_now(job)
    known: dict[tuple[Placement, bool], tuple[float, float]] = {
        (_bought_anyhow(revision.placement), now_throttled): (-math.log(faded), 0.0)
    }
    for entry in reversed(job.state.history):
        if entry.action is Action.UPDATE and not (entry.resized and entry.realised_throughput):
            break
        before, after = entry.baseline_throughput, entry.realised_throughput
        if not before or not after or entry.outcome not in _PROVEN:
            continue
        if not job.spec.compares(entry.unit, entry.source.chips, entry.target.chips):
            continue
        change = math.log(after / before)
        own = DOUBT_UNKNOWN if entry.doubt is None else entry.doubt
        variance = own**2 + _changed_since(now - entry.finished_at)
        source = _bought_anyhow(entry.source), entry.healthy_baseline_throughput is not None
        target = _bought_anyhow(entry.target), entry.throttled
        if target in known:
            level, doubt = known[target]
            known.setdefault(source, (level - change, doubt + variance))
        elif source in known:
            level, doubt = known[source]
            known[target] = (level + change, doubt + variance)
    found: dict[Placement, Experience] = {}
    for (place, throttled), (level, variance) in known.items():
        experience = Experience(math.exp(level), math.sqrt(variance), not (throttled or now_throttled))
        for capacity in CapacityType:
            found.setdefault(replace(place, capacity=capacity), experience)
    del found[revision.placement]
    return found


def _changed_since(seconds: float) -> float:
    """Variance of the logarithm of a ratio of rates that was measured so long ago, by what may have changed since."""
    return CHANGE_A_DAY**2 * max(seconds, 0.0) / DAY


def _bought_anyhow(place: Placement) -> Placement:
    """Spot chips are as fast as others."""
    return replace(place, capacity=CapacityType.ON_DEMAND)


# Two windows of one job differ by this much. What was undone may have been undone for a passing reason: a throttled
# node, a neighbour; it counts for less.
_VERIFIED_SD: Final = 0.04
_UNDONE_SD: Final = 0.20
# The newest count; more would change little.
MOST_COMPARISONS: Final = 5_000


def fleet_experience(
    jobs: Iterable[Job], pools: Mapping[str, Pool], now: float, deleted_moves: Iterable[BookedMove] = ()
) -> list[Comparison]:
    """What the moves of a fleet say of its chips: rates of one job before and after it went to another kind of chip, at
    the same size. They are kept in the ledgers of the jobs, those of deleted jobs in the books, and age like what a job
    itself was measured at.
    """
    found: list[tuple[float, Comparison]] = []
    for entry, precision in _entries(jobs, deleted_moves):
        before, after = entry.baseline_throughput, entry.realised_throughput
        here, there = pools.get(entry.source.pool), pools.get(entry.target.pool)
        if not before or not after or here is None or there is None or entry.outcome not in _PROVEN:
            continue
        if entry.healthy_baseline_throughput is not None or entry.throttled:
            continue  # of a fault, and not of the chips
        one, other = here.accelerator, there.accelerator
        if one.key == other.key or entry.source.chips != entry.target.chips or entry.action == Action.UPDATE:
            continue
        kind = class_of(precision)
        kind = HALF if kind == UNKNOWN_PRECISION else kind
        if peak(one, kind) is None or peak(other, kind) is None:
            continue
        own = _VERIFIED_SD if entry.outcome is Outcome.VERIFIED else _UNDONE_SD
        # Of each of the two rates. In powers of two of a day: those of one doubt are weighed together.
        age = _power_of_two((now - entry.finished_at) / DAY) * DAY
        sd = math.sqrt(own**2 + _changed_since(age) / 2.0)
        found.append((entry.finished_at, Comparison((one, other), kind, (math.log(before), math.log(after)), sd)))
    found.sort(key=lambda pair: pair[0])
    return [comparison for _, comparison in found[-MOST_COMPARISONS:]]


def _entries(jobs: Iterable[Job], deleted_moves: Iterable[BookedMove]) -> Iterator[tuple[LedgerEntry, str | None]]:
    """Each decision with the precision of its job, None where that is not known."""
    for job in jobs:
        profile = job.observed.profile
        for entry in job.state.history:
            yield entry, None if profile is None else profile.traits.precision
    for move in deleted_moves:
        yield move.entry, move.precision


def _power_of_two(days: float) -> float:
    """The largest that is not more; 0 below one."""
    return 0.0 if days < 1.0 else 2.0 ** math.floor(math.log2(days))
