"""The tally: decisions, how migrations ended, and what the fleet is doing, as metrics and in the log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final

from rightpool.planning.assess import Assessment
from rightpool.planning.snapshot import JobState
from rightpool.runtime.metrics import FASTER, SLOWER, OperatorMetrics

STATES: Final = ("Waiting", "Running", "Migrating", "Suspended", "Finished")

logger = logging.getLogger(__name__)


class Tally:
    """Remembers each job's last decision, so that the same one counts once."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        self._metrics = metrics
        self._decided: dict[str, tuple[str, str]] = {}

    def decided(self, job: JobState, assessment: Assessment | None) -> None:
        """What was decided about a job in this cycle."""
        if assessment is None:
            return
        decision = assessment.decision
        said = (decision.action.value, str(decision.reason))
        if self._decided.get(job.uid) != said:
            self._decided[job.uid] = said
            self._metrics.decisions.labels(*said).inc()
            logger.info(
                "decided: %s, %s",
                *said,
                extra={"job": str(job.key), "decision": f"d-{job.decisions + 1}", "evidence": decision.message},
            )

    def ended(self, before: JobState, after: JobState) -> None:
        """Migrations that are in the ledger of the one and not yet of the other."""
        known = {entry.id for entry in before.history}
        for entry in after.history:
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

    def measure(self, jobs: Iterable[JobState], pools: int, *, breaker_open: bool) -> None:
        """The fleet as it is now."""
        metrics = self._metrics
        counted: Counter[str] = Counter(dict.fromkeys(STATES, 0))
        phases: Counter[str] = Counter()
        hourly = saved = 0.0
        for job in jobs:
            saved += job.account.saved
            hourly += job.account.cost_per_hour or 0.0
            counted[_state_of(job)] += 1
            if job.migration is not None:
                phases[job.migration.phase.value] += 1
        for name, count in counted.items():
            metrics.jobs.labels(name).set(count)
        metrics.migrating.clear()
        for name, count in phases.items():
            metrics.migrating.labels(name).set(count)
        metrics.pools.set(pools)
        metrics.spent.set(hourly)
        metrics.saved.set(saved)
        metrics.breaker_open.set(breaker_open)
        metrics.fleet.measured = True

    def forget(self, gone: set[str]) -> None:
        """Jobs that do not exist any more, by uid."""
        for uid in gone:
            self._decided.pop(uid, None)


def _state_of(job: JobState) -> str:
    if job.finished is not None:
        return "Finished"
    if job.spec.suspend:
        return "Suspended"
    if job.migration is not None:
        return "Migrating"
    running = job.ref is not None and job.revision(job.ref.revision).running >= job.ref.placement.replicas
    return "Running" if running else "Waiting"
