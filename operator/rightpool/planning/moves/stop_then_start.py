"""Stop, then start: how a job is handed over whose checkpoint has one writer.

The program saves its state, its pods end, and only then the target is what is to be there.
"""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.books.accounting import departed
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.baseline import with_baseline
from rightpool.planning.moves.edits import with_edit
from rightpool.planning.moves.ending import end_migration, with_avoided, with_phase
from rightpool.planning.moves.handover import Handover
from rightpool.planning.moves.migration_texts import unsaved_text
from rightpool.planning.moves.setback import ChipsTaken, EndUnknown, NeverStarted
from rightpool.planning.work.idling import hangs
from rightpool.planning.work.saving import (
    failed_since_asked,
    never_saves,
    saved_since,
    saves_when_asked,
    waited_for_save,
)
from rightpool.planning.work.unsaved import late_save

# Kubernetes says within seconds how a child has ended whose pods have.
FINISHING_SECONDS = 600.0


class StopThenStart(Handover):
    """First a save, then the end of what is left, then the target."""

    phases = frozenset({Phase.CHECKPOINTING, Phase.DRAINING})

    def begin(self, job: Job, migration: Migration, now: float, *, save: bool = True) -> Job:
        """With the save that came too late for the last attempt it leaves: asked for another one, it would be ended in
        that."""
        saved_at = None if migration.rolling_back else late_save(job, now)
        migration = replace(migration, saved_before=job.observed.checkpoint_at, saved_at=saved_at)
        return with_phase(job, migration, Phase.CHECKPOINTING if save else Phase.DRAINING, now)

    def step(self, job: Job, migration: Migration, edited: bool, taken: bool, now: float) -> Job:
        """Until the old Revision is gone."""
        if migration.phase is Phase.DRAINING:
            return _draining(job, migration, edited, now)
        if taken and not migration.rolling_back:
            text = ChipsTaken(migration.target.placement, now - migration.phase_since).text()
            migration = replace(migration, message=text)
            return end_migration(job, migration, Outcome.HELD, Reason.WAITING_FOR_CAPACITY, now)
        return _checkpointing(job, migration, edited, now)

    def saves(self, migration: Migration) -> bool:
        """Before it ends."""
        return migration.phase is Phase.CHECKPOINTING

    def there(self, current: Revision, migration: Migration | None) -> tuple[Revision, ...]:
        """The place of a job changes when nothing is left where it was."""
        return () if migration is not None and migration.phase is Phase.DRAINING else (current,)


def _checkpointing(job: Job, migration: Migration, edited: bool, now: float) -> Job:
    if (edited or job.spec.suspend) and not migration.rolling_back:
        return end_migration(job, migration, Outcome.SUPERSEDED, Reason.SUPERSEDED, now)
    leaving = job.revision(migration.moving.revision)
    if leaving.finishing:  # to start it anew elsewhere would do its last part twice
        return job if now - migration.phase_since <= FINISHING_SECONDS else _unfinished(job, migration, now)
    if migration.action is Action.START:
        if leaving.all_running(migration.moving.placement.replicas):
            return end_migration(job, migration, Outcome.SUPERSEDED, Reason.RUNNING, now)
        if leaving.exists and migration.moving.since is None:  # else nothing was tried, or it ran there
            why = NeverStarted(leaving.why_not_running).text()
            job = with_avoided(job, migration.moving, Reason.START_DEADLINE_EXCEEDED, now, message=why)
    asked_at = migration.phase_since
    failed = migration.moving.since is not None and failed_since_asked(leaving, asked_at)
    nothing_to_save = leaving.running == 0 and (leaving.active == 0 or migration.moving.since is None)
    asked = saves_when_asked(job)
    # Who demands the move does not wait for the next save of a program that fails by itself.
    waits = failed and (asked or not migration.demanded)
    if (nothing_to_save and not waits) or never_saves(job):
        return _left(job, migration, now)
    if migration.saved_at is not None:
        return _left(job, migration, now)
    saved = saved_since(job, asked_at, migration.saved_before)
    if saved is not None:
        return _left(job, replace(migration, saved_at=saved), now)
    if failed and asked:
        # What it did since its last save is lost where it is, too: who demands the move need not wait. Any other would
        # be judged by a program that fails, and may meet what the failed save has left.
        leaves = leaving.failed or (migration.demanded and not migration.rolling_back)
        if leaves or not _ends(leaving):
            return _unsaved(job, migration, Reason.SAVE_FAILED, now, leaves=leaves)
    if not waited_for_save(job, asked_at, now):
        return job
    # The user replaced the workload; waiting for ever for the old one to save would ignore that. A job that has lost
    # some of its nodes for long does not go on where it is. Nor does one that hangs where it was moved to.
    leaves = hangs(job, migration, now) if migration.rolling_back else not migration.promises
    return _unsaved(job, migration, Reason.CHECKPOINT_TIMEOUT, now, leaves=leaves)


def _unfinished(job: Job, migration: Migration, now: float) -> Job:
    """Its pods have ended, and nobody says how. What the user demands goes on; else it may have completed."""
    if not migration.promises and not migration.rolling_back:
        return _left(job, migration, now)
    message = EndUnknown(migration.moving.revision).text()
    if not migration.rolling_back:
        return end_migration(job, replace(migration, message=message), Outcome.HELD, Reason.FINISHING, now)
    migration = replace(migration, failure_message=f"{migration.failure_message}; {message}")
    return end_migration(job, migration, Outcome.FAILED, Reason.FINISHING, now)


def _ends(leaving: RevisionState) -> bool:
    """Whether its child will have failed in a moment: it is not started again."""
    crash = leaving.crash
    return crash is not None and crash.allowed is not None and crash.count > crash.allowed


def _unsaved(job: Job, migration: Migration, why: Reason, now: float, *, leaves: bool) -> Job:
    """No save came: the migration goes on without it, or is given up. The ledger will say so in both cases."""
    text = unsaved_text(job, migration, why, now, leaves=leaves)
    if migration.rolling_back:
        migration = replace(migration, failure_message=f"{migration.failure_message}; {text}")
    else:
        migration = replace(migration, message=f"{migration.message}; {text}" if leaves else text)
    if leaves:
        return _left(job, replace(migration, unsaved=why), now)
    return end_migration(job, migration, Outcome.FAILED if migration.rolling_back else Outcome.HELD, why, now)


def _left(job: Job, migration: Migration, now: float) -> Job:
    """The old Revision is ended."""
    migration = with_baseline(job, migration, now)
    return with_phase(with_edit(job, migration), migration, Phase.DRAINING, now)


def _draining(job: Job, migration: Migration, edited: bool, now: float) -> Job:
    state = job.revision(migration.moving.revision)
    # Only then the job's place changes: from now on the target is what is there.
    return at_target(job, migration, edited, now) if state.gone else job


def at_target(job: Job, migration: Migration, edited: bool, now: float) -> Job:
    """The job whose place is the target from now on, which starts. edited: whether the workload is another than was
    planned."""
    target = replace(migration.target, workload_hash=job.workload_hash_of(migration.target), created_at=now)
    migration = replace(migration, target=target, stopped_at=now, running_at=None)
    job = departed(job, migration, now)
    assert job.state.migration is not None
    migration = job.state.migration
    # What was observed is of the Revision that has gone: its count is no work of the one that is to come.
    job = replace(job, observed=job.observed._replace(track=None)).with_state(replace(job.state, revision=target))
    if edited:
        # What starts there is another program than the one that was measured: nothing can be proven by it.
        outcome = Outcome.ROLLED_BACK if migration.rolling_back else Outcome.SUPERSEDED
        return end_migration(job, migration, outcome, Reason.SUPERSEDED, now)
    return with_phase(job, migration, Phase.STARTING, now)
