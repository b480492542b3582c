"""What the job would do without its moves: measured where it came from, and kept as a ratio to where it is.

A ratio of two rates, measured around the same time, stays true while both drift with the program; an absolute rate does
not. With r₀ units of work a second there and r₁ here, and p₀ and p₁ dollars an hour, an hour here does work that would
have cost p₀·r₁/r₀ there, so that p₀·r₁/r₀ − p₁ is saved.

Three errors are corrected, because a job is moved rather when it was measured too slow than too fast, and some minutes
before a move say little:

- r₀ is the mean over the last hour there and not the window that the decision was taken on, and r₁ is measured again
  when more of it is known, for all the time here.
- What was measured and what was predicted of r₀/r₁ each count by how sure they are: by how much such spans of this job
  differ by themselves, and by the doubt of the prediction.
- The mean of 1/r₀ is larger than 1 over the mean of r₀, by the variance of ln r₀; speed is enlarged by that much.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

from rightpool.api.counterfactual import Counterfactual
from rightpool.api.migration import Migration
from rightpool.api.variation import Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.job import Job
from rightpool.planning.migration.promise import Promise, promise_of
from rightpool.profiles.profile import Profile
from rightpool.profiles.steadiness import doubt_of_ratio, variance_of_difference
from rightpool.profiles.track import Track

BASELINE_SECONDS: Final = 3600.0
"""Time before a move over which the rate is taken."""
READINGS: Final = (0.0, 1200.0, 3600.0, 10_800.0)
"""Seconds after a move at which the rate is measured. The first is the verification."""
# How much a program's rate drifts an hour, as a standard deviation: a steeper slope is rather noise.
_DRIFT: Final = 0.03
# A slope over less than this is noise, seconds.
_SLOPED: Final = 3000.0


@dataclass(frozen=True, slots=True)
class Level:
    """A rate around one moment."""

    rate: float
    """Units of work a second."""
    at: float
    """Unix seconds of the middle of the time that it was taken over."""
    slope: float = 0.0
    """How its logarithm changes a second."""
    unit: WorkUnit = WorkUnit.SAMPLES
    """What rate counts."""


def level_before(job: Job, migration: Migration, now: float) -> Level | None:
    """The rate of the last hour of the Revision that is left; None where it was not measured."""
    track, profile = job.observed.track, _complete(job)
    if track is not None and track.began is not None and track.newest is not None:
        end = track.newest
        start = max(track.began, end - BASELINE_SECONDS, _begun(job))
        mean = track.mean(start, end)
        window = 0.0 if profile is None else profile.window
        if mean and end - start >= window:
            return Level(mean, (start + end) / 2, unit=track.unit)
    if profile is not None:
        return _of_profile(profile, now)
    return None if migration.baseline is None else Level(migration.baseline, migration.created_at, unit=migration.unit)


def level_after(job: Job, since: float, now: float) -> Level | None:
    """The rate of the current Revision at `since`, as far as it is known: drift is taken out where it can be told."""
    track, profile = job.observed.track, _complete(job)
    if track is None or track.began is None or track.newest is None:
        return None if profile is None else _of_profile(profile, now)
    start, end = max(since, track.began, _begun(job)), track.newest
    mean = track.mean(start, end)
    if not mean or (profile is not None and end - start < 0.8 * profile.window):
        return None if profile is None else _of_profile(profile, now)
    middle = (start + end) / 2
    window = job.spec.profiling.window.total_seconds()
    variance, _ = variance_of_difference(job.observed.variation, max(int((end - middle) / window), 1))
    slope = _slope(track, start, end, variance)
    return Level(mean * math.exp(slope * (since - middle)), since, slope, track.unit)


def speed(there: Counterfactual, here: Level, variation: Variation | None, window: float, now: float) -> float | None:
    """Throughput there ÷ here, both at the time of the move; None where the former was not measured, or in another
    unit.

    variation: how the job's windows of `window` seconds differ by themselves.
    """
    if not there.baseline or here.rate <= 0.0 or there.unit is not here.unit:
        return None
    moment = here.at if there.since is None else there.since
    aged = 0.0 if there.baseline_at is None else here.slope * (moment - there.baseline_at)
    measured = math.log(there.baseline / here.rate) + max(-0.5, min(0.5, aged))
    before, after = max(there.windows, 1), max(int((now - moment) / window), 1)
    variance, _ = variance_of_difference(variation, before)
    if not there.predicted:
        return math.exp(measured + variance / 2.0)
    sd, _ = doubt_of_ratio(variation, before, after)
    promise = Promise(math.log(there.predicted), there.predicted_doubt)
    weight = promise.weight(measured, sd)
    level = weight * measured + (1.0 - weight) * promise.log
    return math.exp(level + weight**2 * variance / 2.0)


def counterfactual_of_move(job: Job, before: Level | None, migration: Migration) -> Counterfactual | None:
    """The counterfactual of the place that a move goes to; None where the job is back there, or the user moves it.
    Without a baseline where what was measured before does not compare with what will be there."""
    revision, there = job.state.revision, job.state.account.counterfactual
    assert revision is not None
    origin = revision.placement if there is None else there.placement
    if migration.demanded or migration.target.placement == origin:
        return None
    ratio = 1.0 if there is None else there.speed
    made = Counterfactual(origin, revision.cost_per_hour if there is None else there.cost_per_hour)
    if before is None or ratio is None:
        return made
    source, target = migration.source.placement, migration.target.placement
    if not job.spec.compares(before.unit, source.chips, target.chips):
        return made
    made = replace(
        made,
        unit=before.unit,
        baseline=before.rate * ratio,
        baseline_at=before.at,
        windows=migration.baseline_windows,
    )
    promise = promise_of(migration)
    if promise is None:
        return made
    # What is known of the way so far is no surer than what was predicted of it.
    so_far = 0.0 if there is None else there.predicted_doubt
    return replace(made, predicted=ratio * math.exp(-promise.log), predicted_doubt=math.hypot(promise.sd, so_far))


def _complete(job: Job) -> Profile | None:
    profile, revision = job.observed.profile, job.state.revision
    if profile is None or revision is None or profile.key.revision != revision.revision or not profile.complete:
        return None
    return profile


def _of_profile(profile: Profile, now: float) -> Level:
    reading = profile.throughput
    assert reading is not None
    at = (now if profile.newest is None else profile.newest) - profile.window / 2
    return Level(reading.value, at, unit=profile.unit)


def _begun(job: Job) -> float:
    """Unix seconds when Kubernetes last began to run what is seen now: while it was suspended it did nothing."""
    began = None if job.child is None else job.child.started_at
    return -math.inf if began is None else began


def _slope(track: Track, start: float, end: float, variance: float) -> float:
    """Change of the logarithm of the rate a second, shrunk by how much it may be noise. variance: of the difference of
    two halves of that time."""
    middle = (start + end) / 2
    early, late = track.mean(start, middle), track.mean(middle, end)
    if end - start < _SLOPED or not early or not late or early <= 0.0 or late <= 0.0:
        return 0.0
    apart = middle - start
    noise = variance / apart**2
    drift = (_DRIFT / 3600.0) ** 2
    return math.log(late / early) / apart * drift / (drift + noise)
