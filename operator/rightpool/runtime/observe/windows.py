"""The windows of samples of every running Revision, in memory, filled by one bulk read at a time.

A read may block until its timeout, so it runs in a thread of its own: a cycle takes the samples that have arrived,
starts the next read and continues. A restart loses only the windows; jobs are not moved until they are full again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FuturesTimeout
from dataclasses import dataclass, field
from typing import Final

from rightpool.api.migration import Phase
from rightpool.hardware.accelerator import Accelerator
from rightpool.planning.jobs.job import NOT_OBSERVED, Job, Observed
from rightpool.planning.jobs.revision_window import RevisionWindow, observed_revision
from rightpool.profiles.sample import RevisionKey, Sample
from rightpool.runtime.observe.facts import PodFacts
from rightpool.telemetry.reader import Target, TelemetryReader, TelemetryReading

# Interval of readings while a checkpoint is awaited: progress after the checkpoint is lost when the pods end.
CHECKPOINT_INTERVAL: Final = 2.0
# The next read starts after this share of the interval, so that a cycle that starts early does not skip one.
EARLY: Final = 0.9

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Feed:
    """A window, and what it is filled from."""

    window: RevisionWindow
    job: Job
    """Whose Revision and interval these are."""
    interval: float
    """Seconds between two reads."""
    requested_at: float = -math.inf
    """When its last read was requested."""
    target: Target | None = None
    """What is read; None where no pod has an address."""
    pods: Sequence[PodFacts] = ()
    """What the target was made of."""

    def target_of(self, pods: Sequence[PodFacts]) -> Target | None:
        """The pods with addresses."""
        if pods is not self.pods or (self.target is not None and self.target.interval != self.interval):
            addresses = tuple((pod.name, pod.ip if pod.profiled else "") for pod in pods if pod.ip and not pod.done)
            self.target = Target(self.window.key, addresses, self.interval) if addresses else None
            self.pods = pods
        return self.target


@dataclass(slots=True)
class RevisionWindows:
    """Used by the planner's thread only; the read itself runs in another thread."""

    reader: TelemetryReader
    """Where samples come from."""
    patience: float = 1.0
    """How long a cycle waits for a read that it started, seconds."""
    up: bool = True
    """Whether the last read reached the source of telemetry."""
    _feeds: dict[str, _Feed] = field(default_factory=dict)  # by uid of the ProfiledJob
    _requested: dict[RevisionKey, str] = field(default_factory=dict)
    _requested_at: float = -math.inf
    _reading: Future[TelemetryReading] | None = None
    _failures: tuple[str, ...] = ()
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="telemetry"))

    def close(self) -> None:
        """Stop. A running read ends by its own timeouts."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def refresh(self, jobs: Iterable[Job], pods: Callable[[Job, int], Sequence[PodFacts]], now: float) -> None:
        """Take the samples of a finished read, and start the next one. Windows of all other jobs are dropped."""
        self._collect(0.0)
        targets: list[Target] = []
        requested: dict[RevisionKey, str] = {}
        alive: set[str] = set()
        for job in jobs:
            feed = self._feeds.get(job.uid)
            if feed is None or feed.job is not job:
                number = observed_revision(job)
                if number is None:
                    continue
                feed = self._feed(job, number)
            alive.add(job.uid)
            if self._reading is not None or now - feed.requested_at < EARLY * feed.interval:
                continue
            target = feed.target_of(pods(job, feed.window.key.revision))
            if target is not None:
                feed.requested_at = now
                targets.append(target)
                requested[feed.window.key] = job.uid
        if len(self._feeds) > len(alive):
            for uid in self._feeds.keys() - alive:
                del self._feeds[uid]
        if targets:
            self._requested, self._requested_at = requested, now
            self._reading = self._thread.submit(self.reader.read, targets, now)
            self._collect(self.patience)

    def of(self, job: Job, accelerator: Accelerator | None, now: float) -> Observed:
        """What the samples of a job show; what the cluster shows is left out. `accelerator`: that of its pool, None if
        unknown."""
        feed = self._feeds.get(job.uid)
        if feed is None or (feed.job is not job and feed.window.key.revision != observed_revision(job)):
            return NOT_OBSERVED
        return feed.window.observe(job, accelerator, now)

    def _feed(self, job: Job, number: int) -> _Feed:
        """That of the job as it is now."""
        interval = job.spec.profiling.interval.total_seconds()
        if job.state.migration is not None and job.state.migration.phase is Phase.CHECKPOINTING:
            interval = min(interval, CHECKPOINT_INTERVAL)
        feed = self._feeds.get(job.uid)
        if feed is None or not feed.window.is_of(job, number):
            feed = self._feeds[job.uid] = _Feed(RevisionWindow.of(job, number), job, interval)
        feed.job, feed.interval = job, interval
        return feed

    def _collect(self, timeout: float) -> None:
        if self._reading is None:
            return
        try:
            reading = self._reading.result(timeout)
        except FuturesTimeout:
            return
        except Exception as error:
            # By its contract a reader never raises. If it does, treat it as a failed read.
            reading = TelemetryReading(failures=(f"{type(error).__name__}: {error}",), up=False)
        self._reading = None
        self.up = reading.up
        self._log(reading.failures)
        self._take(reading.samples)

    def _take(self, samples: Mapping[RevisionKey, Sample]) -> None:
        for key, uid in self._requested.items():
            feed = self._feeds.get(uid)
            if feed is None or feed.window.key != key:
                continue
            feed.window.asked_at = self._requested_at
            sample = samples.get(key)
            if sample is not None:
                feed.window.append(sample)

    def _log(self, failures: tuple[str, ...]) -> None:
        if failures != self._failures:
            for failure in failures:
                logger.warning("telemetry: %s", failure)
            if not failures:
                logger.info("telemetry: all that was asked for is read again")
        self._failures = failures
