"""What was measured of every Revision that runs: windows of samples, kept in memory and filled from one bulk read.

Reading blocks, on machines that may not answer, so it is done by a thread of its own: a cycle takes what has arrived,
asks for more, and goes on. A restart loses the windows and nothing else; jobs are not moved until they are full again.
"""

from __future__ import annotations

import logging
import math
from array import array
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FuturesTimeout
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

from rightpool.hardware.accelerator import Accelerator
from rightpool.planning.migration import Phase
from rightpool.planning.plan import alike
from rightpool.planning.snapshot import JobState
from rightpool.profiles.diagnosis import Diagnosis, diagnose
from rightpool.profiles.profile import Profile, build_profile, usual
from rightpool.profiles.sample import Field, RevisionKey, Sample
from rightpool.profiles.window import CAPACITY, Window
from rightpool.runtime.facts import PodFacts
from rightpool.telemetry.source import Target, TelemetryReading, TelemetrySource

# While a save is awaited, every second until it is seen is a second without progress later.
HASTE_SECONDS: Final = 2.0
# What is steady is looked at as a whole at least as often as this, seconds.
REBUILD_SECONDS: Final = 60.0
# How long readings are kept, in windows: what is older says nothing any more, and would be most of the memory. A little
# more than one, because their clock is not ours.
KEPT_WINDOWS: Final = 1.25
# Readings are due a little before the interval is over, so that a cycle that comes early does not skip one.
EARLY: Final = 0.9

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Observed:
    key: RevisionKey
    window: Window
    kept: float  # seconds
    asked_at: float = -math.inf
    version: int = -1
    looked_at: float = -math.inf
    due_at: float = -math.inf
    usual: tuple[array[float], array[float]] | None = None
    profile: Profile | None = None
    accelerator: Accelerator | None = None
    diagnosis: Diagnosis | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """Of a job's current Revision."""

    profile: Profile | None = None
    diagnosis: Diagnosis | None = None
    checkpoint_at: float | None = None


@dataclass(slots=True)
class Observations:
    """Used by the planner's thread alone; only the read itself runs elsewhere."""

    source: TelemetrySource
    patience: float = 1.0
    up: bool = True
    _windows: dict[str, _Observed] = field(default_factory=dict)  # by uid of the ProfiledJob
    _asked: dict[RevisionKey, str] = field(default_factory=dict)
    _reading: Future[TelemetryReading] | None = None
    _failures: tuple[str, ...] = ()
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="telemetry"))

    def close(self) -> None:
        """A read under way ends by its own timeouts."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def refresh(
        self, jobs: Iterable[JobState], pods: Callable[[JobState, int], Iterable[PodFacts]], now: float
    ) -> None:
        """Take what was read, and ask for what is due. jobs: those that may run; of others nothing is kept."""
        self._collect(0.0)
        targets: list[Target] = []
        asked: dict[RevisionKey, str] = {}
        alive: set[str] = set()
        for job in jobs:
            number = observed_revision(job)
            if number is None:
                continue
            alive.add(job.uid)
            observed = self._observed(job, number)
            interval = job.spec.profiling.interval.total_seconds()
            if job.migration is not None and job.migration.phase is Phase.CHECKPOINTING:
                interval = min(interval, HASTE_SECONDS)
            if self._reading is not None or now - observed.asked_at < EARLY * interval:
                continue
            addresses = tuple((pod.name, pod.ip) for pod in pods(job, number) if pod.ip and not pod.done)
            if addresses:
                observed.asked_at = now
                targets.append(Target(observed.key, addresses, interval))
                asked[observed.key] = job.uid
        for uid in self._windows.keys() - alive:
            del self._windows[uid]
        if targets:
            self._asked = asked
            self._reading = self._thread.submit(self.source.read, targets, now)
            self._collect(self.patience)

    def of(self, job: JobState, accelerator: Accelerator | None, now: float) -> Observation:
        """What is known of the job's current Revision. accelerator: of its pool, None where that is unknown."""
        number = observed_revision(job)
        observed = self._windows.get(job.uid)
        if observed is None or number is None or observed.key.revision != number:
            return Observation()
        if self._due(job, observed, accelerator, now):
            self._build(job, observed, accelerator, now)
        saves = [at for at in observed.window.column(Field.CHECKPOINT_TIMESTAMP) if not math.isnan(at)]
        return Observation(
            profile=observed.profile,
            diagnosis=observed.diagnosis,
            checkpoint_at=max(saves, default=None),
        )

    def _due(self, job: JobState, observed: _Observed, accelerator: Accelerator | None, now: float) -> bool:
        """Whether the profile has to be made anew: not for a sample like all others, until enough of them have come."""
        if observed.version == observed.window.version:
            return now - observed.looked_at > job.spec.profiling.interval.total_seconds()
        observed.version, observed.looked_at = observed.window.version, now
        return (
            observed.usual is None
            or now >= observed.due_at
            or job.migration is not None
            or accelerator is not observed.accelerator
            or not observed.window.within(*observed.usual)
        )

    def _build(self, job: JobState, observed: _Observed, accelerator: Accelerator | None, now: float) -> None:
        placement = _placement(job, observed.key.revision)
        spec = job.spec.profiling
        observed.version, observed.looked_at = observed.window.version, now
        profile = build_profile(
            observed.key,
            placement[0],
            observed.window,
            window=spec.window.total_seconds(),
            interval=spec.interval.total_seconds(),
            expected_pods=placement[1],
            now=now,
        )
        # Not all jobs in the same cycle: how long depends on the job.
        window = min(REBUILD_SECONDS, spec.window.total_seconds() / 2)
        observed.due_at = now + window * (0.5 + crc32(job.uid.encode()) / 2**33)
        observed.usual = usual(profile) if profile.complete else None
        same = job.migration is None and profile.complete and accelerator is observed.accelerator
        if not (same and alike(profile, observed.profile)):
            # One that says the same stays: whoever has judged by it need not do so again, and a job that sits on the
            # edge between two diagnoses does not go to and fro with the noise.
            observed.profile, observed.accelerator = profile, accelerator
            observed.diagnosis = None if accelerator is None else diagnose(profile, accelerator)

    def _observed(self, job: JobState, number: int) -> _Observed:
        key = RevisionKey(job.key.namespace, job.key.name, number)
        observed = self._windows.get(job.uid)
        if observed is None or observed.key != key:
            spec = job.spec.profiling
            capacity = min(CAPACITY * 4, max(CAPACITY, int(2 * spec.window / spec.interval)))
            observed = self._windows[job.uid] = _Observed(
                key, Window(capacity), KEPT_WINDOWS * spec.window.total_seconds()
            )
        return observed

    def _collect(self, timeout: float) -> None:
        if self._reading is None:
            return
        try:
            reading = self._reading.result(timeout)
        except FuturesTimeout:
            return
        except Exception as error:
            # A source never raises, by its contract; one that does is one that could not be read.
            reading = TelemetryReading(failures=(f"{type(error).__name__}: {error}",), up=False)
        self._reading = None
        self.up = reading.up
        self._tell(reading.failures)
        self._append(reading.samples)

    def _append(self, samples: Mapping[RevisionKey, Sample]) -> None:
        for key, sample in samples.items():
            observed = self._windows.get(self._asked.get(key, ""))
            if observed is not None and observed.key == key:
                observed.window.append(sample)
                observed.window.trim(sample.at - observed.kept)

    def _tell(self, failures: tuple[str, ...]) -> None:
        if failures != self._failures:
            for failure in failures:
                logger.warning("telemetry: %s", failure)
            if not failures:
                logger.info("telemetry: all that was asked for is read again")
        self._failures = failures


def observed_revision(job: JobState) -> int | None:
    """The Revision whose pods may run: the one that is being left as long as it is there, else the current one."""
    if job.ref is None or job.finished is not None or job.deleting:
        return None
    if job.migration is not None and job.migration.phase in (Phase.PLANNED, Phase.CHECKPOINTING, Phase.DRAINING):
        return job.migration.moving.revision
    return job.ref.revision


def _placement(job: JobState, number: int) -> tuple[int, int]:
    """Chips and pods of a Revision that the status names."""
    refs = [job.ref]
    if job.migration is not None:
        refs += [job.migration.source, job.migration.target, job.migration.abandoned]
    ref = next(ref for ref in refs if ref is not None and ref.revision == number)
    return ref.placement.chips, ref.placement.replicas
