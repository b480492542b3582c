"""Idling: whether a program does nothing where it was moved to. It hangs there, or it evaluates, compiles, loads, or is
not seen to work."""

from __future__ import annotations

import math
from typing import Final

from rightpool.api.migration import Migration
from rightpool.planning.jobs.job import Job
from rightpool.planning.judge.silence import LONGEST_SILENCE_SECONDS, longest_silence
from rightpool.planning.work.training import shows_no_step
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field
from rightpool.profiles.silence import NOTHING, silent_for

# What compiles for this share of the time does not hang.
_COMPILING: Final = 0.5


def compiles(profile: Profile | None) -> bool:
    """Whether the program is seen to compile for most of the time."""
    return profile is not None and (profile.value(Field.COMPILING) or 0.0) >= _COMPILING


def idle_for_an_hour(job: Job, migration: Migration, now: float) -> bool:
    """Whether hardly any work was counted in the last hour. False where that is not known for so long."""
    track = job.observed.track
    rate = None if track is None else track.mean(now - LONGEST_SILENCE_SECONDS, now)
    return rate is not None and rate <= NOTHING * (migration.baseline or 0.0)


def silent_for_an_hour(job: Job, migration: Migration, now: float) -> bool:
    """Whether the target, all of whose newest windows are silent, has been so for as long as a program may be. Of short
    windows fewer are kept: then its count of work tells that, once it is known for so long."""
    variation, window = job.observed.variation, job.spec.profiling.window.total_seconds()
    usual = migration.baseline or math.inf
    if variation is None or variation.revision != migration.target.revision:
        return False
    if silent_for(variation.recent, usual) * window >= LONGEST_SILENCE_SECONDS:
        return True
    return idle_for_an_hour(job, migration, now)


def idle_since(job: Job, migration: Migration, now: float) -> float:
    """Unix seconds since when the target does nothing, by its count of work or its windows, whichever goes back
    further; at the earliest since its pods run. What was done before they were stopped is not of that time."""
    usual, track, variation = migration.baseline or 0.0, job.observed.track, job.observed.variation
    by_count = None if track is None else track.idle_since(NOTHING * usual)
    since = now if by_count is None else by_count
    if variation is not None and variation.revision == migration.target.revision:
        window = job.spec.profiling.window.total_seconds()
        since = min(since, variation.as_of - silent_for(variation.recent, usual or math.inf) * window)
    began = (migration.target.since, job.revision(migration.target.revision).started_at)
    return max([since, *(at for at in began if at is not None)])


def hangs(job: Job, migration: Migration, now: float) -> bool:
    """Whether it shows no step where it is, or was found to do nothing there, and still does nothing."""
    variation, profile, revision = job.observed.variation, job.observed.profile, migration.moving.revision
    if profile is not None and shows_no_step(profile, revision):
        return True
    if idle_for_an_hour(job, migration, now):
        return True
    if migration.realised != 0.0 or variation is None or variation.revision != revision:
        return False
    window = job.spec.profiling.window.total_seconds()
    return silent_for(variation.recent, migration.baseline or math.inf) >= longest_silence(window)
