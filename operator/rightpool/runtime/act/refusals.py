"""Why children can't be created: the refusal of each job, until its spec changes or a child is created."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from rightpool.api.conditions import Reason
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal
from rightpool.runtime.observe.store import Store

REFUSAL_SECONDS: Final = 60.0  # between attempts to create a rejected child: quotas and admission policies may change

logger = logging.getLogger(__name__)


class Refusals:
    """Thread-safe where those of one job are used in one thread at a time."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._refusals: dict[str, ChildRefusal] = {}  # by uid of the ProfiledJob

    def current(self, job: Job) -> ChildRefusal | None:
        """Why the job's current Revision can't be created; None if it can."""
        refusal = self._refusals.get(job.uid)
        return refusal if refusal is not None and refusal.generation == job.generation else None

    def recent(self, job: Job, revision: int, seconds: float = REFUSAL_SECONDS) -> bool:
        """Whether this Revision was refused so lately that it is not tried again."""
        refusal = self.current(job)
        return refusal is not None and refusal.revision == revision and self._clock() - refusal.at < seconds

    def add(self, job: Job, revision: int, reason: Reason, message: str) -> None:
        """Remember it, and have it reported where it is new."""
        known = self._refusals.get(job.uid)
        self._refusals[job.uid] = ChildRefusal(revision, job.generation, reason, message, self._clock())
        if known is None or known.message != message:
            logger.info("%s: %s", reason.value, message, extra={"job": str(job.key)})
            self._store.wake()

    def discard(self, uid: str) -> None:
        """Forget that of this ProfiledJob."""
        self._refusals.pop(uid, None)
