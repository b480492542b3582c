"""Surge: how a server is handed over. The target runs and is ready before what is left is ended.

Nothing is judged: what is carried out is what a user wants, or a start elsewhere of what does not run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.ending import end_migration, with_avoided, with_phase
from rightpool.planning.moves.handover import Handover
from rightpool.planning.moves.setback import NotRunning

LONGEST_SURGE_SECONDS: Final = 1800.0
"""How long a target that nobody has asked for may keep chips without answering."""


class Surge(Handover):
    """Both Revisions are there until the new one answers."""

    phases = frozenset({Phase.SURGING})

    def begin(self, job: Job, migration: Migration, now: float, *, save: bool = True) -> Job:
        """The target is made."""
        return with_phase(job, migration, Phase.SURGING, now)

    def step(self, job: Job, migration: Migration, edited: bool, taken: bool, now: float) -> Job:
        """Until all its replicas are ready, or it is not wanted any more: then it is ended, and what answers stays. An
        edit that does not start waits for the next one."""
        if edited or job.spec.suspend:
            return end_migration(job, migration, Outcome.SUPERSEDED, Reason.SUPERSEDED, now)
        target = migration.target
        state = job.revision(target.revision)
        if state.all_running(target.placement.replicas):
            target = replace(target, since=now)
            moved = job.with_state(replace(job.state, revision=target))
            migration = replace(migration, target=target, running_at=now)
            return end_migration(moved, migration, Outcome.CARRIED_OUT, migration.reason, now)
        waited = now - migration.phase_since
        if migration.action is Action.UPDATE or waited <= LONGEST_SURGE_SECONDS:
            return job
        text = NotRunning(LONGEST_SURGE_SECONDS, state.why_not_running, None).text()
        job = with_avoided(job, target, Reason.START_DEADLINE_EXCEEDED, now, decision=migration.id)
        migration = replace(migration, message=text)
        return end_migration(job, migration, Outcome.FAILED, Reason.START_DEADLINE_EXCEEDED, now)

    def saves(self, migration: Migration) -> bool:
        """Never."""
        return False

    def there(self, current: Revision, migration: Migration | None) -> tuple[Revision, ...]:
        """Both, while the new one comes up."""
        if migration is None or migration.phase is not Phase.SURGING:
            return (current,)
        return current, migration.target
