"""Leaving: chips that are about to come free, by moves under way and by jobs that end."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.evidence import ComingFree
from rightpool.planning.work.outlook import ends_at

_LEAVES: Final = frozenset({Phase.PLANNED, Phase.CHECKPOINTING, Phase.DRAINING})


def leaves_for_good(job: Job) -> bool:
    """Whether a move under way is about to leave chips to others."""
    migration = job.state.migration
    if migration is None or migration.without_return is None or migration.rolling_back:
        return False
    return migration.phase in _LEAVES and job.revision(migration.source.revision).active > 0


def leaving(fleet: Fleet, changes: Mapping[JobKey, Placement] = MappingProxyType({})) -> dict[str, dict[JobKey, int]]:
    """Chips that jobs are about to leave for good, by pool: by moves under way, and by these changes."""
    found: dict[str, dict[JobKey, int]] = {}
    for key, job in fleet.jobs.items():
        migration, revision = job.state.migration, job.state.revision
        if migration is not None and leaves_for_good(job):
            here, there = migration.source.placement, migration.target.placement
        elif key in changes and revision is not None:
            here, there = revision.placement, changes[key]
        else:
            continue
        chips = here.chips - (there.chips if there.pool == here.pool else 0)
        if chips > 0:
            found.setdefault(here.pool, {})[key] = chips
    return found


def coming_free(left: Mapping[str, Mapping[JobKey, int]], pool: str, key: JobKey) -> ComingFree | None:
    """Which chips of a pool others leave for a job; None where nobody does. left: as `leaving` has it."""
    others = {other: chips for other, chips in left.get(pool, {}).items() if other != key}
    own = min((other.name for other in others if other.namespace == key.namespace), default=None)
    return ComingFree(pool, sum(others.values()), len(others), own) if others else None


def latest_end(fleet: Fleet, pool: str, nodes: frozenset[str]) -> float:
    """Unix seconds when the last job on these nodes ends, of those whose end is known; 0 where none is."""
    ends = [0.0]
    for job in fleet.jobs.values():
        revision, child = job.state.revision, job.child
        if revision is None or child is None or not child.nodes or revision.placement.pool != pool:
            continue
        end = ends_at(job, fleet.now) if not nodes.isdisjoint(child.nodes) else None
        ends += [] if end is None else [end]
    return max(ends)
