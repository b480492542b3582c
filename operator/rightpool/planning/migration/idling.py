"""Idling: what a count of work tells of a program of which no windows are complete, or too few are kept."""

from __future__ import annotations

from rightpool.api.migration import Migration
from rightpool.planning.job import Job
from rightpool.planning.migration.verification import LONGEST_SILENCE_SECONDS
from rightpool.profiles.silence import NOTHING


def idle_for_an_hour(job: Job, migration: Migration, now: float) -> bool:
    """Whether hardly any work was counted in the last hour. False where that is not known for so long."""
    track = job.observed.track
    rate = None if track is None else track.mean(now - LONGEST_SILENCE_SECONDS, now)
    return rate is not None and rate <= NOTHING * (migration.baseline or 0.0)
