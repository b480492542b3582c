"""What the records of servers with a target say of their sizes: looked at each quarter of an hour, and where twice as
many batches were timed anywhere, in a thread.

What a replica can take is replayed far more rarely, and of few servers at once: as the record grows, or as batches come
to take longer.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Final, NamedTuple

from rightpool.api.revision import Revision
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.sizing import Sizing
from rightpool.planning.jobs.time_limits import Limits, sized_limits
from rightpool.planning.offers.servers.floor import HELD
from rightpool.planning.offers.servers.places import PoolChip, with_places
from rightpool.planning.offers.servers.recorded import outdated, recorded_sizing, with_servable
from rightpool.planning.offers.servers.sizing import LatencyTarget
from rightpool.prediction.columns import Floats
from rightpool.profiles.loads import Points
from rightpool.runtime.act.demand_records import DemandRecords

AT_ONCE: Final = 40
"""Servers looked at in one cycle."""
REPLAYED: Final = 1
"""Of these, how many of which records are replayed: for each kind of chips, which takes seconds in all."""
_OFTEN: Final = 0.25  # of what is recorded, as a share: as much more of it is reason to replay
_RARELY: Final = 6 * 3600.0  # seconds

logger = logging.getLogger(__name__)


class _Known(NamedTuple):
    """Of one server."""

    sizing: Sizing
    slot: int
    """In which it was looked at."""
    basis: Sizing
    """By which it was replayed last."""
    replayed_at: float
    """Unix seconds."""
    pools: tuple[PoolChip, ...]
    """For which."""
    needed: float
    """Bytes of each chip beside keys and values that were declared then; 0 where none were."""
    timed: frozenset[tuple[str, int]]
    """What had been timed elsewhere then."""
    seen: frozenset[tuple[str, int]]
    """What had been timed when it was looked at."""


class _Due(NamedTuple):
    """What is to be looked at."""

    key: JobKey
    slot: int
    counts: Floats
    points: Mapping[str, Points]
    """By pool: what its batches took there."""
    targets: Limits
    tokens: float
    """Of an answer, in the mean; NaN where that is unknown."""
    limit: LatencyTarget
    here: str
    """The pool where it is."""
    place: str
    pools: tuple[PoolChip, ...]
    needed: float
    seen: frozenset[tuple[str, int]]
    """What was timed by then."""
    before: _Known | None

    @property
    def timed(self) -> frozenset[tuple[str, int]]:
        """What was timed elsewhere by then."""
        return frozenset(one for one in self.seen if one[0] != self.place)


class ServerSizes:
    """Used by the planner's thread alone; the arithmetic runs in another one."""

    def __init__(self, records: DemandRecords) -> None:
        self._records = records
        self._known: dict[JobKey, _Known] = {}
        self._running: Future[Mapping[JobKey, _Known]] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sizes")

    def close(self) -> None:
        """Stop."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def follow(self) -> None:
        """This process does not lead."""
        self._known.clear()

    def of(self, job: Job) -> Sizing | None:
        """What is known of a server's size where it is, by the target that it has now."""
        known, target = self._known.get(job.key), limits_of(job)
        return known.sizing if known is not None and known.sizing.targets == target else None

    def cycle(self, servers: Mapping[JobKey, Job], pools: Mapping[str, Pool], now: float) -> None:
        """Take what was found, and look at those that are due."""
        if self._running is not None and self._running.done():
            try:
                self._known |= self._running.result()
            except Exception as error:
                logger.warning("sizes: %s: %s", type(error).__name__, error)
            self._running = None
        for key in self._known.keys() - servers.keys():
            del self._known[key]
        if self._running is None:
            chips = tuple(PoolChip(name, pool.believed(now).accelerator) for name, pool in sorted(pools.items()))
            due = [one for job in self._next(servers.values(), now) if (one := self._due(job, chips, now)) is not None]
            if due:
                self._running = self._thread.submit(_looked_at, due, now)

    def _next(self, jobs: Iterable[Job], now: float) -> list[Job]:
        """Those that were looked at longest ago."""
        waiting = []
        for job in jobs:
            known, record = self._known.get(job.key), self._records.of(job.key)
            seen = frozenset[tuple[str, int]]() if record is None else record.loads.seen
            if known is None:
                waiting.append((-math.inf, job.key, job))
            elif (known.sizing.targets, known.seen) != (limits_of(job), seen) or known.slot < _slot(job, now):
                waiting.append((known.slot, job.key, job))
        return [job for _, _, job in sorted(waiting, key=lambda one: one[:2])[:AT_ONCE]]

    def _due(self, job: Job, pools: tuple[PoolChip, ...], now: float) -> _Due | None:
        record, targets, ref = self._records.of(job.key), limits_of(job), job.state.revision
        server = job.spec.workload.server
        if record is None or not targets or ref is None or server is None:
            return None
        here, each = ref.placement.pool, ref.placement.chips_per_replica
        names = (here, *(pool.name for pool in pools))
        points = {name: found for name in names if (found := record.loads.at(f"{name}/{each}")) is not None}
        limit, needed = LatencyTarget.of(targets, server.least), float(job.spec.placement.memory_per_chip or 0)
        slot, counts, known = _slot(job, now), record.counts(now), self._known.get(job.key)
        place, tokens, seen = place_of(ref), record.tokens_each(now), record.loads.seen
        return _Due(job.key, slot, counts, points, targets, tokens, limit, here, place, pools, needed, seen, known)


def limits_of(job: Job) -> Limits:
    """What a server is sized for; empty of one that has no target."""
    return {} if job.spec.workload.server is None else sized_limits(job.spec.targets)


def place_of(ref: Revision) -> str:
    """Where it runs, as `Loads` names it."""
    return f"{ref.placement.pool}/{ref.placement.chips_per_replica}"


def _slot(job: Job, now: float) -> int:
    return math.floor(now / HELD + job.phase)


def _looked_at(due: list[_Due], now: float) -> Mapping[JobKey, _Known]:
    found, replayed = {}, 0
    for one in due:
        sizing = recorded_sizing(one.counts, one.points.get(one.here), one.targets, one.place, now, one.tokens)
        before = one.before
        if before is not None and not outdated(sizing, before.basis):
            sizing = replace(sizing, servable=before.basis.servable, places=before.basis.places)
            again = now - before.replayed_at >= min(_OFTEN * sizing.recorded, _RARELY)
            again = again or before.basis.cache_known != sizing.cache_known
            again = again or (before.pools, before.needed, before.timed) != (one.pools, one.needed, one.timed)
        else:
            again = sizing.peak is not None and sizing.line is not None
        slot, last = one.slot, (sizing, now, one.pools, one.needed, one.timed)
        if before is not None:
            last = (before.basis, before.replayed_at, before.pools, before.needed, before.timed)
        if again and replayed < REPLAYED:
            sizing = with_servable(sizing, one.counts)
            sizing = with_places(sizing, one.here, one.pools, one.points.get, one.counts, one.limit, one.needed)
            replayed, last = replayed + 1, (sizing, now, one.pools, one.needed, one.timed)
        elif again:
            slot -= 1  # its turn comes in the next cycle
        if before is not None and sizing.same_as(before.sizing):
            sizing = before.sizing
        found[one.key] = _Known(sizing, slot, *last, one.seen)
    return found
