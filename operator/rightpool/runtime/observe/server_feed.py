"""What servers answer: their pages are read in a thread of its own, and go into the records of demand.

A server whose record has a gap gets from Prometheus what that still has of it, once, before its record goes on.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final, NamedTuple

from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.revision_window import observed_revision
from rightpool.planning.jobs.sizing import Sizing
from rightpool.planning.jobs.time_limits import sized_limits, time_limits
from rightpool.profiles.answers import LONGEST_SECONDS, Answers, answers_of
from rightpool.profiles.demand import DAY, DAYS, SLOT
from rightpool.profiles.loads import Loads
from rightpool.profiles.sample import RevisionKey
from rightpool.profiles.served import ServedWindow, Sides
from rightpool.profiles.service import ServiceWindow, ServiceWindows
from rightpool.runtime.act.demand_records import DemandRecords
from rightpool.runtime.observe.facts import PodFacts
from rightpool.runtime.observe.server_sizes import ServerSizes, place_of
from rightpool.runtime.observe.server_trials import ServerTrials, TrialAnswers, TrialTarget, trial_target
from rightpool.telemetry.server_pages import PageFailure, PastDemand, ServerReader, ServerReading, ServerTarget
from rightpool.telemetry.sources.servers.dialect import ServerDialect
from rightpool.telemetry.sources.servers.dialects import dialect_of

READ_SECONDS: Final = 15.0
"""Between two readings: a count of the record."""
SHARED_READ_SECONDS: Final = 5.0
"""The same while a move shares requests, whose new side may do wrong until it is seen, or while one is tried, which is
short."""
ALONE_SECONDS: Final = 60.0
"""For so long a new side that has just got all requests is read as often: they may be twice as many as before."""
_AWAITED: Final = 1.0  # seconds, for a reading of these: else it is a cycle late
_EARLY: Final = 0.9  # so that a cycle that starts early does not skip one
_PASTS_AT_ONCE: Final = 10

logger = logging.getLogger(__name__)


class _Asked(NamedTuple):
    """Whose past is to be read."""

    key: JobKey
    dialect: ServerDialect
    begin: float


class _LastAnswers(NamedTuple):
    """What a server's pages said last."""

    at: float
    answers: Answers


class ServerSeen(NamedTuple):
    """What is known of a server."""

    answers: Answers | None
    """What it answers now."""
    sizing: Sizing | None
    """What its record says of its size."""
    sides: tuple[Sides, ...] = ()
    """What both sides of its move have answered."""
    trial: TrialAnswers | None = None
    """What its trial shows; None where none is under way, or it has not answered yet."""
    service: tuple[ServiceWindow, ...] = ()
    """What its windows were like, of the Revision that answers."""


NO_SERVER: Final = ServerSeen(None, None)
_SHARED: Final = frozenset({Phase.SHARING, Phase.HOLDING})


class ServerFeed:
    """Used by the planner's thread alone; the read itself runs in another thread."""

    def __init__(
        self, reader: ServerReader, records: DemandRecords, pods: Callable[[JobKey, int], Sequence[PodFacts]]
    ) -> None:
        """pods: those of a Revision, by its number."""
        self._pods = pods
        self._reader = reader
        self._records = records
        self._sizes = ServerSizes(records)
        self._trials = ServerTrials()
        self._reading: Future[tuple[ServerReading, Mapping[JobKey, PastDemand]]] | None = None
        self._read_at = -math.inf
        self._asked: list[_Asked] = []
        self._whole: set[JobKey] = set()  # their past was asked for
        self._failures: Mapping[RevisionKey, PageFailure] = {}
        self._recent: dict[RevisionKey, deque[ServedWindow]] = {}
        self._last: dict[JobKey, _LastAnswers] = {}
        self._sides: dict[JobKey, tuple[Sides, ...]] = {}
        self._service: dict[JobKey, ServiceWindows] = {}
        self._hurries = False  # whether requests of a server are shared, or one is tried
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="servers")

    def close(self) -> None:
        """Stop. A running read ends by its own timeouts."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._sizes.close()
        self._records.flush()

    def follow(self) -> None:
        """This process does not lead: another one records."""
        self._records.follow()
        self._sizes.follow()
        self._trials.follow()
        self._whole.clear()
        self._asked.clear()
        self._recent.clear()
        self._last.clear()
        self._sides.clear()
        self._service.clear()

    def seen(self, job: Job) -> ServerSeen:
        """What is known of a server, each the very object of before while it is the same."""
        sides, trial = self._sides.get(job.key, ()), self._trials.of(job)
        return ServerSeen(self.answers(job), self._sizes.of(job), sides, trial, self._service_of(job))

    def answers(self, job: Job) -> Answers | None:
        """What a server answers now, the very object of before while it is the same; None where that is unknown."""
        last = self._last.get(job.key)
        return None if last is None or last.answers.revision != _telling(job) else last.answers

    def _service_of(self, job: Job) -> tuple[ServiceWindow, ...]:
        known = self._service.get(job.key)
        return () if known is None or known.revision != _telling(job) else known.whole

    @property
    def pace(self) -> float:
        """Seconds after which the next cycle is wanted."""
        return SHARED_READ_SECONDS if self._hurries else math.inf

    def cycle(self, jobs: Iterable[Job], pools: Mapping[str, Pool], now: float) -> None:
        """Take what a finished read has brought, and start the next one."""
        known_jobs = {job.key: job for job in jobs}
        servers = {key: job for key, job in known_jobs.items() if job.spec.workload.server is not None}
        tried = [one for job in servers.values() if (one := trial_target(job, known_jobs)) is not None]
        trials = {one.revision: one for one in tried}
        self._whole &= servers.keys()
        self._asked = [one for one in self._asked if one.key in servers]
        self._hurries = bool(trials) or any(_just_loaded(job, now) for job in servers.values())
        if self._hurries:
            self._start(servers, trials, now)
            wait([] if self._reading is None else [self._reading], _AWAITED)
        reading = self._collect()
        self._take_answers(reading, servers, now)
        known = {key: window for key, window in reading.windows.items() if JobKey(*key[:2]) in self._whole}
        self._take_sides(servers, reading.windows)
        self._records.cycle(servers.keys(), _demanded(servers, known), now)
        self._remember_loads(servers, known)
        self._trials.take(trials, reading.windows, self._loads)
        self._count_service(servers, reading.windows)
        targeted = {key: job for key, job in servers.items() if sized_limits(job.spec.targets)}
        self._sizes.cycle(targeted, pools, now)
        self._ask_past({key: of for key, of in reading.dialects.items() if JobKey(*key[:2]) in servers}, now)
        self._start(servers, trials, now)

    def _loads(self, key: JobKey) -> Loads | None:
        record = self._records.of(key)
        return None if record is None else record.loads

    def _start(self, servers: Mapping[JobKey, Job], trials: Mapping[RevisionKey, TrialTarget], now: float) -> None:
        """The next reading, where one is due."""
        seconds = SHARED_READ_SECONDS if self._hurries else READ_SECONDS
        if self._reading is not None or now - self._read_at < _EARLY * seconds:
            return
        asked_of = [(job, RevisionKey(*job.key, number)) for job in servers.values() for number in _read_numbers(job)]
        asked_of += [(trial.job, revision) for revision, trial in trials.items()]
        targets = [target for job, key in asked_of if (target := self._target(job, key)) is not None]
        if targets:
            self._read_at = now
            asked, self._asked = self._asked[:_PASTS_AT_ONCE], self._asked[_PASTS_AT_ONCE:]
            self._reading = self._thread.submit(self._read, targets, asked, now)

    def _read(
        self, targets: Sequence[ServerTarget], asked: Sequence[_Asked], now: float
    ) -> tuple[ServerReading, Mapping[JobKey, PastDemand]]:
        reading = self._reader.read_servers(targets, now)
        return reading, {one.key: self._reader.past(one.key, one.dialect, one.begin, now) for one in asked}

    def _collect(self) -> ServerReading:
        if self._reading is None or not self._reading.done():
            return ServerReading()
        try:
            reading, pasts = self._reading.result()
        except Exception as error:
            # By its contract a reader never raises. If it does, treat it as a failed read.
            logger.warning("servers: %s: %s", type(error).__name__, error)
            reading, pasts = ServerReading(up=False), {}
        self._reading = None
        for key, past in pasts.items():
            record = self._records.of(key)
            if record is not None:
                for demanded, counts in past.items():
                    record.fill(demanded, counts)
                self._whole.add(key)
        for revision, failure in reading.failures.items():
            before = self._failures.get(revision)
            if before is None or before.problem is not failure.problem:
                logger.warning(
                    "servers: %s of %s/%s: %s", failure.problem, revision.namespace, revision.job, failure.detail
                )
        self._failures = reading.failures
        return reading

    def _take_answers(self, reading: ServerReading, servers: Mapping[JobKey, Job], now: float) -> None:
        for revision, window in reading.windows.items():
            recent = self._recent.setdefault(revision, deque())
            recent.append(window)
            job = servers.get(JobKey(revision.namespace, revision.job))
            since = max(now - LONGEST_SECONDS, -math.inf if job is None else _alone_since(job))
            while recent and recent[0].at - recent[0].seconds < since:
                recent.popleft()
            if job is not None and _telling(job) == revision.revision:
                limits = {time: limit.seconds for time, limit in time_limits(job.spec.targets).items()}
                self._tell(revision, answers_of(revision.revision, recent, limits), now)
        for revision, failure in reading.failures.items():
            job = servers.get(JobKey(revision.namespace, revision.job))
            if revision not in reading.windows and job is not None and _telling(job) == revision.revision:
                self._recent.pop(revision, None)
                self._tell(revision, Answers(revision.revision, problem=failure.problem), now)
        # Of what is not read any more nothing is known either.
        self._last = {key: last for key, last in self._last.items() if last.at > now - LONGEST_SECONDS}
        self._recent = {
            key: recent for key, recent in self._recent.items() if recent and recent[-1].at > now - LONGEST_SECONDS
        }

    def _tell(self, revision: RevisionKey, answers: Answers | None, now: float) -> None:
        if answers is not None:
            key = JobKey(revision.namespace, revision.job)
            before = self._last.get(key)
            same = before is not None and answers.same_as(before.answers)
            self._last[key] = _LastAnswers(now, before.answers if before is not None and same else answers)

    def _remember_loads(self, servers: Mapping[JobKey, Job], windows: Mapping[RevisionKey, ServedWindow]) -> None:
        """What batches took, where it is known where they ran."""
        for key, window in windows.items():
            job = servers.get(JobKey(*key[:2]))
            record = None if job is None else self._records.of(job.key)
            for ref in () if job is None or record is None else _answering_refs(job):
                if ref.revision == key.revision and record is not None:
                    record.loads.extend(window, place_of(ref), ref.workload_hash)

    def _count_service(self, servers: Mapping[JobKey, Job], windows: Mapping[RevisionKey, ServedWindow]) -> None:
        """Windows of the Revision that answers alone, as long as those of a job's profile."""
        kept: dict[JobKey, ServiceWindows] = {}
        for key, job in servers.items():
            number = _telling(job)
            if number is None or _shared(job) is not None:
                continue  # its requests are shared
            known = self._service.get(key)
            kept[key] = known if known is not None and known.revision == number else ServiceWindows(number)
            window = windows.get(RevisionKey(*key, number))
            if window is not None:
                kept[key].append(window, job.spec.profiling.window.total_seconds())
        self._service = kept

    def _ask_past(self, dialects: Mapping[RevisionKey, ServerDialect], now: float) -> None:
        waiting = {one.key for one in self._asked}
        for revision, dialect in dialects.items():
            key = JobKey(revision.namespace, revision.job)
            record = self._records.of(key)
            if record is not None and key not in self._whole and key not in waiting:
                newest = record.newest(now)
                self._asked.append(_Asked(key, dialect, now - DAYS * DAY * SLOT if newest is None else newest))

    def _take_sides(self, servers: Mapping[JobKey, Job], windows: Mapping[RevisionKey, ServedWindow]) -> None:
        """What was answered in the same time, since the step of a move began that is judged."""
        kept: dict[JobKey, tuple[Sides, ...]] = {}
        for key, job in servers.items():
            migration = _shared(job)
            if migration is None:
                continue
            numbers = migration.target.revision, migration.source.revision
            new, old = (windows.get(RevisionKey(*key, number)) for number in numbers)
            before = self._sides.get(key, ())
            since = tuple(one for one in before if one.at > migration.phase_since)
            before = before if len(since) == len(before) else since
            kept[key] = before if new is None and old is None else (*before, Sides(new, old))
        self._sides = kept

    def _target(self, job: Job, key: RevisionKey) -> ServerTarget | None:
        """What is to be read of a Revision of a server, or of its trial; None where it has no page, or no pod that can
        answer."""
        server = job.spec.workload.server
        if server is None or server.metrics is None:
            return None
        addresses = tuple(
            (pod.name, pod.ip)
            for pod in self._pods(JobKey(key.namespace, key.job), key.revision)
            if pod.ip and pod.ready and not (pod.done or pod.deleting)
        )
        if not addresses:
            return None
        metrics = server.metrics
        return ServerTarget(key, addresses, metrics.port, metrics.path, dialect_of(metrics), READ_SECONDS)


def _shared(job: Job) -> Migration | None:
    """The move of a server whose new side gets requests; None where there is none."""
    migration = job.state.migration
    return migration if migration is not None and migration.phase in _SHARED else None


def _just_loaded(job: Job, now: float) -> bool:
    """Whether the new side of its move has got more requests lately."""
    migration = _shared(job)
    return migration is not None and (migration.phase is Phase.SHARING or now - migration.phase_since < ALONE_SECONDS)


def _alone_since(job: Job) -> float:
    """Since when the target of a move gets all requests: what it answered beside another is not what comes in."""
    migration = job.state.migration
    return migration.phase_since if migration is not None and migration.phase is Phase.HOLDING else -math.inf


def _telling(job: Job) -> int | None:
    """Number of the Revision whose answers are the server's: of the one that gets all requests, or did before."""
    migration, number = job.state.migration, observed_revision(job)
    holds = migration is not None and migration.phase is Phase.HOLDING and number is not None
    return migration.target.revision if holds and migration is not None else number


def _answering_refs(job: Job) -> tuple[Revision, ...]:
    """The Revisions whose pages are read."""
    ref, migration = job.state.revision, _shared(job)
    if ref is None or observed_revision(job) is None:
        return ()
    return (ref,) if migration is None else (ref, migration.target)


def _answering(job: Job) -> tuple[int, ...]:
    """Their numbers."""
    return tuple(ref.revision for ref in _answering_refs(job))


def _read_numbers(job: Job) -> tuple[int, ...]:
    """Numbers of the Revisions whose pages are read: a new side's, too, before it gets requests, so that what comes
    first is counted."""
    answering, migration = _answering(job), job.state.migration
    surges = answering and migration is not None and migration.phase is Phase.SURGING
    return (*answering, migration.target.revision) if surges and migration is not None else answering


def _demanded(servers: Mapping[JobKey, Job], windows: Mapping[RevisionKey, ServedWindow]) -> dict[JobKey, ServedWindow]:
    """What came to all Revisions of a server together; a server of which one was not read is left out."""
    found: dict[JobKey, ServedWindow] = {}
    for key, job in servers.items():
        parts = [windows.get(RevisionKey(*key, number)) for number in _answering(job)]
        first, *others = parts or [None]
        if first is None or None in others:
            continue
        for other in others:
            assert other is not None
            first = first.beside(other)
        found[key] = first
    return found
