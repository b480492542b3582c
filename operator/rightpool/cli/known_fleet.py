"""The fleet as it is stored: what was recorded of jobs in place of measurements, for planning to be asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from rightpool.cli.recorded import recorded_diagnosis, recorded_profile, telemetry_is_up
from rightpool.cli.view import ClusterView
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.adopted import Adopted
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey, Observed
from rightpool.reporting.server_status import stored_sizing
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.observe.whereabouts import awaited_chips

# Moves of the last day count against the fleet's limits.
_MEMORY_SECONDS: Final = 86_400.0


def known_fleet(
    view: ClusterView, jobs: Mapping[JobKey, StoredJob], asked: Collection[JobKey], now: float
) -> tuple[Fleet, tuple[str, ...]]:
    """The fleet with what was recorded of those that are asked about, as the operator would see it for a decision; and
    what could not be read. Children and pods of those are in the view already.

    Of the others only those count that hold promises or have moved: their chips and moves are taken.
    """
    known = {key: stored for key, stored in jobs.items() if key in asked}
    seen = view.fleet({aspect for stored in known.values() for aspect in stored.asks})
    measured = {key: _measured(_seen(view, stored, seen.pools), stored, seen.pools) for key, stored in known.items()}
    others = {
        key: _seen(view, stored, seen.pools)
        for key, stored in jobs.items()
        if key not in known and _counts(stored, now)
    }
    telemetry = not known or any(telemetry_is_up(stored.status) for stored in known.values())
    gone = view.deleted_moves({stored.job.uid for stored in jobs.values()})
    fleet = Fleet({**others, **measured}, seen.pools, view.policy(), now, telemetry, view.outcomes(), gone)
    return fleet, seen.notes


def _measured(job: Job, stored: StoredJob, pools: Mapping[str, Pool]) -> Job:
    """With what was recorded of it."""
    pool = None if job.state.revision is None else pools.get(job.state.revision.placement.pool)
    job = job if pool is None else job.released(pool.name, pools)
    profile = recorded_profile(stored)
    diagnosis = recorded_diagnosis(stored, profile, None if pool is None else pool.accelerator)
    server = stored.status.server
    sizing = None if server is None else stored_sizing(job, server)
    return replace(job, observed=job.observed._replace(profile=profile, diagnosis=diagnosis, sizing=sizing))


def _seen(view: ClusterView, stored: StoredJob, pools: Mapping[str, Pool]) -> Job:
    job = stored.job
    child = None if job.spec.workload_ref is None else view.store.adopted_by(job.key, job.uid)
    adopted = None
    if child is not None:
        pods = [pod for pod in view.store.pods(job.key, child.revision) if not pod.done]
        revision = job.state.revision
        there = {revision.placement.pool} if revision is not None and any(pod.node for pod in pods) else set[str]()
        awaits = awaited_chips(job, child, pods, {pool.resource_name for pool in pools.values()}, there)
        adopted = Adopted(child.uid, child.revision, None, awaits=awaits)
    return replace(job, observed=Observed(revisions=view.store.revisions(job.key, job.uid), adopted=adopted))


def _counts(stored: StoredJob, now: float) -> bool:
    job = stored.job
    if not job.spec.managed or job.deleting:
        return False
    waits = not job.state.finished and (
        job.state.revision is None or job.state.revision.since is None or job.state.migration is not None
    )
    return waits or any(entry.finished_at > now - _MEMORY_SECONDS for entry in job.state.history)
