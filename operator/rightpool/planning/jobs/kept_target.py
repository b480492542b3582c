"""The target of a migration that waits for its save: kept from others for as long as a start may take."""

from __future__ import annotations

from rightpool.api.action import Action
from rightpool.api.migration import Migration, Phase
from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.jobs.job import Job


def waits_for_save(job: Job) -> Migration | None:
    """The migration whose target is kept for the job while its save is waited for; None where there is none."""
    migration = job.state.migration
    if migration is None or migration.phase is not Phase.CHECKPOINTING or migration.action is Action.START:
        return None
    return None if migration.rolling_back else migration


def kept_too_long(migration: Migration, policy: PlacementPolicySpec, now: float) -> bool:
    """Whether a save is waited for so long that others may have the chips of the target."""
    return now - migration.phase_since > policy.start_deadline.total_seconds()
