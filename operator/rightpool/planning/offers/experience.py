"""Experience: what a job has been through that counts when it is evaluated."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import merge
from itertools import takewhile
from typing import Final, NamedTuple

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import CapacityType, Placement
from rightpool.api.tried import Tried
from rightpool.api.units import DAY, HOUR
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.booked_move import BookedMove
from rightpool.planning.jobs.job import Job, throttled_now, unit_of
from rightpool.planning.work.outlook import pace_of
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.precision import HALF, UNKNOWN_PRECISION, class_of, peak
from rightpool.prediction.step_shares import MEASURED_HOST_SD

# By how much the rates of two placements change against each other in a day (standard deviation of the logarithm):
# nodes are throttled, shared and replaced. It grows with the root of the time.
CHANGE_A_DAY: Final = 0.15
# Whatever the outcome, what was realised was measured.
_PROVEN: Final = frozenset({Outcome.VERIFIED, Outcome.ROLLED_BACK, Outcome.FAILED, Outcome.CARRIED_OUT})
# Why a job goes that has no choice.
_FORCED: Final = frozenset({Reason.START_DEADLINE_EXCEEDED, Reason.PLACEMENT_DISALLOWED})
_LEFT: Final = frozenset({Phase.PLANNED, Phase.CHECKPOINTING, Phase.SURGING, Phase.SHARING, Phase.HOLDING})
# Of a comparison of which no doubt was written down.
DOUBT_UNKNOWN: Final = 0.05


def ran_last(job: Job) -> Placement | None:
    """Where a job ran last that could not start on its way back: slow is better than not at all. None otherwise."""
    last = job.state.history[-1] if job.state.history else None
    if last is None or last.outcome is not Outcome.FAILED or last.reason != Reason.START_DEADLINE_EXCEEDED:
        return None
    return last.target if last.realised_throughput else None


def waiting_for(job: Job) -> Placement | None:
    """Where a migration that has not left yet is to go."""
    migration = job.state.migration
    waits = migration is not None and migration.phase in _LEFT
    return migration.target.placement if waits and migration is not None else None


def forced_from(job: Job) -> Placement | None:
    """Where the job was before it had to go, as its pool or its room was gone; None where it is by choice."""
    revision, place = job.state.revision, None
    here = None if revision is None else revision.placement
    for entry in reversed(job.state.history):
        if entry.outcome in (Outcome.HELD, Outcome.ROLLED_BACK):
            continue
        if entry.target != here or entry.reason not in _FORCED:
            break
        here = place = entry.source
    return place


@dataclass(frozen=True, slots=True)
class Experience:
    """What a job did on a placement against what it does where it is now."""

    ratio: float
    """Its rate there over its rate here, as they were measured one right after the other."""

    sd: float
    """Standard deviation of the logarithm: of the measurements, and of what may have changed since."""

    of_chips: bool = True
    """Whether it says something of chips and sizes, and not of that pool alone: no fault throttled either place."""


def measured_before(job: Job, now: float, pools: Mapping[str, Pool]) -> dict[Placement, Experience]:
    """By placement, the newest comparison that leads there from where the job is. An edit by the user ends it, unless
    it changed the size alone and the new one was measured.

    Rates that were measured at different times do not compare: the job or its surroundings may have been slower by then
    as a whole. What compares is the windows right before a move with those right after it, and a trial elsewhere with
    what the job did meanwhile; further back such ratios are chained. With age they are trusted less, since pools
    change: one that was throttled is tried again.
    What a job does on throttled chips and on healthy ones of a pool are two things, and chained as such. Where it is
    throttled, what it did before the fault leads from one to the other; under the placement itself is what it would do
    there without the fault. What it did in a pool that has other chips now, by `pools`, it did elsewhere.
    """
    revision = job.state.revision
    now_throttled = throttled_now(job)
    if revision is None or not (job.state.history or now_throttled or job.state.tried):
        return {}
    known: dict[tuple[Placement, bool], tuple[float, float]] = {
        (_bought_anyhow(revision.placement), now_throttled): (0.0, 0.0)
    }
    healthy = _healthy_here(job, now) if now_throttled else None
    if healthy is not None:
        known[_bought_anyhow(revision.placement), False] = healthy
    for one in merge(_moves(job, pools), _trials(job, pools), key=lambda one: -one.at):
        variance = one.doubt**2 + _changed_since(now - one.at)
        if one.target in known:
            level, doubt = known[one.target]
            known.setdefault(one.source, (level - one.change, doubt + variance))
        elif one.source in known:
            level, doubt = known[one.source]
            known[one.target] = (level + one.change, doubt + variance)
    found: dict[Placement, Experience] = {}
    for (place, throttled), (level, variance) in known.items():
        experience = Experience(math.exp(level), math.sqrt(variance), not (throttled or now_throttled))
        for capacity in CapacityType:
            found.setdefault(replace(place, capacity=capacity), experience)
    if healthy is None:
        del found[revision.placement]
    else:
        found[revision.placement] = Experience(math.exp(healthy[0]), math.sqrt(healthy[1]), of_chips=False)
    return found


def known_by_trial(job: Job, pool: str) -> bool:
    """Whether what the job's program did in a pool was seen in a trial, the last time."""
    tried = max((one.at for one in job.state.tried if one.there.pool == pool and _tells(job, one)), default=None)
    if tried is None:
        return False
    was_there = (entry for entry in job.state.history if pool in (entry.source.pool, entry.target.pool))
    return not any(entry.realised_throughput and entry.finished_at > tried for entry in was_there)


class _Compared(NamedTuple):
    source: tuple[Placement, bool]
    target: tuple[Placement, bool]
    """Where, and whether a fault throttled the chips."""
    change: float
    """Logarithm of the rate at the target ÷ at the source."""
    doubt: float
    at: float


def _moves(job: Job, pools: Mapping[str, Pool]) -> Iterator[_Compared]:
    """What the job's own moves have compared, as long as it is the same program; the newest first."""
    for entry in takewhile(_same_program, reversed(job.state.history)):
        before, after = entry.baseline_throughput, entry.realised_throughput
        if before and after and _compares(job, entry, pools):
            yield _Compared(
                (_bought_anyhow(entry.source), entry.healthy_baseline_throughput is not None),
                (_bought_anyhow(entry.target), entry.throttled),
                math.log(after / before),
                DOUBT_UNKNOWN if entry.doubt is None else entry.doubt,
                entry.finished_at,
            )


def _trials(job: Job, pools: Mapping[str, Pool]) -> Iterator[_Compared]:
    """What trials of the same program have compared, where it ran in them; the newest first."""
    for tried in reversed(job.state.tried):
        one, other = (tried.here, tried.here_chip), (tried.there, tried.there_chip)
        if tried.ratio is None or not _tells(job, tried):
            continue
        if not job.spec.compares(unit_of(job), tried.here.chips, tried.there.chips):
            continue
        if not (_renewed(pools, *one) or _renewed(pools, *other)):
            places = (_bought_anyhow(tried.here), False), (_bought_anyhow(tried.there), False)
            yield _Compared(*places, math.log(tried.ratio), tried.doubt, tried.at)


def _tells(job: Job, tried: Tried) -> bool:
    """Whether it has measured this program."""
    return tried.ratio is not None and tried.workload_hash == job.workload_hash


def _same_program(entry: LedgerEntry) -> bool:
    """Whether what was before this entry is known to compare with what came after: no edit changed more than a size
    that was measured."""
    return entry.action is not Action.UPDATE or bool(entry.resized and entry.realised_throughput)


def _compares(job: Job, entry: LedgerEntry, pools: Mapping[str, Pool]) -> bool:
    """Whether a move was judged, in what compares at both sizes, and both pools have the chips that they had then."""
    return (
        entry.outcome in _PROVEN
        and job.spec.compares(entry.unit, entry.source.chips, entry.target.chips)
        and not _renewed(pools, entry.source, entry.source_chip)
        and not _renewed(pools, entry.target, entry.target_chip)
    )


def _healthy_here(job: Job, now: float) -> tuple[float, float] | None:
    """Of a job whose chips a fault throttles: the logarithm of its rate before that, where it is, ÷ its rate now, and
    the variance of that. By the hour before the fault was seen, else by the verdict that it came with."""
    rate, (pace, _) = None, pace_of(job)
    revision, track, window = job.state.revision, job.observed.track, job.spec.profiling.window.total_seconds()
    at = now
    if track is not None and track.began is not None and math.isfinite(track.throttled_from):
        # It may have begun a window before it was seen.
        at = track.throttled_from - window
        start = max(track.began, at - HOUR)
        rate = track.mean(start, at) if at - start >= window and track.unit is unit_of(job) else None
    if not rate:
        arrival = next((entry for entry in reversed(job.state.history) if entry.outcome in _PROVEN), None)
        if arrival is None or revision is None or arrival.target != revision.placement or arrival.throttled:
            return None
        rate, at = arrival.realised_throughput if arrival.unit is unit_of(job) else None, arrival.finished_at
    if not rate or not pace > 0.0:
        return None
    return math.log(rate / pace), _VERIFIED_SD**2 + _changed_since(now - at)


def _changed_since(seconds: float) -> float:
    """Variance of the logarithm of a ratio of rates that was measured so long ago, by what may have changed since."""
    return CHANGE_A_DAY**2 * max(seconds, 0.0) / DAY


def _renewed(pools: Mapping[str, Pool], place: Placement, chip: str | None) -> bool:
    """Whether the pool has other chips than it had then."""
    pool = pools.get(place.pool)
    return pool is not None and chip is not None and pool.accelerator.key != chip


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
    """What the moves of a fleet say of its chips: how fast the work on them was before and after it went to another
    kind of chip, at the same size. They are kept in the ledgers of the jobs, those of deleted jobs in the books, and
    age like what a job itself was measured at.

    Chips change the work on them and not what waits: a job that waits for data is as fast anywhere. Where no counter
    told the two apart, a move says nothing of chips. Where a fleet has several namespaces, each is one witness.
    """
    jobs, deleted_moves = list(jobs), list(deleted_moves)
    namespaces = {job.key.namespace for job in jobs} | {move.namespace for move in deleted_moves}
    chips = {pool.accelerator.key: pool.accelerator for pool in pools.values()}

    def chip(place: Placement, key: str | None) -> Accelerator | None:
        """As its pool has it, whose figures may be measured; a pool may have got other chips since."""
        pool = pools.get(place.pool)
        return pool.accelerator if pool is not None and pool.accelerator.key == key else chips.get(key or "")

    found: list[_Seen] = []
    for namespace, entry, precision in _entries(jobs, deleted_moves):
        one, other, logs = chip(entry.source, entry.source_chip), chip(entry.target, entry.target_chip), _on_chip(entry)
        if logs is None or one is None or other is None or entry.outcome not in _PROVEN:
            continue
        if entry.healthy_baseline_throughput is not None or entry.throttled:
            continue  # of a fault, and not of the chips
        if one.key == other.key or entry.source.chips != entry.target.chips or entry.action == Action.UPDATE:
            continue
        kind = class_of(precision)
        kind = HALF if kind == UNKNOWN_PRECISION else kind
        if peak(one, kind) is None or peak(other, kind) is None:
            continue
        own = _VERIFIED_SD if entry.outcome is Outcome.VERIFIED else _UNDONE_SD
        # Of each of the two rates. In powers of two of a day and of the share: those of one doubt are weighed together.
        age = _power_of_two((now - entry.finished_at) / DAY) * DAY
        sd = math.sqrt(own**2 + _changed_since(age) / 2.0 + _share_doubt(entry) ** 2)
        found.append(_Seen(namespace, entry.finished_at, Comparison((one, other), kind, logs, sd)))
    found.sort(key=lambda seen: seen.at)
    counted = found[-MOST_COMPARISONS:] if len(namespaces) < 2 else _witnesses(found)
    return [seen.comparison for seen in counted[-MOST_COMPARISONS:]]


class _Seen(NamedTuple):
    namespace: str
    at: float
    comparison: Comparison


def _on_chip(entry: LedgerEntry) -> tuple[float, float] | None:
    """Logarithms of how fast the work on the chips was before and after, without what it waited for; None where that is
    not known."""
    before, after = entry.baseline_throughput, entry.realised_throughput
    if not before or not after or not entry.source_work or not entry.target_work:
        return None
    return math.log(before / entry.source_work), math.log(after / entry.target_work)


def _share_doubt(entry: LedgerEntry) -> float:
    """What the less known of the two shares of work leaves of its logarithm: the smaller one, as it is measured."""
    least = min(entry.source_work or 1.0, entry.target_work or 1.0)
    return MEASURED_HOST_SD * _power_of_two(1.0 / least)


def _witnesses(found: Iterable[_Seen]) -> list[_Seen]:
    """Of each namespace one comparison of two chips in a class of precision: its median one. Who has many jobs, or
    makes them up, says no more of chips than anybody else."""
    by: dict[tuple[str, int, str, str], list[_Seen]] = {}
    for seen in found:
        one, other = sorted(chip.key for chip in seen.comparison.chips)
        by.setdefault((seen.namespace, seen.comparison.kind, one, other), []).append(seen)
    return sorted((_median(alike) for alike in by.values()), key=lambda seen: seen.at)


def _median(alike: list[_Seen]) -> _Seen:
    def gain(seen: _Seen) -> float:
        (one, other), (before, after) = seen.comparison.chips, seen.comparison.logs
        return after - before if one.key < other.key else before - after

    return sorted(alike, key=gain)[(len(alike) - 1) // 2]


def _entries(jobs: Iterable[Job], deleted_moves: Iterable[BookedMove]) -> Iterator[tuple[str, LedgerEntry, str | None]]:
    """Each decision with the namespace and the precision of its job, None where that is not known."""
    for job in jobs:
        profile = job.observed.profile
        for entry in job.state.history:
            yield job.key.namespace, entry, None if profile is None else profile.traits.precision
    for move in deleted_moves:
        yield move.namespace, move.entry, move.precision


def _power_of_two(days: float) -> float:
    """The largest that is not more; 0 below one."""
    return 0.0 if days < 1.0 else 2.0 ** math.floor(math.log2(days))
