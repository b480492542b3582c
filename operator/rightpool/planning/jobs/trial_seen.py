"""What is seen of a job's newest trial: the ProfiledJob that runs its program elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from rightpool.api.work_unit import WorkUnit


class TrialSeen(NamedTuple):
    """The trial's ProfiledJob, which exists."""

    number: int
    """N of its name."""
    runs_since: float | None = None
    """Unix seconds since when all its pods have run; None where they do not yet."""
    rate: float | None = None
    """Units of work a second over a whole window; None before that."""
    unit: WorkUnit = WorkUnit.SAMPLES
    """What is counted."""
    ended: str | None = None
    """Why it does not run any more, or can't; None where it can."""
    against: float | None = None
    """The rate where the job runs that compares with it; None for the job's pace."""
    taken: bool = False
    """Whether somebody else's ProfiledJob has its name, so that it can't be made."""


def trial_name(job: str, number: int) -> str:
    """The name of a trial's ProfiledJob."""
    return f"{job}-t{number}"
