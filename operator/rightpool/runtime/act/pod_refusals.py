"""Why pods of a child can't be made: only the Events of the child say so, which nobody watches.

Whoever may write Events in the job's namespace can forge them. They say why pods are missing that are missing, so that
nothing but the job's own message depends on them; how many there are, and how long, costs the operator nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import EVENTS
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import AskWhyUnmade
from rightpool.runtime.observe.facts import meta
from rightpool.runtime.observe.store import Store

LATE_SECONDS: Final = 10.0
"""Until pods are missed. Kubernetes makes those of a Job within a second or so."""
AGAIN_SECONDS: Final = 60.0  # until Events are read again while pods are missing
EVENTS_READ: Final = 20
"""At most. A Job has fewer: Kubernetes adds up those that are alike."""
LONGEST_WORDS: Final = 1024
"""Characters, as long as an Event's words may be."""
REQUESTS_PER_CYCLE: Final = 10
"""Others are asked in the next one: where a whole fleet starts, pods come by themselves meanwhile."""


@dataclass(frozen=True, slots=True)
class _Known:
    revision: int
    words: str | None
    due: float
    """When Events are to be read again, on the clock of the executor."""


class PodRefusals:
    """Thread-safe where those of one job are used in one thread at a time."""

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
