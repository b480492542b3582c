"""The books of all namespaces: booked once a minute, and stored in one ConfigMap a namespace.

Each namespace is booked at its own time of the minute: to book ten thousand jobs takes as long as a third of a cycle.
One namespace a minute is stored, the one whose turn was longest ago, and none sooner than after ten minutes: so ten
namespaces are stored every ten minutes, and sixty and more once an hour. Where a job was deleted, only the books know
what it has spent, and are stored at once.

They are in the operator's own namespace: what a tenant is charged must not be the tenant's to write.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from heapq import nlargest
from typing import Final
from zlib import crc32

from rightpool.api.program_edit import EditVerdict
from rightpool.api.work_unit import WorkUnit
from rightpool.cluster.client import ClusterClient
from rightpool.contract import LABEL_CHARGEBACK, LABEL_POOL_COSTS
from rightpool.hardware.pool import Pool
from rightpool.planning.books.chargeback import Chargeback, deleted_moves
from rightpool.planning.books.pool_costs import PoolCosts
from rightpool.planning.jobs.booked_move import BookedMove
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.experience import MOST_COMPARISONS
from rightpool.planning.work.progress import goodput, progress_of
from rightpool.profiles.answers import Answers
from rightpool.reporting.chargeback_object import charged_namespace, config_map, read_books
from rightpool.reporting.pool_costs_object import NAME, is_pool_costs, pool_costs_object, read_pool_costs
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.act.config_maps import ConfigMaps, Form, MapEntry
from rightpool.runtime.act.ended_jobs import EndedJobs
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.metrics import CHARGED, ChargebackFigures

BOOK_SECONDS: Final = 60.0
SAVE_SECONDS: Final = 600.0
"""Least time between two writes of a namespace where no job was deleted, and of what pools cost."""
LONGEST_SECONDS: Final = 3600.0
"""The same at most, however many namespaces there are."""
SAVES_AT_ONCE: Final = 20
SHOWN_JOBS: Final = 1000
"""Jobs with series of their own, those that have spent most."""


_FORM: Final = Form("the books", LABEL_CHARGEBACK, charged_namespace, config_map, read_books)
_POOL_COSTS: Final = Form(
    "what pools cost", LABEL_POOL_COSTS, is_pool_costs, pool_costs_object, read_pool_costs, anew=PoolCosts
)
_Stored = MapEntry[Chargeback]


class ChargebackBooks:
    """Used by the planner's thread alone; writes run on the client's threads."""

    def __init__(self, client: ClusterClient, fence: Fence, figures: ChargebackFigures, namespace: str) -> None:
        self._maps: ConfigMaps[str, Chargeback] = ConfigMaps(
            client, fence, namespace, _FORM, writes_at_once=SAVES_AT_ONCE
        )
        self._ended = EndedJobs(client, fence, namespace)
        self._pool_costs = PoolCostBooks(client, fence, namespace)
        self._figures = figures
        self._next = 0.0
        self._book_at: dict[str, float] = {}  # Unix seconds when a namespace is booked next
        self.deleted_moves: tuple[BookedMove, ...] = ()
        """Of jobs that are gone, the newest of all namespaces; none before the books were read."""

    def follow(self) -> None:
        """This process does not lead: another one books."""
        self._maps.follow()
        self._ended.follow()
        self._pool_costs.follow()
        self._book_at.clear()
        self._figures.charged = None
        self.deleted_moves = ()
        self._next = 0.0

    def cycle(
        self,
        stored: Mapping[JobKey, StoredJob],
        observed: Mapping[JobKey, Job],
        assessments: Mapping[JobKey, Assessment],
        now: float,
        pools: Iterable[Pool] = (),
    ) -> None:
        """Book what is due. stored: all jobs; observed: those that have not ended, with what is seen of them; pools:
        all of which the chips that are free are known."""
        self._ended.cycle(stored.values(), now)
        self._maps.collect()
        minute = now >= self._next
        if minute:
            self._next = now + BOOK_SECONDS
            self._pool_costs.minute(pools, now)
            if self._maps.kept is None:
                self._book_at.clear()
                self._maps.load(now)
        kept = self._maps.kept
        if kept is None:
            return
        booked = self._book(kept, stored, observed, now)
        if minute:
            uids = {entry.job.uid for entry in stored.values()}
            self.deleted_moves = deleted_moves((each.value for each in kept.values()), uids, MOST_COMPARISONS)
            self._show(kept, stored, observed, assessments, now)
            self._save(kept.keys(), now, math.ceil(len(kept) * BOOK_SECONDS / LONGEST_SECONDS))
        else:
            self._save(booked, now, 0)

    def _book(
        self,
        kept: dict[str, _Stored],
        stored: Mapping[JobKey, StoredJob],
        observed: Mapping[JobKey, Job],
        now: float,
    ) -> AbstractSet[str]:
        """Book the namespaces whose time has come, which are returned."""
        for namespace in {key.namespace for key in stored} - kept.keys():
            kept[namespace] = MapEntry(Chargeback())
        due = {namespace: one for namespace, one in kept.items() if now >= self._book_at.get(namespace, -math.inf)}
        alive: dict[str, set[str]] = {namespace: set() for namespace in due}
        for key, entry in stored.items():
            one = due.get(key.namespace)
            if one is None:
                continue
            job = observed.get(key, entry.job)
            alive[key.namespace].add(job.uid)
            if job.state.revision is not None:
                one.dirty |= one.value.book(job, entry.team, now) | one.value.moves.book(job)
        for namespace, one in due.items():
            one.urgent |= one.value.forget(alive[namespace]) and one.dirty
            one.value.age(now)
            self._book_at[namespace] = _next_turn(namespace, now)
        return due.keys()

    def flush(self) -> None:
        """Store what is not stored yet, at the end of the process."""
        self._maps.flush()
        self._ended.flush()
        self._pool_costs.flush()

    def _save(self, names: AbstractSet[str], now: float, turns: int) -> None:
        """Store those of these that can't wait, and of the others `turns` at most, whose turn was longest ago."""
        waiting = {name: one for name, one in self._maps.waiting().items() if name in names}
        urgent = [name for name, one in waiting.items() if one.urgent or one.version is None]
        aged = sorted((one.saved_at, name) for name, one in waiting.items() if now - one.saved_at >= SAVE_SECONDS)
        self._maps.save([*urgent, *(name for _, name in aged[:turns])], now)

    # --- metrics -----------------------------------------------------------------------------------------------------

    def _show(
        self,
        kept: Mapping[str, _Stored],
        stored: Mapping[JobKey, StoredJob],
        observed: Mapping[JobKey, Job],
        assessments: Mapping[JobKey, Assessment],
        now: float,
    ) -> None:
        charged: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in CHARGED}
        for namespace, one in kept.items():
            for key, charge in one.value.totals().items():
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
        edit = None if job.state.finished else job.state.judged_edit
        measured = {
            "rightpool_job_goodput_ratio": goodput(account, progress_of(job, now)),
            "rightpool_job_regressed": None if edit is None else float(edit.verdict is EditVerdict.REGRESSED),
            "rightpool_job_regression_ratio": None if edit is None else edit.ratio,
        }
        if job.observed.answers is not None:
            measured |= _request_figures(job.observed.answers)
        profile = job.observed.profile
        if profile is not None and profile.complete and job.state.revision is not None:
            assessment = assessments.get(job.key)
            current = None if assessment is None else assessment.current
            measured[_JOULES[profile.unit]] = profile.joules_per_unit
            if current is not None:
                measured["rightpool_job_scaling_efficiency_ratio"] = current.scaling_efficiency
                measured["rightpool_job_model_flops_utilization_ratio"] = current.flops_utilization
        for name, value in measured.items():
            if value is not None:
                found[name][labels] = value
    return dict(found)


def _request_figures(answers: Answers) -> dict[str, float | None]:
    p99 = answers.p99
    return {
        "rightpool_job_requests_per_second": answers.requests_per_second,
        "rightpool_job_request_error_ratio": answers.error_ratio,
        "rightpool_job_request_mean_seconds": answers.mean_seconds,
        "rightpool_job_request_p99_seconds": None if p99 is None or math.isinf(p99.high) else p99.high,
    }


class PoolCostBooks:
    """What pools cost, booked once a minute and stored in one ConfigMap. Used as the books are."""

    def __init__(self, client: ClusterClient, fence: Fence, namespace: str) -> None:
        self._maps: ConfigMaps[str, PoolCosts] = ConfigMaps(client, fence, namespace, _POOL_COSTS, writes_at_once=1)

    def follow(self) -> None:
        """This process does not lead: another one books."""
        self._maps.follow()

    def minute(self, pools: Iterable[Pool], now: float) -> None:
        """Book what a minute has cost, and store it if that is due."""
        self._maps.collect()
        if self._maps.kept is None:
            self._maps.load(now)
        kept = self._maps.kept
        if kept is None:
            return
        one = kept.setdefault(NAME, MapEntry(PoolCosts(), saved_at=now))
        before = one.value.until
        one.value.book(pools, now)
        one.dirty |= bool(one.value.rows) and one.value.until != before
        if one.dirty and now - one.saved_at >= SAVE_SECONDS:
            self._maps.save(self._maps.waiting(), now)

    def flush(self) -> None:
        """Store what is not stored yet, at the end of the process."""
        self._maps.flush()
