"""Training: work of a known amount, or of none that is known, which is saved from time to time and then is done."""

from __future__ import annotations

import math
from typing import Final

from rightpool.api.action import Action
from rightpool.api.choices import CheckpointMode
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.migration import Migration
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.variation import Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.work.progress import progress_of
from rightpool.planning.work.work import Activity, Extent, Work
from rightpool.prediction.features import has_rate
from rightpool.profiles.profile import WARM_UP_STEPS, Profile, Steadiness
from rightpool.profiles.sample import Field
from rightpool.profiles.slow_start import begins_with_start, known_before

# From the old pods' end to the first step on the new ones, where this job has not shown how long it takes.
TYPICAL_RESTART_SECONDS: Final = 60.0
_OF_STEPS: Final = (Field.STEP_SECONDS, Field.STEPS_PER_SECOND)
_COUNTS: Final = (Field.STEPS, Field.SAMPLES, Field.SAMPLES_PER_SECOND, Field.STEPS_PER_SECOND)


class Training(Work):
    """Samples are consumed, step by step, as fast as it goes."""

    def does(self, spec: ProfiledJobSpec) -> bool:
        """Every job that nothing else claims."""
        return True

    # --- what there is to do -----------------------------------------------------------------------------------------

    def extent(self, job: Job, now: float) -> Extent | None:
        """Of the samples that the user says there are."""
        whole = job.spec.total_samples
        return None if whole is None else Extent(float(progress_of(job, now).done), float(whole))

    def has_ended(self, child: RevisionState) -> bool:
        """When its child has."""
        return child.succeeded

    def demand(self, job: Job) -> float:
        """The sooner it is done the better."""
        return math.inf

    def lacking(self, job: Job, profile: Profile) -> Reason | None:
        """A rate, in the unit that its user counts in."""
        if awaits_rate(job, profile):
            return Reason.WARMING_UP
        return None if has_rate(profile) and not lacks_samples(job, profile) else Reason.PARTIAL_TELEMETRY

    # --- what a stop costs -------------------------------------------------------------------------------------------

    def saving(self, spec: ProfiledJobSpec) -> CheckpointMode:
        """As its user says."""
        return spec.checkpoint.mode

    def loses_all(self, spec: ProfiledJobSpec) -> bool:
        """Where it never saves."""
        return spec.checkpoint.mode is CheckpointMode.NONE

    def pause_seconds(self, job: Job) -> float:
        """What its last move took that did not hang, and of one that was undone half of both ways, because nobody knows
        how long each took. Of a job that was never moved, what it took to be back after pods were taken away; of any
        other a typical start and a save."""
        last = _last_restart(job)
        if last is not None:
            return last.lost_seconds / (2.0 if last.outcome is Outcome.ROLLED_BACK else 1.0)
        if job.state.recovery is not None:
            return job.state.recovery.seconds
        profile = job.observed.profile
        save = None if profile is None else profile.readings.get(Field.CHECKPOINT_SECONDS)
        return TYPICAL_RESTART_SECONDS + (0.0 if save is None else save.value)

    def restart_seconds(self, job: Job) -> float:
        """Of what is missing while it starts slowly, a part is in what the last move took, where it did something again
        in that time."""
        variation = job.observed.variation or job.state.variation
        slow = None if variation is None else variation.slow_start
        if slow is None:
            return self.pause_seconds(job)
        again = min(self._repeating_seconds(job) / slow.seconds, 1.0)
        return self.pause_seconds(job) + slow.lost_seconds * (1.0 - again)

    def _repeating_seconds(self, job: Job) -> float:
        """Seconds of the last restart in which the program ran already and did again what no save held, at most. 0
        where it saved before it left, or has come back: then it is not known how long each way took."""
        last, revision = _last_restart(job), job.state.revision
        if last is None or revision is None or revision.since is None:
            return 0.0
        unsaved = last.action is Action.START or self.loses_all(job.spec)
        here = last.outcome is not Outcome.ROLLED_BACK and last.target == revision.placement
        if not unsaved or not here or revision.created_at < last.started_at:
            return 0.0
        return max(last.lost_seconds - (revision.since - revision.created_at), 0.0)

    # --- what a move has brought -------------------------------------------------------------------------------------

    def measured(
        self, migration: Migration, profile: Profile, variation: Variation | None, window: float
    ) -> RateSeries | None:
        """The newest window, and those before it where they are known, in the unit of the promise.

        What it does at first wherever it starts says nothing of the place.
        """
        revision, unit, throughput = migration.target.revision, profile.unit, profile.throughput
        if profile.key.revision != revision or not profile.complete or throughput is None:
            return None
        if migration.unit is not unit and (migration.baseline is not None or migration.predicted is not None):
            return None
        recent: tuple[float, ...] = ()
        if variation is not None and variation.revision == revision and variation.unit is unit:
            recent = variation.recent
        part = () if variation is None else _part_of_start(migration, variation, window)
        start = known_before(variation, revision)
        slow = 0 if start is None else start.in_windows(window)
        starting = slow > 0 and len(recent) <= slow
        rates = part or (recent if starting else recent[slow:])
        if part:  # what was before was of a slow start, too, in which later windows may be faster
            starting = len(part) < max(migration.baseline_windows, 1)
        elif not any(rates):
            rates = ()
        return RateSeries(
            sum(rates) / len(rates) if rates else throughput.value,
            max(len(rates), 1),
            rates,
            recent,
            window,
            migration.target.cost_per_hour,
            variation,
            starting,
            closed=bool(part),
        )

    def activity(self, migration: Migration, profile: Profile | None) -> Activity:
        """By its steps, or by samples where steps are not read. Whether it would be seen to work on chips of another
        vendor nobody knows."""
        seen = migration.source.vendor in (None, migration.target.vendor) and bool(migration.baseline)
        if profile is None or not seen or not _is_read(profile, migration.target.revision):
            return Activity.UNSEEN
        if not any(profile.value(field) for field in _COUNTS):
            return Activity.NO_STEP
        steps = profile.readings.get(Field.STEPS)
        if steps is not None and steps.low == steps.high and 0.0 < steps.value < WARM_UP_STEPS:
            return Activity.FIRST_STEPS
        return Activity.UNSEEN if profile.complete else Activity.WORKING


def misses_samples(job: Job, profile: Profile) -> bool:
    """Whether the spec counts samples and steps alone are seen: the user must say how many samples they have."""
    return job.spec.counts_samples is not None and not profile.readings.keys().isdisjoint(_OF_STEPS)


def awaits_rate(job: Job, profile: Profile) -> bool:
    """Whether training steps are seen, and their rate is known soon."""
    return profile.throughput is None and Field.STEPS in profile.readings and not misses_samples(job, profile)


def lacks_samples(job: Job, profile: Profile) -> bool:
    """Whether throughput is in steps although the spec counts samples: it was edited after the last reading."""
    return profile.unit is WorkUnit.STEPS and job.spec.counts_samples is not None


def shows_no_step(profile: Profile, revision: int) -> bool:
    """Whether all pods of a Revision are read, and none has shown any work of its program: neither a step nor, where
    steps are not read, samples."""
    return _is_read(profile, revision) and not any(profile.value(field) for field in _COUNTS)


def _is_read(profile: Profile, revision: int) -> bool:
    read = profile.steadiness in (Steadiness.STEADY, Steadiness.WARMING_UP) and profile.pods >= profile.expected
    return read and profile.key.revision == revision


def _last_restart(job: Job) -> LedgerEntry | None:
    return next((entry for entry in reversed(job.state.history) if entry.lost_seconds > 0.0 and not entry.hung), None)


def _part_of_start(migration: Migration, variation: Variation, window: float) -> tuple[float, ...]:
    """The windows of the target that are as old as those of the baseline were; none unless these were, even in part, of
    a slow start. window: seconds."""
    slow, began, since = variation.slow_start, migration.source.since, migration.target.since
    if slow is None or began is None or since is None or migration.stopped_at is None:
        return ()
    before = max(migration.baseline_windows, 1)
    first = max(round((migration.stopped_at - began) / window) - before, 0)
    seen = variation.revision == migration.target.revision and begins_with_start(variation, since, window)
    return variation.recent[first : first + before] if seen and first < slow.in_windows(window) else ()
