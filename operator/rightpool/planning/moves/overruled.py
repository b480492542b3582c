"""Who moves an object that somebody else has made: its user's word goes before the operator's."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.ending import end_migration
from rightpool.planning.moves.setback import TakenInHand, UserAct


def with_users_word(job: Job, now: float) -> Job:
    """The job without its migration where its user has taken the object in hand meanwhile: it stays as he has it."""
    migration = job.state.migration
    if migration is None:
        return job
    found = next((state for state in job.observed.revisions.values() if state.adopted), None)
    act = _act_of_user(job, migration, found)
    if act is None:
        return job
    if migration.phase is Phase.STARTING and (found is None or found.revision != migration.target.revision):
        job = job.with_state(replace(job.state, revision=migration.moving))  # it was not changed
    outcome = Outcome.ROLLED_BACK if migration.rolling_back else Outcome.SUPERSEDED
    return end_migration(job, replace(migration, message=TakenInHand(act).text()), outcome, Reason.SUPERSEDED, now)


def _act_of_user(job: Job, migration: Migration, found: RevisionState | None) -> UserAct | None:
    """What its user has done; None where he lets the operator go on."""
    if found is None or found.deleting:
        return UserAct.DELETED
    if job.spec.only_watched:
        return UserAct.KEPT
    if found.stopped_by_user:
        return UserAct.SUSPENDED
    if found.held and not found.suspended:
        return UserAct.RESUMED
    if found.held and found.edited:
        return UserAct.CHANGED
    if job.releasing and migration.reason is not Reason.RELEASED and migration.phase is not Phase.DRAINING:
        return UserAct.RELEASED
    changed = found.revision == migration.target.revision
    if migration.phase is Phase.STARTING and not (found.held or changed):
        return UserAct.RESUMED
    return None
