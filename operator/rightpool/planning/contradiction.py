"""What a status says that can't be so: nothing is done on it, because whatever was done might end work that runs.

A status is written by the operator alone, where admission sees to it. Elsewhere a backup that was put back, an older
version or a hand may have written it. Nothing that the state machine does by itself leads to what is found here.
"""

from __future__ import annotations

from rightpool.planning.migration import Migration, Phase
from rightpool.planning.revision import RevisionState
from rightpool.planning.snapshot import JobState

# Phases in which the target is where the job is.
_ARRIVED = frozenset({Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING})


def contradiction(job: JobState) -> str | None:
    """What is wrong with the job's status, in the user's words with the remedy; None where nothing is."""
    if job.unreadable is not None:
        return job.unreadable
    ref, migration = job.ref, job.migration
    if migration is not None:
        problem = _of_migration(job, migration)
        if problem is not None:
            return problem
    if ref is not None and job.revision(ref.revision).exists:
        return None
    alive = [state.revision for state in job.revisions.values() if _runs(state)]
    if not alive:
        return None
    said = "missing" if ref is None else f"r{ref.revision}, which is not there,"
    runs = f"r{max(alive)}"
    return (
        f"status.placement.revision is {said} and {runs} runs: put back the status that names {runs}, or delete its "
        f"Job {job.key.name}-{runs} to have the job started anew"
    )


def _of_migration(job: JobState, migration: Migration) -> str | None:
    remedy = "put back the status as it was, or remove status.migration"
    if job.ref is None:
        return f"status.migration is there and status.placement is not: {remedy}"
    phase, there = migration.phase, migration.target if migration.phase in _ARRIVED else migration.moving
    if migration.target.revision <= migration.moving.revision:
        return (
            f"status.migration.to.revision is r{migration.target.revision}, which does not come after "
            f"r{migration.moving.revision} that is left: {remedy}"
        )
    if job.ref.revision != there.revision:
        return (
            f"status.migration.phase is {phase.value} with r{there.revision}, and status.placement.revision is "
            f"r{job.ref.revision}: {remedy}"
        )
    return None


def _runs(state: RevisionState) -> bool:
    return (
        state.exists
        and state.active > 0
        and not (state.deleting or state.suspended or state.succeeded or state.failed or state.earlier)
    )
