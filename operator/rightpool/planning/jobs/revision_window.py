"""The window of a job's Revision, and the profile and diagnosis that are made of it when they have to be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from rightpool.api.altered import altered
from rightpool.api.migration import Phase
from rightpool.api.revision import Revision
from rightpool.api.variation import Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.hardware.accelerator import Accelerator
from rightpool.planning.jobs.job import NOT_OBSERVED, Job, Observed
from rightpool.profiles.bottleneck import Diagnosis
from rightpool.profiles.diagnosis import diagnose
from rightpool.profiles.health import NOT_THROTTLED, throttling
from rightpool.profiles.likeness import alike, expected_range
from rightpool.profiles.profile import PackedReadings, Profile, Steadiness, build_profile, stale_after
from rightpool.profiles.sample import Field, RevisionKey, Sample
from rightpool.profiles.slow_start import with_start_seen
from rightpool.profiles.steadiness import counted, of_window_length
from rightpool.profiles.step_count import Basis, StepCount
from rightpool.profiles.track import Track
from rightpool.profiles.window import CAPACITY, Bounds, Window

# A profile is recomputed at least this often, seconds, even if all samples are within its expected range.
REBUILD_SECONDS: Final = 60.0
# How long samples are kept, in windows. Older ones are not used, and would be most of the memory. More than 1, because
# samples are dated by another clock.
KEPT_WINDOWS: Final = 1.25
# After so many windows a rate that still rises does so for another reason than warming up: evaluation, epochs,
# neighbours. Waiting for it to hold still would be waiting for ever.
LONGEST_WARM_UP: Final = 3.0
# How much of a window tells how fast a job is right before it leaves, as shares of one: less varies too much by itself,
# and part of more may be of before the job became slower.
LEAST_PART: Final = 0.2
LONGEST_PART: Final = 0.4


@dataclass(slots=True)
class RevisionWindow:
    """What is kept in memory of the Revision that a job runs as. There is one writer."""

    key: RevisionKey
    """Which Revision it is."""
    window: Window
    """Its samples, the oldest dropped."""
    track: Track
    """The counter of work, and what of it counts."""
    pods: int
    """Pods of the Revision."""
    kept: float
    """How long its samples are kept, seconds."""
    program: str
    """Hash of the workload that it runs: an adopted object is edited where it is."""
    version: int = -1
    """Version of the window that the profile was last compared with."""
    checked_at: float = -math.inf
    """When that was."""
    rebuild_at: float = -math.inf
    """When the profile is recomputed at the latest."""
    expected: Bounds | None = None
    """The range in which samples do not require a new profile."""
    profile: Profile | None = None
    """The newest one that differs from the one before; None before the first."""
    accelerator: Accelerator | None = None
    """What the diagnosis was made for; None where the pool is not known."""
    diagnosis: Diagnosis | None = None
    """Of `profile`; None where `accelerator` is."""
    variation: Variation | None = None
    """How windows differ; begun with what is stored."""
    windows: int = 0
    """Those that this process has counted."""
    warm: bool = False
    """Whether the Revision was steady once: what shifts from then on is no warm-up."""
    count: StepCount = field(default_factory=lambda: StepCount(None, steps_suffice=True))
    """Completes readings of a program that counts steps alone."""
    job: Job | None = None
    """Whose spec and state `count` knows."""
    leaves: bool = False
    """Whether its migration may begin now."""
    saved: float | None = None
    """Unix seconds of the newest save that a sample of the window tells of."""
    asked_at: float | None = None
    """Unix seconds when the last answer was asked for; None where samples come without being asked for."""
    passes_at: float = -math.inf
    """When the next window is over that is counted."""
    shown: Observed = NOT_OBSERVED
    """What was observed last."""

    @classmethod
    def of(cls, job: Job, number: int) -> RevisionWindow:
        """An empty one, of this Revision of the job."""
        seconds = job.spec.profiling.window.total_seconds()
        key = RevisionKey(job.key.namespace, job.key.name, number)
        chips, pods = _placement(job, number)
        count = StepCount(
            job.spec.samples_per_step(chips),
            steps_suffice=job.spec.counts_samples is None,
            known=job.state.progress is not None and job.state.progress.unit is WorkUnit.STEPS,
        )
        window, known = Window(_capacity(job)), of_window_length(job.state.variation, seconds)
        program = _ref(job, number).workload_hash
        return cls(key, window, Track(), pods, KEPT_WINDOWS * seconds, program, variation=known, count=count)

    def is_of(self, job: Job, number: int) -> bool:
        """Whether it is of this Revision of the job, and of the program that this runs."""
        return self.key == (*job.key, number) and self.program == _ref(job, number).workload_hash

    def append(self, sample: Sample) -> None:
        """A new sample; the oldest ones are dropped."""
        basis = self.count.basis
        sample = self.count.complete(sample)
        if self.count.basis is not basis:
            self._begin_anew(basis, self.count.basis)
        before = len(self.window)
        taken = self.window.append(sample)
        if len(self.window) < before:  # its processes were restarted, and warm up again
            self.warm = False
        self.track.add(sample, self.pods)
        self.window.trim(sample.at - self.kept)
        at = sample.values.get(Field.CHECKPOINT_TIMESTAMP)
        if taken and at is not None and self.saved is not None and self.saved <= at < math.inf:
            self.saved = at
        elif at is not None or self.saved is not None:
            self.saved = max((at for at in self.window.column(Field.CHECKPOINT_TIMESTAMP) if at == at), default=None)

    def _begin_anew(self, before: Basis | None, basis: Basis | None) -> None:
        """What was measured on one basis must not meet what is measured on another one."""
        if before is not None:
            self.window, self.version, self.expected = Window(self.window.capacity), -1, None
        if basis is not None and (before is not None or basis.unit is not self.track.unit):
            former = self.track
            known = max(former.counter or 0.0, former.continues) if former.unit is basis.unit else 0.0
            self.track = Track(basis.unit, continues=known)

    def observe(self, job: Job, accelerator: Accelerator | None, now: float) -> Observed:
        """What the samples show now, the very object of before where that is the same; what the cluster shows is left
        out. accelerator: that of the Revision's pool, None if unknown."""
        if job is not self.job:
            self.count.per_step = job.spec.samples_per_step(_placement(job, self.key.revision)[0])
            self.count.steps_suffice = job.spec.counts_samples is None
            self._resize(job)
            self.job, self.passes_at = job, self._passes_at(job)
            migration = job.state.migration
            self.leaves = migration is not None and migration.phase is Phase.PLANNED and not job.awaits_approval
        outdated = self._outdated(job, accelerator, now)
        if outdated:
            self._build(job, accelerator, now)
        last = self._last_rate(job, now) if self.leaves else None
        known = self.shown.checkpoint_at, self.shown.track, self.shown.last_rate
        if not outdated and known == (self.saved, self.track, last):
            return self.shown
        seen = Observed(self.profile, self.diagnosis, self.variation, self.saved, self.track, last)
        if seen != self.shown:
            self.shown = seen
        return self.shown

    def _resize(self, job: Job) -> None:
        """Its windows are as long as the job says by now."""
        seconds = job.spec.profiling.window.total_seconds()
        self.kept, self.window.capacity = KEPT_WINDOWS * seconds, _capacity(job)
        variation = of_window_length(self.variation, seconds)
        if variation is not self.variation:
            self.variation, self.version, self.expected = variation, -1, None

    def _outdated(self, job: Job, accelerator: Accelerator | None, now: float) -> bool:
        """Whether the profile has to be recomputed. Samples within the expected range do not require it immediately."""
        if self.version == self.window.version:
            return now - self.checked_at > job.spec.profiling.interval.total_seconds()
        self.version, self.checked_at = self.window.version, now
        return (
            self.expected is None
            or now >= self.rebuild_at
            or now >= self.passes_at
            or job.state.migration is not None
            or not self._same(accelerator)
            or not self.window.within(self.expected)
        )

    def _same(self, accelerator: Accelerator | None) -> bool:
        """Whether it is the one that the diagnosis is of. A pool's own figures are a new object in each cycle."""
        return accelerator is self.accelerator or accelerator == self.accelerator

    def _passes_at(self, job: Job) -> float:
        """Unix seconds when a whole window has passed since the last one that was counted."""
        variation = self.variation
        if variation is None or variation.revision != self.key.revision:
            return -math.inf
        window = job.spec.profiling.window.total_seconds()
        if self.windows == 1 and job.state.migration is None:
            window *= 1.0 + job.phase
        return variation.as_of + window

    def _seen_until(self, interval: float, now: float) -> float:
        """Unix seconds until which the source has answered, at most the age at which a reading is old. A slow answer,
        as that for 10,000 jobs, does not make a job unmeasured. A source that never answers does."""
        return now if self.asked_at is None else max(self.asked_at, now - stale_after(interval))

    def _last_rate(self, job: Job, now: float) -> float | None:
        """Throughput of the newest part of a window that has come since the last whole one; None where that is too
        short, or does not compare with it: another unit, a fault that began or ended, processes that were restarted."""
        variation, spec = self.variation, job.spec.profiling
        if variation is None or variation.revision != self.key.revision:
            return None
        interval, window = spec.interval.total_seconds(), spec.window.total_seconds()
        until = self._seen_until(interval, now)
        length = min(until - variation.as_of, LONGEST_PART * window)
        if length < LEAST_PART * window or not len(self.window) or self.window.times[0] > until - length:
            return None
        chips, pods = _placement(job, self.key.revision)
        part = build_profile(
            self.key,
            chips,
            self.window,
            window=length,
            interval=interval,
            expected_pods=pods,
            now=until,
            warm=True,
        )
        throttled = throttling(part) != NOT_THROTTLED
        if not part.complete or (part.unit, throttled) != (variation.unit, variation.throttled):
            return None
        assert part.throughput is not None
        return part.throughput.value

    def _spread(self, job: Job) -> float:
        """Share of the usual time until the next profile: below 1 until the ends of a fleet's windows are spread."""
        return 1.0 if self.windows > 1 else 0.5 + 0.5 * job.phase

    def _build(self, job: Job, accelerator: Accelerator | None, now: float) -> None:
        placement = _placement(job, self.key.revision)
        spec = job.spec.profiling
        self.version, self.checked_at = self.window.version, now
        interval = spec.interval.total_seconds()
        profile = build_profile(
            self.key,
            placement[0],
            self.window,
            window=spec.window.total_seconds(),
            interval=interval,
            expected_pods=placement[1],
            now=self._seen_until(interval, now),
            before=self.profile,
            warm=self.warm or _long_there(job, self.key.revision, now),
        )
        self.warm = self.warm or profile.steadiness is Steadiness.STEADY
        throttled = throttling(profile) != NOT_THROTTLED
        if throttled:
            self.track.throttle(now, spec.window.total_seconds())
        throughput = profile.throughput
        if profile.complete and throughput is not None and now >= self.passes_at:
            earlier = self.variation
            variation = counted(
                earlier,
                self.key.revision,
                throughput.value,
                now,
                spec.window.total_seconds(),
                profile.unit,
                throttled=throttled,
            )
            since = _since(job, self.key.revision)
            self.variation = with_start_seen(earlier, variation, since, spec.window.total_seconds())
            self.windows += 1
            self.passes_at = self._passes_at(job)
        self.rebuild_at = now + min(REBUILD_SECONDS, spec.window.total_seconds()) * self._spread(job)
        # Counters are not compared, and tell what a full window without a throughput means.
        comparable = profile.complete or profile.steadiness is Steadiness.WARMING_UP
        same = comparable and job.state.migration is None and self._same(accelerator)
        if not (same and alike(profile, self.profile)):
            # A profile with the same values is kept, because everything computed from it is cached by identity.
            self.profile, self.accelerator = altered(profile, readings=PackedReadings(profile.readings)), accelerator
            self.expected = self.window.bounds(expected_range(profile)) if profile.complete else None
            before = None if self.diagnosis is None else self.diagnosis.bottleneck
            self.diagnosis = None if accelerator is None else diagnose(profile, accelerator, before=before)
        elif self.expected is not None and not self.window.within(self.expected):
            # What came changes nothing in a profile, such as the time of a first save.
            self.expected = self.window.bounds(expected_range(profile))


def _capacity(job: Job) -> int:
    """Samples that are kept at most."""
    spec = job.spec.profiling
    return min(CAPACITY * 4, max(CAPACITY, int(2 * spec.window / spec.interval)))


def observed_revision(job: Job) -> int | None:
    """The Revision that is there: during a migration the old one until its pods have ended. None where none is to be
    there any more."""
    if job.state.revision is None or job.state.finished is not None or job.deleting:
        return None
    return job.state.revision.revision


def _long_there(job: Job, number: int, now: float) -> bool:
    """Whether the Revision has run for so long that nothing can be its warm-up any more."""
    since = _since(job, number)
    return since is not None and now - since >= LONGEST_WARM_UP * job.spec.profiling.window.total_seconds()


def _since(job: Job, number: int) -> float | None:
    """Unix seconds since when all pods of the Revision have run; None where it is another one, or they have not."""
    ref = job.state.revision
    return None if ref is None or ref.revision != number else ref.since


def _placement(job: Job, number: int) -> tuple[int, int]:
    """Chips and pods of a Revision in the job's state."""
    placement = _ref(job, number).placement
    return placement.chips, placement.replicas


def _ref(job: Job, number: int) -> Revision:
    """One in the job's state."""
    refs = [job.state.revision]
    if job.state.migration is not None:
        refs += [job.state.migration.source, job.state.migration.target, job.state.migration.abandoned]
    return next(ref for ref in refs if ref is not None and ref.revision == number)
