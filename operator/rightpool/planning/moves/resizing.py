"""Resizing: as many pods as a job's work wants now, of a kind whose number changes without a new Revision."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.registry import work_of
from rightpool.planning.work.server import pods_at

_SHARED: Final = frozenset({Phase.SURGING, Phase.SHARING})  # what is left answers; held, the target answers alone


def with_size(job: Job, now: float) -> Job:
    """The very same job where it has as many. Before a move begins, its target follows, too. While one goes on none is
    given up: what is left has all that is wanted, whatever becomes of the target, and the target at the end."""
    ref, pods, migration = job.state.revision, work_of(job.spec).size(job, now), job.state.migration
    if ref is None or pods is None:
        return job
    if migration is None or migration.given_up:
        here = _asked(ref.with_replicas(pods), job)
        return job if here == ref else job.with_state(replace(job.state, revision=here))
    server = job.spec.workload.server
    if migration.phase is Phase.PLANNED:
        here, there = ref.with_replicas(pods), _there(job, migration, pods)
    elif server is not None and server.scaled_elsewhere:
        target = migration.target
        made = job.revision(target.revision).pods or target.placement.replicas
        here, there = ref.with_replicas(pods), target.with_replicas(made)
    else:
        here, there = ref, _more(migration.target, _there(job, migration, pods))
        if migration.phase in _SHARED:
            here = _more(ref, ref.with_replicas(pods))
    here, there = _asked(here, job), _asked(there, job)
    if (here, there) == (ref, migration.target):
        return job
    migration = replace(migration, source=here, target=there)
    return job.with_state(replace(job.state, revision=here, migration=migration))


def _there(job: Job, migration: Migration, pods: int) -> Revision:
    """The target, with as many as the record tells for its pool. Of an edit, as many as are wanted here."""
    place = migration.target.placement
    known = pods_at(job, place.pool, max(place.replicas, pods))
    return migration.target.with_replicas(known if migration.promises else pods)


def _more(before: Revision, now: Revision) -> Revision:
    return max(before, now, key=lambda ref: ref.placement.replicas)


def _asked(ref: Revision, job: Job) -> Revision:
    replicas = job.spec.workload.replicas
    chips = ref.placement.chips_per_replica * replicas
    if ref.requested == (chips, replicas):
        return ref
    return replace(ref, requested_chips=chips, requested_replicas=replicas)
