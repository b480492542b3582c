"""Release: an object that somebody else has made goes back to where it was before the operator first changed it."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.beginning import next_revision


def way_home(job: Job) -> Placement | None:
    """Where the object is to go before it is let go of; None where it can be at once. What its user has suspended or
    changed stays as he has it, and so does one to which nothing may be done, or whose changes somebody takes back."""
    seen, here, child = job.observed.adopted, job.state.revision, job.child
    if seen is None or here is None or child is None or child.stopped_by_user or job.spec.only_watched:
        return None
    if job.overruled is not None:
        return None
    return None if seen.original in (None, here.placement) else seen.original


def with_way_home(job: Job, now: float) -> Job:
    """The job with the migration that puts its object back, where its user asks for that."""
    home, here = way_home(job), job.state.revision
    if home is None or here is None:
        return job
    number = job.state.decisions + 1
    target = replace(here, revision=next_revision(job), placement=home, created_at=now, since=None)
    migration = Migration(
        id=f"d-{number}",
        action=Action.UPDATE,  # it promises nothing, and is not judged
        phase=Phase.PLANNED,
        source=here,
        target=target,
        created_at=now,
        phase_since=now,
        reason=Reason.RELEASED,
    )
    return job.with_state(replace(job.state, migration=migration, decisions=number))
