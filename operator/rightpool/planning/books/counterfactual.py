"""What the job would do without its moves: measured where it came from, and kept as a ratio to where it is.

A ratio of two rates, measured around the same time, stays true while both drift with the program; an absolute rate does
not. With r₀ units of work a second there and r₁ here, and p₀ and p₁ dollars an hour, an hour here does work that would
have cost p₀·r₁/r₀ there, so that p₀·r₁/r₀ − p₁ is saved.

A job is moved rather when it was measured too slow than too fast, and some minutes before a move say little. So:

- r₀ is the mean over the last hour there and not the window that the decision was taken on, and r₁ that over the first
  two hours here. What comes later says more of the job than of the move.
- What was measured and what was predicted of r₀/r₁ each count by how sure they are: by how much such spans of this job
  differ by themselves, of which one is of another place, and by how likely the promise is kept (`Promise`). They are
  weighed again when more is known of the former. A move that is measured too low is undone and one that is measured too
  high is kept, so that what is believed too easily makes `saved` too large.
- A program may change its own pace in these hours, as by larger batches, which is no saving. By the windows right
  before and right after the move r₀/r₁ is another one then: what is nearer to the promise counts, doubted by as much as
  the two differ.
- An hour or two lie between the middles of the two spans. How the rate drifts follows from the hours after the move: of
  a job whose sequence grows r₁ is lower wherever it runs.
- A job whose pool has faded since its verdict does less of what it would do at home by as much (`faded`): from then on
  each hour here counts for less of one there.
- A fault that throttles chips says nothing of their pool. r₀ is taken since it was repaired, else it is what healthy
  chips were predicted to do or what was measured before the fault.
- The mean of 1/r₀ is larger than 1 over the mean of r₀; speed is enlarged by as much as two such spans differ.
"""

import math
from dataclasses import replace
from typing import Final, NamedTuple

from rightpool.api.counterfactual import Counterfactual
from rightpool.api.migration import Migration
from rightpool.api.value_object import value_object
from rightpool.api.variation import Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job, throttled_now
from rightpool.planning.judge.promise import Promise, promise_of
from rightpool.planning.work.fading import arrival_of
from rightpool.profiles.profile import Profile
from rightpool.profiles.slow_start import LONGEST_START, known_before
from rightpool.profiles.steadiness import (
    PRIOR_SD,
    doubt_between_places,
    doubt_of_ratio,
    pace,
    variance_between_places,
    variance_of_difference,
)
from rightpool.profiles.track import Track

BEFORE_SECONDS: Final = 3600.0
"""Time before a move over which the rate is taken."""
AFTER_SECONDS: Final = 7200.0
"""Time after a move over which it is taken. Noise falls with it, and what the job's drift adds grows."""
READINGS: Final = (0.0, 1200.0, 3600.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0)
"""Seconds after a move at which speed is measured. The first is the verification; from the fourth on the rates are
known, and how the job varies and drifts is known better each time."""
# How much a program's rate drifts an hour, as a standard deviation: a steeper slope is rather noise.
_DRIFT: Final = 0.03
# Spans that are closer together tell nothing of it, seconds.
_SLOPED: Final = 3600.0
# Less of a window than this is not its mean.
_SHORTEST: Final = 0.8
# No more than this is taken out of the logarithm of a ratio.
_MOST_DRIFT: Final = 0.5


@value_object
class Level:
    """A rate around one moment."""

    rate: float
    """Units of work a second."""
    at: float
    """Unix seconds of the middle of the time that it was taken over."""
    windows: int = 1
    """How long that was, in windows of the job."""
    unit: WorkUnit = WorkUnit.SAMPLES
    """What rate counts."""


def level_before(job: Job, migration: Migration, now: float) -> Level | None:
    """The rate of the Revision that is left, as its chips would do it without a fault; None where that is unknown."""
    if migration.healthy_baseline is not None:
        return Level(
            migration.healthy_baseline, migration.phase_since, max(migration.baseline_windows, 1), migration.unit
        )
    level = measured_level(job, now)
    if level is not None or migration.baseline is None:
        return level
    return Level(migration.baseline, migration.created_at, max(migration.baseline_windows, 1), migration.unit)


def measured_level(job: Job, now: float) -> Level | None:
    """The rate of the last hour of the Revision with running pods, without what was before its chips were repaired;
    None where less than a window of that was measured."""
    if throttled_now(job):
        return None
    track = job.observed.track
    if track is not None and track.newest is not None:
        start = track.newest - BEFORE_SECONDS
        if track.throttled_at > start:
            start = track.healthy_since
            if track.newest - start < job.spec.profiling.window.total_seconds():
                return None
        level = _over(job, track, start, track.newest)
        if level is not None:
            return level
    return _of_profile(job, now)


def level_after(job: Job, there: Counterfactual, now: float) -> Level | None:
    """The rate of the first two hours of the current Revision, as far as they are over; None where it was not measured.
    Where the job was measured there while it started slowly, that of the same part of its start here.

    What the track does not show any more is as it was measured when it did.
    """
    assert there.since is not None
    track, window = job.observed.track, job.spec.profiling.window.total_seconds()
    known = None
    if there.rate is not None and there.rate_at is not None:
        known = Level(there.rate, there.rate_at, max(there.rate_windows, 1), there.unit)
    unknown = there.speed is None
    part = part_of_start(job, there)
    if part is not None and track is not None and track.began is not None and track.began <= part[0] + window:
        level = _over(job, track, *part, started=True)
        if level is not None:
            return level
    if track is not None and track.began is not None:
        whole = max(track.began, _begun(job)) <= there.since + window
        end = max(there.since, _started(job)) + AFTER_SECONDS
        level = _over(job, track, there.since, end) if whole or unknown else None
        if level is not None:
            return level
    return _of_profile(job, now) if unknown else known


def part_of_start(job: Job, there: Counterfactual) -> tuple[float, float] | None:
    """From and to which Unix seconds the job has run here for as long as it had there when it was measured; None unless
    that was, even in part, while it started slowly. What it does later compares with nothing then."""
    variation, revision = job.observed.variation, job.state.revision
    slow = None if variation is None else variation.slow_start
    if there.baseline_age is None or slow is None or revision is None or revision.since is None:
        return None
    half = max(there.windows, 1) * job.spec.profiling.window.total_seconds() / 2.0
    first = max(there.baseline_age - half, 0.0)
    if first >= slow.seconds:
        return None
    return revision.since + first, revision.since + there.baseline_age + half


def drift_of(job: Job, here: Level) -> float:
    """How the logarithm of the rate of the current Revision changes a second: from `here` to the newest hour,
    shrunk by how much that may be noise. 0 where they are too close together."""
    track = job.observed.track
    if track is None or track.newest is None or track.unit is not here.unit:
        return 0.0
    newest = _over(job, track, track.newest - BEFORE_SECONDS, track.newest)
    if newest is None or newest.at - here.at < _SLOPED:
        return 0.0
    apart = newest.at - here.at
    sd, _ = doubt_of_ratio(job.observed.variation, here.windows, newest.windows)
    usual = (_DRIFT / 3600.0) ** 2
    return math.log(newest.rate / here.rate) / apart * usual / (usual + (sd / apart) ** 2)


class Speed(NamedTuple):
    """Throughput where a job would be ÷ where it is."""

    ratio: float
    """Both at the same time."""
    doubt: float
    """Standard deviation of its logarithm."""


def speed(there: Counterfactual, here: Level, variation: Variation | None, drift: float = 0.0) -> Speed | None:
    """How much faster the job would be there; None where that was not measured, or in another unit.

    variation: how the job's windows differ by themselves. drift: how the logarithm of the rate changes a second.
    """
    if not there.baseline or here.rate <= 0.0 or there.unit is not here.unit:
        return None
    aged = 0.0 if there.baseline_at is None else drift * (here.at - there.baseline_at)
    measured = math.log(there.baseline / here.rate) + max(-_MOST_DRIFT, min(_MOST_DRIFT, aged))
    before = max(there.windows, 1)
    usual = _usual(variation, before)
    variance = variance_between_places(variation, before, usual)
    sd = doubt_between_places(variation, before, here.windows, usual)
    if not there.predicted:
        return Speed(math.exp(measured + variance / 2.0), sd)
    promise = Promise(math.log(there.predicted), there.predicted_doubt)
    if there.nearby:
        nearby = math.log(there.nearby)
        sd, measured = (
            math.hypot(sd, measured - nearby),
            min(measured, nearby, key=lambda ratio: abs(ratio - promise.log)),
        )
    weight = promise.expected_weight(measured, sd)
    level = weight * measured + (1.0 - weight) * promise.log
    return Speed(math.exp(level + weight**2 * variance / 2.0), promise.doubt(weight, sd))


def nearby_speed(job: Job, there: Counterfactual) -> float | None:
    """Throughput there ÷ here by the windows right before and right after the move that is judged; None where these are
    not known one by one, or some are of a pause, a fault or a slow start."""
    migration, variation = job.state.migration, job.observed.variation
    if migration is None or variation is None or migration.stopped_at is None or there.since is None:
        return None
    seen = pace(variation, migration.target.revision, there.unit)
    compared = migration.unit is there.unit and migration.healthy_baseline is None and migration.baseline_rates
    if seen is None or not compared or part_of_start(job, there) is not None:
        return None
    window, slow = job.spec.profiling.window.total_seconds(), known_before(variation, migration.target.revision)
    skipped = 0 if slow is None else slow.in_windows(window)
    after, began = variation.recent[-seen.windows :][skipped:], variation.as_of - seen.windows * window
    if not after or began > there.since + window:
        return None
    # Commands that read accounts do without NumPy.
    from rightpool.profiles.step_change import step_change

    apart = max((began - migration.stopped_at) / window, 0.0) + skipped
    change, left = step_change(migration.baseline_rates, after, apart), migration.left
    so_far = 1.0 if left is None or not left.speed else left.speed / taken_since(job, left)
    return None if change is None else so_far * math.exp(-change.log)


def taken_since(job: Job, there: Counterfactual) -> float:
    """What of the rate that `speed` was measured with the job's pool has left it. Where nothing promised counts, speed
    is of the two hours after the move alone: what the pool took in these it tells already."""
    arrival = arrival_of(job)
    verified = None if arrival is None or arrival.unit is not there.unit else arrival.realised_throughput
    if there.predicted is not None or not there.rate or not verified:
        return there.faded
    return min(there.faded * max(verified / there.rate, 1.0), 1.0)


def _usual(variation: Variation | None, windows: int) -> float:
    """By how much means of so many windows are taken to be off until enough of them were seen: as means of half as many
    are. Else the first few that happen to be alike would make much of any difference."""
    variance, _ = variance_of_difference(variation, windows // 2)
    return max(PRIOR_SD, math.sqrt(variance / 2.0))


def counterfactual_of_move(job: Job, before: Level | None, migration: Migration) -> Counterfactual | None:
    """The counterfactual of the place that a move goes to; None where the job is back there, or the user moves it.
    Without a baseline where what was measured before does not compare with what will be there."""
    revision, there = job.state.revision, job.state.account.counterfactual
    assert revision is not None
    origin = revision.placement if there is None else there.placement
    if migration.demanded or migration.target.placement == origin:
        return None
    ratio = 1.0 if there is None else there.speed and there.speed / taken_since(job, there)
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
        windows=before.windows,
        baseline_age=_age(job, migration, before),
    )
    promise = promise_of(migration)
    if promise is None:
        return made
    # The promise is a ratio to what was measured. Healthy chips would have done more.
    healthy = migration.healthy_baseline
    slowed = 1.0 if healthy is None or not migration.baseline else healthy / migration.baseline
    # What is known of the way so far is no surer than what was predicted of it.
    so_far = 0.0 if there is None else there.predicted_doubt
    return replace(
        made, predicted=ratio * slowed * math.exp(-promise.log), predicted_doubt=math.hypot(promise.sd, so_far)
    )


def _age(job: Job, migration: Migration, before: Level) -> float | None:
    """How long the Revision that is left had run when it was measured; None where no part of that can have been a slow
    start."""
    if migration.source.since is None:
        return None
    window, age = job.spec.profiling.window.total_seconds(), before.at - migration.source.since
    return max(age, 0.0) if age - before.windows * window / 2.0 < LONGEST_START * window else None


def _complete(job: Job) -> Profile | None:
    profile, revision = job.observed.profile, job.state.revision
    if profile is None or revision is None or profile.key.revision != revision.revision or not profile.complete:
        return None
    return profile


def _of_profile(job: Job, now: float) -> Level | None:
    """The rate of the newest window; None where it is not complete."""
    profile = _complete(job)
    if profile is None:
        return None
    reading = profile.throughput
    assert reading is not None
    at = (now if profile.newest is None else profile.newest) - profile.window / 2
    return Level(reading.value, at, unit=profile.unit)


def _over(job: Job, track: Track, start: float, end: float, *, started: bool = False) -> Level | None:
    """The rate from Unix seconds `start` to `end`, as far as it was seen; None where that is less than a window.
    started: whether it counts before the job is past its slow start, too."""
    if track.began is None or track.newest is None:
        return None
    start, end = max(start, track.began, _begun(job)), min(end, track.newest)
    start = start if started else max(start, _started(job))
    mean, profile = track.mean(start, end), _complete(job)
    if not mean or (profile is not None and end - start < _SHORTEST * profile.window):
        return None
    windows = round((end - start) / job.spec.profiling.window.total_seconds())
    return Level(mean, (start + end) / 2, max(windows, 1), track.unit)


def _begun(job: Job) -> float:
    """Unix seconds when Kubernetes last began to run what is seen now: while it was suspended it did nothing."""
    began = None if job.child is None else job.child.started_at
    return -math.inf if began is None else began


def _started(job: Job) -> float:
    """Unix seconds when the job is past its slow start, where it is known to have one; -inf where it has none."""
    revision = job.state.revision
    if revision is None or revision.since is None:
        return -math.inf
    slow = known_before(job.observed.variation, revision.revision)
    return -math.inf if slow is None else revision.since + slow.seconds
