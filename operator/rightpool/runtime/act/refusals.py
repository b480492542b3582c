"""What the API server has refused: a job's child, the pods of that, or its status; and how long it is not asked again.

Why pods can't be made only the Events of the child say, which nobody watches. Whoever may write Events in the job's
namespace can forge them. They say why pods are missing that are missing, so that nothing but the job's own message
depends on them; how many there are, and how long, costs the operator nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from rightpool.api.conditions import Reason
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import UNDECLARED
from rightpool.cluster.resources import EVENTS
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal
from rightpool.planning.moves.commands import AskWhyUnmade
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.observe.facts import meta
from rightpool.runtime.observe.store import Store

REFUSAL_SECONDS: Final = 60.0  # between attempts to create a rejected child: quotas and admission policies may change
# After which one is sent again: the definition may have been replaced.
REFUSED_SECONDS: Final = 60.0
OLDER_DEFINITION: Final = "the definition of ProfiledJobs in the cluster is older than the operator"

LATE_SECONDS: Final = 10.0
"""Until pods are missed. Kubernetes makes those of a Job within a second or so."""
AGAIN_SECONDS: Final = 60.0  # until Events are read again while pods are missing
EVENTS_READ: Final = 20
"""At most. A Job has fewer: Kubernetes adds up those that are alike."""
LONGEST_WORDS: Final = 1024
"""Characters, as long as an Event's words may be."""
REQUESTS_PER_CYCLE: Final = 10
"""Others are asked in the next one: where a whole fleet starts, pods come by themselves meanwhile."""

logger = logging.getLogger(__name__)


class Refusals:
    """Why children can't be created: the refusal of each job, until its spec changes or a child is created.

    Thread-safe where those of one job are used in one thread at a time.
    """

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


class RefusedWrites:
    """Statuses that were refused for what they hold: the answer to the same would be the same. By job; another version
    of the object is another status."""

    def __init__(self) -> None:
        self._refused: dict[str, tuple[str, float]] = {}

    def waits(self, stored: StoredJob, now: float) -> bool:
        """Whether a status of this object was refused a moment ago."""
        version, until = self._refused.get(stored.job.uid, ("", 0.0))
        return version == stored.resource_version and now < until

    def refuse(self, stored: StoredJob, message: str, now: float) -> str:
        """Note it; what to say of it. message: the API server's."""
        self._refused[stored.job.uid] = (stored.resource_version, now + REFUSED_SECONDS)
        if UNDECLARED in message:
            field = message[: message.index(UNDECLARED)].rstrip(": ").rpartition(".")[2]
            return f"{OLDER_DEFINITION} and lacks {field}, so that nothing is done: apply the chart's"
        return f"the status can't be written, and nothing is done before it is: {message}"

    def forget(self, uids: Iterable[str]) -> None:
        """These were written, or are gone."""
        for uid in uids:
            self._refused.pop(uid, None)


@dataclass(frozen=True, slots=True)
class _Known:
    revision: int
    words: str | None
    due: float
    """When Events are to be read again, on the clock of the executor."""


class PodRefusals:
    """Why pods of a child can't be made. Thread-safe as Refusals."""

    def __init__(self, client: ClusterClient, store: Store, clock: Callable[[], float]) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._known: dict[str, _Known] = {}  # by uid of the ProfiledJob
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        """A new cycle."""
        with self._lock:
            self._left = REQUESTS_PER_CYCLE

    def words(self, job: Job) -> str | None:
        """Why pods of the job's current Revision can't be made; None where nothing is known to be in the way."""
        known, revision = self._known.get(job.uid), job.state.revision
        return None if known is None or revision is None or known.revision != revision.revision else known.words

    def needed(self, job: Job, command: AskWhyUnmade) -> bool:
        """Whether Events are to be read now. Sends no request."""
        known, now = self._known.get(job.uid), self._clock()
        if known is None or known.revision != command.revision:
            self._known[job.uid] = _Known(command.revision, None, now + LATE_SECONDS)
            return False
        return now >= known.due and self._left > 0

    def ask(self, job: Job, command: AskWhyUnmade) -> bool:
        """Read the newest Event, unless other jobs have used up this cycle's requests meanwhile. Whether it was."""
        child = self._store.child(job.key, job.uid, command.revision)
        with self._lock:
            if child is None or self._left <= 0:
                return False
            self._left -= 1
        self._known[job.uid] = _Known(command.revision, self.words(job), self._clock() + AGAIN_SECONDS)
        chosen = f"involvedObject.uid={child.uid},reason=FailedCreate"
        events = self._client.page(EVENTS, child.namespace, fields=chosen, limit=EVENTS_READ).items
        newest = max(events, key=_last_seen, default=None)
        message = "" if newest is None else str(newest.get("message") or "")
        words = message.removeprefix("Error creating: ")[:LONGEST_WORDS] or None
        self._known[job.uid] = _Known(command.revision, words, self._clock() + AGAIN_SECONDS)
        self._store.wake()
        return True

    def forget(self, uids: set[str]) -> None:
        """Forget deleted jobs."""
        for uid in uids:
            self._known.pop(uid, None)


def _last_seen(event: dict[str, Any]) -> str:
    """RFC 3339, which sorts as text."""
    series = (event.get("series") or {}).get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or meta(event).get("creationTimestamp"))
