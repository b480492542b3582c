"""Rescues: a job that is about to lose pods is asked for a save, once for each pod that comes to be in danger."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.migration import Phase
from rightpool.api.rescue import Rescue
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.saving import saved_since, saves_when_asked, waited_for_save

# In the others a save was asked for already, or nothing runs that could save.
_PHASES: Final = frozenset({Phase.PLANNED, Phase.WARMING_UP, Phase.VERIFYING})


def with_rescue(job: Job, now: float) -> Job:
    """The job with its rescue begun, taken a step further, or over; the very same object where nothing changes."""
    threat, rescue, revision = job.observed.threat, job.state.rescue, job.state.revision
    if threat is None or revision is None or not _saves(job):
        return job if rescue is None else _set(job, None)
    grown = rescue is not None and rescue.over and threat.pods > rescue.pods
    if rescue is None or rescue.revision != revision.revision or grown:
        asked = Rescue(revision.revision, threat.pods, now, threat.node, saved_before=job.observed.checkpoint_at)
        return _set(job, asked)
    if rescue.over:
        # What is lost by now, or safe again, may be in danger again later.
        return job if threat.pods == rescue.pods else _set(job, replace(rescue, pods=threat.pods))
    saved = saved_since(job, rescue.since, rescue.saved_before)
    if saved is not None:
        return _set(job, replace(rescue, saved_at=saved, over=True))
    if waited_for_save(job, rescue.since, now):
        return _set(job, replace(rescue, over=True))
    return job


def _saves(job: Job) -> bool:
    """Whether a program runs that can be asked to save, and was not asked for another reason."""
    if not saves_when_asked(job) or job.stops:
        return False
    revision, migration = job.state.revision, job.state.migration
    ran = revision is not None and revision.since is not None
    return ran and (migration is None or migration.phase in _PHASES)


def _set(job: Job, rescue: Rescue | None) -> Job:
    return job.with_state(replace(job.state, rescue=rescue))
