"""By group: how an object is handed over whose groups know nothing of each other and save nothing.

It is changed while it runs, and its controller starts one group after the other anew, so that the others go on.
"""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.baseline import with_baseline
from rightpool.planning.moves.ending import end_migration, with_avoided, with_phase
from rightpool.planning.moves.handover import Handover
from rightpool.planning.moves.stop_then_start import at_target
from rightpool.planning.work.saving import never_saves


class ByGroup(Handover):
    """The target is what is there once the object is changed, and has started when no group is left where it was."""

    phases = frozenset({Phase.DRAINING})

    def begin(self, job: Job, migration: Migration, now: float, *, save: bool = True) -> Job:
        """Nothing is saved."""
        return with_phase(job, replace(with_baseline(job, migration, now), up=0), Phase.DRAINING, now)

    def step(self, job: Job, migration: Migration, edited: bool, taken: bool, now: float) -> Job:
        """Until the object is changed. What the API server refuses was not disturbed."""
        target, kept = migration.target, job.observed.object_refusal
        if job.revision(target.revision).exists:
            return at_target(job, migration, edited, now)
        if kept is None or kept.revision != target.revision:
            return job
        if migration.rolling_back:
            return end_migration(job, migration, Outcome.FAILED, kept.reason, now)
        job = with_avoided(job, target, kept.reason, now, message=kept.message)
        return end_migration(job, replace(migration, message=kept.message), Outcome.HELD, kept.reason, now)

    def saves(self, migration: Migration) -> bool:
        """Never."""
        return False

    def there(self, current: Revision, migration: Migration | None) -> tuple[Revision, ...]:
        """What is there is changed, and never stopped."""
        return (current,)


def goes_by_group(job: Job) -> bool:
    """Whether the job's migration does. One that stays in its pool starts on the very nodes that its groups have."""
    able, migration = job.able, job.state.migration
    if able is None or not able.by_group or migration is None or not never_saves(job):
        return False
    return migration.moving.placement.pool != migration.target.placement.pool
