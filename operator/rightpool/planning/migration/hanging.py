"""Hanging: a program that does nothing where it was moved to, for longer than one that evaluates or saves."""

from __future__ import annotations

import math

from rightpool.api.migration import Migration
from rightpool.planning.job import Job
from rightpool.planning.migration.verification import LONGEST_SILENCE_SECONDS, longest_silence
from rightpool.profiles.silence import NOTHING, silent_for


def hangs(job: Job, migration: Migration, revision: int, now: float) -> bool:
    """Whether a Revision on which windows were counted has done nothing for an hour. Of short windows fewer are kept:
    then its count of work tells that, once it is known for so long."""
    variation, window = job.observed.variation, job.spec.profiling.window.total_seconds()
    if variation is None or variation.revision != revision:
        return False
    silent = silent_for(variation.recent, migration.baseline or math.inf)
    if silent < longest_silence(window, migration.baseline_rates):
        return False
    if silent * window >= LONGEST_SILENCE_SECONDS:
        return True
    track = job.observed.track
    rate = None if track is None else track.mean(now - LONGEST_SILENCE_SECONDS, now)
    return rate is not None and rate <= NOTHING * (migration.baseline or 0.0)
