"""Saves of a program's work: whether it can be asked for one, and whether one has come since it was."""

from __future__ import annotations

from typing import Final

from rightpool.api.choices import CheckpointMode
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.work.registry import work_of

NODE_CLOCK_SKEW_SECONDS: Final = 5.0
"""What the clock of a job's node may differ from others. Saves, and ends of programs, are dated by it."""


def saves_when_asked(job: Job) -> bool:
    """Whether its program saves when it is asked to; another may save by itself."""
    return work_of(job.spec).saving(job.spec) is CheckpointMode.SIGNAL


def never_saves(job: Job) -> bool:
    """Whether no save is waited for."""
    return work_of(job.spec).saving(job.spec) is CheckpointMode.NONE


def saved_since(job: Job, asked_at: float, before: float | None) -> float | None:
    """Unix seconds of a save that has come since one was asked for, or awaited; None where none has. before: when the
    newest one was then."""
    saved = job.observed.checkpoint_at
    # Where no save was known then, an old one may only have been heard of since.
    known = asked_at - NODE_CLOCK_SKEW_SECONDS if before is None else before
    return saved if saved is not None and saved > known else None


def failed_since_asked(child: RevisionState, asked_at: float) -> bool:
    """Whether the program has failed after it was asked to save. It may have been started again since."""
    return child.failed_since(asked_at - NODE_CLOCK_SKEW_SECONDS)


def waited_for_save(job: Job, asked_at: float, now: float) -> bool:
    """Whether the save has had all the time that the spec gives it."""
    return now - asked_at > job.spec.checkpoint.timeout.total_seconds()
