"""Who moves an object that somebody else has made: its user's word goes before the operator's.

What takes changes back by itself, as Argo CD and Flux do, would do so after every move. Who has done it twice is named,
and no other change is made until its user has edited the ProfiledJob, or has approved a move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.adopted_object import MAX_MANAGER, MAX_POINTER, Undone
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.ending import end_migration
from rightpool.planning.moves.setback import TakenInHand, UserAct

FORGOTTEN_SECONDS: Final = 86_400.0  # without another one
_UNDOING: Final = (UserAct.RESUMED, UserAct.CHANGED)


def with_users_word(job: Job, now: float) -> Job:
    """The job without its migration where its user has taken the object in hand meanwhile: it stays as he has it."""
    found = next((state for state in job.observed.revisions.values() if state.adopted), None)
    migration = job.state.migration
    if migration is None:
        return job if found is None or found.held or not found.edited else _undone(job, found, now)
    act = _act_of_user(job, migration, found)
    if act is None:
        return job
    if migration.phase is Phase.STARTING and (found is None or found.revision != migration.target.revision):
        job = job.with_state(replace(job.state, revision=migration.moving))  # it was not changed
    by = ""
    if found is not None and found.undone is not None and act in _UNDOING:
        by, job = found.undone.manager, _undone(job, found, now)
    outcome = Outcome.ROLLED_BACK if migration.rolling_back else Outcome.SUPERSEDED
    return end_migration(job, replace(migration, message=TakenInHand(act, by).text()), outcome, Reason.SUPERSEDED, now)


def _undone(job: Job, found: RevisionState, now: float) -> Job:
    """The job with a change of its object that somebody else has taken back, each counted once."""
    undoing, known = found.undone, job.state.adopted
    if undoing is None or known is None:
        return job
    last = known.undone
    ended = 0 if found.held else found.revision  # of what is held no change was made yet
    if last is not None and ended and last.revision == ended:
        return job
    again = (
        last is not None
        and (last.manager, last.generation) == (undoing.manager[:MAX_MANAGER], job.generation)
        and now - last.at < FORGOTTEN_SECONDS
    )
    undone = Undone(
        manager=undoing.manager[:MAX_MANAGER],
        field=undoing.field[:MAX_POINTER],
        times=last.times + 1 if last is not None and again else 1,
        at=now,
        generation=job.generation,
        revision=ended or (0 if last is None else last.revision),
    )
    return job.with_state(replace(job.state, adopted=replace(known, undone=undone)))


def _act_of_user(job: Job, migration: Migration, found: RevisionState | None) -> UserAct | None:
    """What its user has done; None where he lets the operator go on."""
    if found is None or found.deleting:
        return UserAct.DELETED
    if job.spec.only_watched:
        return UserAct.KEPT
    if found.stopped_by_user:
        return UserAct.SUSPENDED
    if found.held and not found.suspended and found.queue is None:
        return UserAct.RESUMED
    changed = found.revision == migration.target.revision
    if found.edited and (found.held or changed):
        return UserAct.CHANGED
    if job.releasing and migration.reason is not Reason.RELEASED and migration.phase is not Phase.DRAINING:
        return UserAct.RELEASED
    if migration.phase is Phase.STARTING and not (found.held or changed):
        return UserAct.RESUMED
    return None
