"""The API server's watch stream of the kinds that a campaign checks: one list, then watches.

A watch continues from the last resource version, so that no event is missed while the server is unavailable. If the
server no longer has that version, a new list shows which objects are gone.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from devcluster.api import Api
from devcluster.watch import Watch
from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cluster.resources import PODS, PROFILED_JOBS, SERVICES
from rightpool.contract import LABEL_JOB
from tests.patience import PATIENCE

KINDS: Final = (PROFILED_JOBS, JOBS, PODS, SERVICES)
WATCH_SECONDS: Final = 15
RETRY_SECONDS: Final = 0.2

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event. kind: ADDED, MODIFIED or DELETED. at: monotonic seconds of arrival."""

    resource: Resource
    kind: str
    body: Mapping[str, Any]
    at: float
    listed: bool = False
    """Whether a list told it, so that states in between may have been missed."""


class Stream:
    """One watch for each kind, and for others that not every cluster has; `take` returns their events."""

    def __init__(self, kubeconfig: Path, *others: Resource) -> None:
        api = Api(kubeconfig)
        self._queue: queue.SimpleQueue[StreamEvent] = queue.SimpleQueue()
        self._kinds = [_Kind(api, resource, self._queue) for resource in (*KINDS, *others)]
        for kind in self._kinds:
            kind.watch.start()
        for kind in self._kinds:
            kind.listed.wait(PATIENCE)

    @property
    def relists(self) -> int:
        """How often the server had forgotten where a watch was, so that events may have been missed."""
        return sum(kind.relists for kind in self._kinds)

    def stop(self) -> None:
        """Threads end with their current watch."""
        for kind in self._kinds:
            kind.watch.stop()

    def take(self) -> list[StreamEvent]:
        """All events since the last call."""
        seen = []
        while True:
            try:
                seen.append(self._queue.get_nowait())
            except queue.Empty:
                return seen


class _Kind:
    """The objects of one kind, by uid."""

    def __init__(self, api: Api, resource: Resource, events: queue.SimpleQueue[StreamEvent]) -> None:
        self._resource = resource
        self._events = events
        self._known: dict[str, Body] = {}
        self.listed = threading.Event()
        self.relists = 0
        self.watch: Watch[Body] = Watch(
            api,
            resource.path(),
            reduce=lambda body: body,
            replaced=self._replaced,
            changed=self._changed,
            seconds=WATCH_SECONDS,
            backoff=(RETRY_SECONDS,),
            # A Job loses our label when it is let go of, and is still there.
            **({} if resource in (PROFILED_JOBS, JOBS) else {"labelSelector": LABEL_JOB}),
        )

    def _replaced(self, bodies: list[Body]) -> None:
        listed = {body["metadata"]["uid"] for body in bodies}
        for uid in self._known.keys() - listed:
            self._changed(self._known[uid], False, listed=True)
        for body in bodies:
            self._changed(body, True, listed=True)
        self.relists += self.listed.is_set()
        self.listed.set()

    def _changed(self, body: Body, exists: bool, *, listed: bool = False) -> None:
        uid = body["metadata"]["uid"]
        kind = "DELETED" if not exists else "MODIFIED" if uid in self._known else "ADDED"
        if exists:
            self._known[uid] = body
        else:
            self._known.pop(uid, None)
        self._events.put(StreamEvent(self._resource, kind, body, time.monotonic(), listed))
