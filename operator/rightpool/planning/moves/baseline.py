"""What a job did until it left: what its move will be judged by."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.action import Action
from rightpool.api.migration import MAX_BASELINE_RATES, Migration
from rightpool.planning.books.counterfactual import Level, measured_level
from rightpool.planning.jobs.job import Job, throttled_now
from rightpool.planning.judge.series import MOST_WINDOWS
from rightpool.prediction.step_shares import work_share
from rightpool.profiles.silence import silent_for
from rightpool.profiles.slow_start import windows_after_start
from rightpool.profiles.steadiness import pace


def with_baseline(job: Job, migration: Migration, now: float) -> Migration:
    """The migration as its source is left now: a decision may have waited for days. What the promise was derived from
    is not needed any more."""
    if migration.predicted is not None:
        migration = replace(migration, predicted=replace(migration.predicted, basis=()))
    healthy, before = migration.healthy_baseline, migration.baseline
    seen, rates = _seen(job, migration, now)
    if seen is not None and migration.action is not Action.START and not migration.rolling_back:
        repaired = healthy is not None and not throttled_now(job)
        if seen.unit is not migration.unit:  # what was promised is of another unit
            migration = replace(migration, predicted=None)
        elif migration.predicted is not None and before:
            # What is promised is a ratio, and the job itself may have changed meanwhile.
            ratio = seen.rate / (healthy if repaired and healthy else before)
            migration = replace(migration, predicted=migration.predicted.times(ratio))
        migration = replace(
            migration,
            unit=seen.unit,
            baseline=seen.rate,
            source_work=work_share(job.observed.profile, migration.source.placement.chips),
            healthy_baseline=None if repaired or healthy is None or not before else healthy * seen.rate / before,
            baseline_windows=seen.windows,
            baseline_rates=rates,
        )
    return replace(migration, last_rate=None)


def _seen(job: Job, migration: Migration, now: float) -> tuple[Level | None, tuple[float, ...]]:
    """The rate of the Revision that is left, as it is now, and that of its newest windows where they are known one by
    one; None where that does not compare with what will be."""
    variation, slowed = job.observed.variation, throttled_now(job)
    unit = migration.unit if variation is None else variation.unit
    if not job.spec.compares(unit, migration.source.placement.chips, migration.target.placement.chips):
        return None, ()
    if not slowed and (migration.healthy_baseline is not None or _repaired_lately(job, now)):
        level = measured_level(job, now)
        return (level if level is not None and level.unit is unit else None), ()
    # Of an edit nothing was evaluated, nor of a fault that came later: nothing tells what healthy chips would do.
    if slowed and (migration.action is Action.UPDATE or migration.healthy_baseline is None):
        return None, ()
    # What was before a fault that throttles its chips is not what it leaves.
    # Nor is a slow start, which the first windows there are not compared with.
    window = job.spec.profiling.window.total_seconds()
    most = MOST_WINDOWS if variation is None else windows_after_start(variation, migration.moving.since, window)
    recent = pace(variation, migration.moving.revision, unit, 1 if slowed else most)
    if variation is None or recent is None:
        return None, ()
    rates = variation.recent[-recent.windows :]
    # What it did right before the save was asked for counts as one window more: it may be all that tells that the job
    # has slowed down by itself. A window that has ended since has that time in it, and in a pause it tells nothing.
    if migration.last_rate is not None and variation.as_of <= migration.phase_since:
        known = (*rates, migration.last_rate)
        rates = rates if silent_for(known) else known
    return Level(sum(rates) / len(rates), now, len(rates), unit), rates[-MAX_BASELINE_RATES:]


def _repaired_lately(job: Job, now: float) -> bool:
    """Whether a fault throttled the job's chips in windows that its pace is taken over."""
    track, window = job.observed.track, job.spec.profiling.window.total_seconds()
    return track is not None and now - track.throttled_at < (MOST_WINDOWS + 1) * window
