"""The books of all namespaces: booked once a minute, and stored in one ConfigMap a namespace.

Each namespace is booked at its own time of the minute: to book ten thousand jobs takes as long as a third of a cycle.
One namespace a minute is stored, the one whose turn was longest ago, and none sooner than after ten minutes: so ten
namespaces are stored every ten minutes, and sixty and more once an hour. Where a job was deleted, only the books know
what it has spent, and are stored at once.

They are in the operator's own namespace: what a tenant is charged must not be the tenant's to write.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from heapq import nlargest
from typing import Any, Final
from zlib import crc32

from rightpool.api.action import Action
from rightpool.api.ledger import Outcome
from rightpool.api.work_unit import WorkUnit
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from rightpool.cluster.resources import CONFIG_MAPS
from rightpool.contract import LABEL_CHARGEBACK
from rightpool.planning.books.chargeback import Chargeback, deleted_moves
from rightpool.planning.jobs.booked_move import BookedMove
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.experience import MOST_COMPARISONS
from rightpool.planning.work.progress import goodput, progress_of
from rightpool.profiles.profile import Profile
from rightpool.reporting.chargeback_object import charged_namespace, config_map, read_books
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.metrics import CHARGED, ChargebackFigures
from rightpool.runtime.observe.facts import meta

BOOK_SECONDS: Final = 60.0
SAVE_SECONDS: Final = 600.0
"""Least time between two writes of a namespace where no job was deleted."""
LONGEST_SECONDS: Final = 3600.0
"""The same at most, however many namespaces there are."""
SAVES_AT_ONCE: Final = 20
SHOWN_JOBS: Final = 1000
"""Jobs with series of their own, those that have spent most."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Stored:
    """One namespace's books and the object that they are stored in."""

    books: Chargeback
    version: str | None
    """Of the object as it was last read or written; None where there is none."""
    saved_at: float = -math.inf
    """Unix seconds of the last write, or read."""
    book_at: float = -math.inf
    """Unix seconds when it is booked next."""
    dirty: bool = False
    urgent: bool = False
    """Whether a job was deleted whose last amounts are stored nowhere else."""


class ChargebackBooks:
    """Used by the planner's thread alone; writes run on the client's threads."""

    def __init__(self, client: ClusterClient, fence: Fence, figures: ChargebackFigures, namespace: str) -> None:
        self._client = client
        self._fence = fence
        self._figures = figures
        self._namespace = namespace
        self._stored: dict[str, _Stored] | None = None
        self._next = 0.0
        self._saving: dict[str, Future[str | None]] = {}
        self._problem = ""
        self.deleted_moves: tuple[BookedMove, ...] = ()
        """Of jobs that are gone, the newest of all namespaces; none before the books were read."""

    def follow(self) -> None:
        """This process does not lead: another one books."""
        self._stored = None
        self._figures.charged = None
        self.deleted_moves = ()
        self._saving.clear()
        self._next = 0.0

    def cycle(
        self,
        stored: Mapping[JobKey, StoredJob],
        observed: Mapping[JobKey, Job],
        assessments: Mapping[JobKey, Assessment],
        now: float,
    ) -> None:
        """Book what is due. stored: all jobs; observed: those that have not ended, with what is seen of them."""
        self._collect()
        minute = now >= self._next
        if minute:
            self._next = now + BOOK_SECONDS
            if self._stored is None:
                self._load(now)
        if self._stored is None:
            return
        booked = self._book(stored, observed, now)
        if minute:
            uids = {entry.job.uid for entry in stored.values()}
            self.deleted_moves = deleted_moves((each.books for each in self._stored.values()), uids, MOST_COMPARISONS)
            self._show(stored, observed, assessments, now)
            self._save(self._stored, now, math.ceil(len(self._stored) * BOOK_SECONDS / LONGEST_SECONDS))
        else:
            self._save(booked, now, 0)

    def _book(
        self, stored: Mapping[JobKey, StoredJob], observed: Mapping[JobKey, Job], now: float
    ) -> Mapping[str, _Stored]:
        """Book the namespaces whose time has come, which are returned."""
        assert self._stored is not None
        for namespace in {key.namespace for key in stored} - self._stored.keys():
            self._stored[namespace] = _Stored(Chargeback(), None)
        due = {namespace: books for namespace, books in self._stored.items() if now >= books.book_at}
        alive: dict[str, set[str]] = {namespace: set() for namespace in due}
        for key, entry in stored.items():
            books = due.get(key.namespace)
            if books is None:
                continue
            job = observed.get(key, entry.job)
            alive[key.namespace].add(job.uid)
            if job.state.revision is not None:
                books.dirty |= books.books.book(job, entry.team, now) | books.books.moves.book(job)
        for namespace, books in due.items():
            books.urgent |= books.books.forget(alive[namespace]) and books.dirty
            books.books.age(now)
            books.book_at = _next_turn(namespace, now)
        return due

    def flush(self) -> None:
        """Store what is not stored yet, at the end of the process."""
        self._collect(timeout=2.0)
        for namespace, books in (self._stored or {}).items():
            if books.dirty and namespace not in self._saving:
                self._submit(namespace, books)
        self._collect(timeout=2.0)

    # --- storing -----------------------------------------------------------------------------------------------------

    def _load(self, now: float) -> None:
        try:
            objects = self._client.list_all(CONFIG_MAPS, self._namespace, labels=LABEL_CHARGEBACK)
        except ClusterError as error:
            self._report(f"the books can't be read, and nothing is booked: {error.message}")
            return
        stored: dict[str, _Stored] = {}
        for body in objects:
            about = meta(body)
            namespace = charged_namespace(body)
            if namespace is None:
                continue
            try:
                books = read_books(body)
            except ValueError as error:
                # Better nothing than to write over what somebody may still repair.
                self._report(
                    f"ConfigMap {self._namespace}/{about.get('name')} can't be read: {error}; delete or repair it"
                )
                return
            stored[namespace] = _Stored(books, str(about.get("resourceVersion")), now)
        self._stored = stored
        self._report("")

    def _save(self, stored: Mapping[str, _Stored], now: float, turns: int) -> None:
        """Store those of these that can't wait, and of the others `turns` at most, whose turn was longest ago."""
        waiting = [(name, books) for name, books in stored.items() if books.dirty and name not in self._saving]
        urgent = [name for name, books in waiting if books.urgent or books.version is None]
        aged = sorted((books.saved_at, name) for name, books in waiting if now - books.saved_at >= SAVE_SECONDS)
        chosen = dict.fromkeys([*urgent, *(name for _, name in aged[:turns])])
        for name in list(chosen)[: max(0, SAVES_AT_ONCE - len(self._saving))]:
            stored[name].saved_at = now
            self._submit(name, stored[name])

    def _submit(self, namespace: str, books: _Stored) -> None:
        books.dirty = books.urgent = False
        body = config_map(self._namespace, namespace, books.books, books.version)
        self._saving[namespace] = self._client.submit(self._write, body)

    def _write(self, body: dict[str, Any]) -> str | None:
        """The object's new version; None where it was not written."""
        try:
            self._fence.leader()
            new = body["metadata"].get("resourceVersion") is None
            answer = self._client.create(CONFIG_MAPS, body) if new else self._client.replace(CONFIG_MAPS, body)
        except Fenced:
            return None
        return str(meta(answer).get("resourceVersion"))

    def _collect(self, timeout: float = 0.0) -> None:
        for namespace, future in list(self._saving.items()):
            if timeout == 0.0 and not future.done():
                continue
            del self._saving[namespace]
            books = (self._stored or {}).get(namespace)
            try:
                version = future.result(timeout)
            except (Conflict, AlreadyExists, NotFound):
                # Somebody else has written it: what is stored is right, and what is missing there is booked anew.
                self._stored = None
                return
            except TimeoutError:
                self._stored = None  # whether it was written is not known
                return
            except ClusterError as error:
                self._report(f"the books of {namespace} can't be stored: {error.message}")
                version = None
            if books is None:
                continue
            if version is None:
                books.dirty = books.urgent = True  # what has failed is tried again within a minute
            else:
                books.version = version

    def _report(self, problem: str) -> None:
        if problem and problem != self._problem:
            logger.warning("chargeback: %s", problem)
        self._problem = problem

    # --- metrics -----------------------------------------------------------------------------------------------------

    def _show(
        self,
        stored: Mapping[JobKey, StoredJob],
        observed: Mapping[JobKey, Job],
        assessments: Mapping[JobKey, Assessment],
        now: float,
    ) -> None:
        assert self._stored is not None
        charged: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in CHARGED}
        for namespace, books in self._stored.items():
            for key, charge in books.books.totals().items():
                for name, amount in zip(CHARGED, charge, strict=False):  # no counter of the variance
                    charged[name][(namespace, *key)] = amount
        self._figures.charged = charged
        placed = (
            (entry.job.state.account.spent_by(now), entry, observed.get(key, entry.job))
            for key, entry in stored.items()
            if entry.job.state.revision is not None
        )
        most = nlargest(SHOWN_JOBS, placed, key=lambda each: each[0])
        self._figures.jobs = _job_figures(most, assessments, now)


def _next_turn(namespace: str, now: float) -> float:
    """Unix seconds of its next time in a minute, which depends on its name."""
    return now + BOOK_SECONDS - (now - crc32(namespace.encode())) % BOOK_SECONDS


_JOULES: Final = {
    WorkUnit.SAMPLES: "rightpool_job_joules_per_sample",
    WorkUnit.STEPS: "rightpool_job_joules_per_step",
}


def _job_figures(
    jobs: list[tuple[float, StoredJob, Job]], assessments: Mapping[JobKey, Assessment], now: float
) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for spent, entry, job in jobs:
        labels = (job.key.namespace, job.key.name, entry.team)
        account = job.state.account.settled(now)
        found["rightpool_job_spent_dollars"][labels] = spent
        found["rightpool_job_saved_dollars"][labels] = account.saved
        found["rightpool_job_chip_seconds"][labels] = account.chip_seconds
        measured = {"rightpool_job_goodput_ratio": goodput(account, progress_of(job, now))}
        profile = job.observed.profile
        if profile is not None and profile.complete and job.state.revision is not None:
            assessment = assessments.get(job.key)
            current = None if assessment is None else assessment.current
            measured["rightpool_job_regression_ratio"] = _regression(job, profile)
            measured[_JOULES[profile.unit]] = profile.joules_per_unit
            if current is not None:
                measured["rightpool_job_scaling_efficiency_ratio"] = current.scaling_efficiency
                measured["rightpool_job_model_flops_utilization_ratio"] = current.flops_utilization
        for name, value in measured.items():
            if value is not None:
                found[name][labels] = value
    return dict(found)


def _regression(job: Job, profile: Profile) -> float | None:
    """Samples a second of a chip ÷ those before the last edit. None where steps are counted: an edit may change
    how many samples a step has, which is not seen."""
    rate, before = profile.throughput, _before_edit(job)
    if rate is None or not rate.value or before is None or profile.unit is not WorkUnit.SAMPLES:
        return None
    return rate.value / profile.chips / before


def _before_edit(job: Job) -> float | None:
    """Samples a second of a chip before the user's last edit of the template, if that is the last thing that happened
    to the job, and the pool is the same."""
    revision = job.state.revision
    if revision is None or not job.state.history or job.state.migration is not None:
        return None
    last = job.state.history[-1]
    if last.action is not Action.UPDATE or last.outcome is not Outcome.CARRIED_OUT or last.unit is not WorkUnit.SAMPLES:
        return None
    if last.resized or last.source.pool != revision.placement.pool or last.target != revision.placement:
        return None
    before = last.baseline_throughput
    return None if not before else before / last.source.chips
