"""Disruptions of a gang: a pod is evicted or preempted, and its peers fail without it.

Kubernetes counts that against the program, and may end the child over it; the job is then started again where it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.state import MAX_DISRUPTIONS
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import PodFailure, RevisionState
from rightpool.planning.moves.beginning import next_revision
from rightpool.planning.moves.ending import end_migration
from rightpool.planning.moves.setback import GangDisrupted
from rightpool.planning.work.saving import NODE_CLOCK_SKEW_SECONDS

# PyTorch waits for a lost peer for ten minutes with NCCL, half an hour with Gloo; and the peer has its grace period.
_LATEST_FAILURE_SECONDS: Final = 2400.0


def with_disruption(job: Job) -> Job:
    """The job with when pods of its gang were taken away; the very same object where nothing is new."""
    revision, child = job.state.revision, job.child
    if revision is None or child is None or child.disrupted_at is None or revision.placement.replicas == 1:
        return job
    known = job.state.disruptions
    if known and child.disrupted_at <= known[-1]:
        return job
    kept = tuple(at for at in known if at >= revision.created_at)
    return job.with_state(replace(job.state, disruptions=(*kept, child.disrupted_at)[-MAX_DISRUPTIONS:]))


def failed_by_disruption(job: Job, state: RevisionState) -> bool:
    """Whether a child that has failed would not have, had none of its pods been taken away."""
    allowed, failures, revision = state.failures_allowed, state.pod_failures, job.state.revision
    if not state.failed or allowed is None or revision is None:
        return False
    excused: set[int] = set()
    for at in job.state.disruptions:
        if at >= revision.created_at:  # else it was of an earlier one
            excused |= _peers(at, failures)
    return bool(excused) and len(failures) - len(excused) <= allowed


def _peers(at: float, failures: tuple[PodFailure, ...]) -> set[int]:
    """Which pods failed without one that was taken away: those that were there then, and those that were started
    before the last of these had failed, and never met a whole gang."""
    there = {
        number
        for number, failure in enumerate(failures)
        if failure.bound_at <= at + NODE_CLOCK_SKEW_SECONDS
        and -NODE_CLOCK_SKEW_SECONDS <= failure.at - at <= _LATEST_FAILURE_SECONDS
    }
    last = max((failures[number].at for number in there), default=0.0)
    return there | {number for number, failure in enumerate(failures) if at < failure.bound_at <= last}


def started_again(job: Job, now: float) -> Job:
    """The job whose child a disruption has ended, on its way to the next Revision at the same place."""
    here, under_way = job.state.revision, job.state.migration
    assert here is not None
    message = GangDisrupted(here.revision, job.state.disruptions[-1]).text()
    if under_way is not None:
        # On trial it has proven nothing, and stays; what promised nothing is taken over by what follows.
        outcome = Outcome.ROLLED_BACK if under_way.rolling_back else Outcome.FAILED
        outcome = outcome if under_way.promises and under_way.phase is not Phase.PLANNED else Outcome.SUPERSEDED
        ended = replace(under_way, message=message, failure_message=under_way.failure_message and message)
        job = end_migration(job, ended, outcome, Reason.DISRUPTED, now)
    target = replace(here, revision=next_revision(job), created_at=now, since=None)
    number = job.state.decisions + 1
    migration = Migration(
        id=f"d-{number}",
        action=Action.START,
        phase=Phase.DRAINING,
        source=here,
        target=replace(target, workload_hash=job.workload_hash_of(target)),
        created_at=now,
        phase_since=now,
        reason=Reason.DISRUPTED,
        message=message,
    )
    return job.with_state(replace(job.state, migration=migration, decisions=number))
