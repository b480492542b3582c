"""Records decisions, ended migrations, the state of the fleet and what a cycle takes as metrics and in the log."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from rightpool.api.action import Action
from rightpool.api.policy import MAX_WORTHS
from rightpool.planning.allocate.allocator import NOTHING_CHOSEN, Choice
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.candidate import Candidate
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.offer import potential_savings
from rightpool.runtime.metrics import FASTER, SLOWER, OperatorMetrics

STATES: Final = ("Waiting", "Running", "Migrating", "Suspended", "Finished")

logger = logging.getLogger(__name__)


class MetricsRecorder:
    """Counts a decision only when it differs from the job's previous one."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        self._metrics = metrics
        self._decisions = cache(metrics.decisions.labels)  # finding a series takes longer than counting
        self._decided: dict[str, tuple[str, str]] = {}
        self._offers: dict[str, float] = {}  # dollars an hour, by uid

    def decided(self, job: Job, assessment: Assessment | None, now: float) -> None:
        """Record what was decided about a job; it holds until something else is. `now`: Unix seconds."""
        self._offers.pop(job.uid, None)
        if assessment is None:
            return
        decision = assessment.decision
        if decision.candidate is not None and decision.action is Action.HOLD:
            self._offers[job.uid] = _offered(job, decision.candidate)
        verdict = (decision.action.value, str(decision.reason))
        if self._decided.get(job.uid) != verdict:
            self._decided[job.uid] = verdict
            self._decisions(*verdict).inc()
            if logger.isEnabledFor(logging.INFO):
                extra = {
                    "job": str(job.key),
                    "decision": f"d-{job.state.decisions + 1}",
                    "evidence": decision_text(job, assessment, now),
                }
                logger.info("decided: %s, %s", *verdict, extra=extra)

    def ended(self, before: Job, after: Job) -> None:
        """Record the migrations that are new in the ledger of `after`."""
        known = {entry.id for entry in before.state.history}
        for entry in after.state.history:
            if entry.id not in known:
                self._metrics.migrations.labels(entry.outcome.value).inc()
                if (error := entry.prediction_error) is not None:
                    self._metrics.prediction_error.labels(SLOWER if error < 0 else FASTER).observe(abs(error))
                logger.info(
                    "%s: %s",
                    entry.id,
                    entry.outcome.value,
                    extra={"job": str(after.key), "evidence": entry.message},
                )

    def fleet(
        self, jobs: Iterable[Job], pools: int, now: float, *, breaker_open: bool, choice: Choice = NOTHING_CHOSEN
    ) -> None:
        """Set the metrics of the whole fleet. `now`: Unix seconds, up to which is counted what moves have saved.
        choice: how the chips were shared out."""
        metrics = self._metrics
        counted: Counter[str] = Counter(dict.fromkeys(STATES, 0))
        phases: Counter[str] = Counter()
        hourly = saved = offered = 0.0
        for job in jobs:
            if job.state.finished is None:  # of one that has ended nothing is decided any more
                offered += self._offers.get(job.uid, 0.0)
            saved += job.state.account.saved_by(now)
            hourly += job.state.account.cost_per_hour or 0.0
            counted[_state_of(job)] += 1
            if job.state.migration is not None and job.state.pause is None:
                phases[job.state.migration.phase.value] += 1
        for name, count in counted.items():
            metrics.jobs.labels(name).set(count)
        metrics.migrating.clear()
        for name, count in phases.items():
            metrics.migrating.labels(name).set(count)
        metrics.pools.set(pools)
        metrics.spent.set(hourly)
        metrics.saved.set(saved)
        metrics.breaker_open.set(breaker_open)
        metrics.fallbacks.inc(choice.failure is not None)
        metrics.worth.clear()
        for pool, price in choice.dearest(MAX_WORTHS):
            metrics.worth.labels(pool).set(price)
        metrics.potential_savings.set(offered)
        metrics.fleet.measured = True

    def forget(self, gone: set[str]) -> None:
        """Forget deleted jobs, by uid."""
        for uid in gone:
            self._decided.pop(uid, None)
            self._offers.pop(uid, None)


def _offered(job: Job, candidate: Candidate) -> float:
    """Dollars an hour that a candidate would bring; 0 where that is not known, or it brings something else."""
    revision, profile = job.state.revision, job.observed.profile
    if revision is None or profile is None or candidate.throughput is None:
        return 0.0
    rate = None if profile.throughput is None else profile.throughput.value
    brought = potential_savings(revision.cost_per_hour, rate, candidate.cost_per_hour, candidate.throughput.median)
    return max(brought or 0.0, 0.0)


def _state_of(job: Job) -> str:
    if job.state.finished is not None:
        return "Finished"
    if job.stops:
        return "Suspended"
    if job.state.migration is not None:
        return "Migrating"
    revision = job.state.revision
    running = revision is not None and job.revision(revision.revision).all_running(revision.placement.replicas)
    return "Running" if running else "Waiting"


class PhaseTimer:
    """Adds up what a cycle spends in each phase, which it may enter more than once."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time inside for this phase, also where it fails."""
        began = self._clock()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + self._clock() - began

    def take(self) -> dict[str, float]:
        """Seconds of each phase that was entered, and begin anew."""
        seconds, self._seconds = self._seconds, {}
        return seconds
