"""Sends Events, which `kubectl describe` and `kubectl events` show.

Events are best effort: they never delay or fail the operation that they report. They are sent in the background and
dropped when too many are pending. A statement that is repeated within an hour is counted in the Event that was sent:
`kubectl` shows when it was first and last so, and how often.

Only the leader sends them. An Event that waits when the Lease is lost is dropped, whatever it tells of: a process that
was stopped for minutes sends none when it continues, but for those that had passed this check before, one for each
thread of the client at most.

They are core/v1 Events. `kubectl describe` sorts by their timestamps, which events.k8s.io/v1 does not let a client set.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import EVENTS
from rightpool.contract import MANAGED_BY
from rightpool.reporting.events import Event

MAX_NOTE: Final = 1024
REMEMBERED: Final = 20_000
REPEAT_AFTER: Final = 3600.0  # as long as API servers keep Events
COUNT_SECONDS: Final = 300.0  # between two requests that only count
WAITING_LIMIT: Final = 500
MERGE_CONTENT: Final = "application/merge-patch+json"

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sent:
    namespace: str
    name: str
    at: float
    """When it was sent."""
    counted_at: float
    count: int = 1


class EventRecorder:
    """Sends Events, and remembers them to count repetitions."""

    def __init__(
        self,
        client: ClusterClient,
        *,
        leads: Callable[[], bool],
        instance: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """leads: whether this process leads for as long as a request takes; asked right before one is sent."""
        self._client = client
        self._leads = leads
        self._instance = instance[:128]
        self._clock = clock
        self._sent: OrderedDict[tuple[str, str, str], _Sent] = OrderedDict()
        self._waiting = 0
        self._lock = threading.Lock()

    def post(self, event: Event) -> bool:
        """Queue an Event; False if it was counted with an earlier one, or dropped."""
        key = (event.regarding.get("uid", ""), event.reason, event.subject or event.note)
        now = self._clock()
        namespace = event.regarding.get("namespace") or "default"
        with self._lock:
            if self._waiting >= WAITING_LIMIT:
                return False
            last = self._sent.get(key)
            if last is not None and now - last.at < REPEAT_AFTER:
                last.count += 1
                if now - last.counted_at < COUNT_SECONDS:
                    return False
                last.counted_at = now
                send, created = partial(self._count, last, last.count, _now()), False
            else:
                name = f"{event.regarding['name'][:200]}.{uuid.uuid4().hex[:16]}"
                self._sent[key] = _Sent(namespace, name, now, now)
                self._sent.move_to_end(key)
                while len(self._sent) > REMEMBERED:
                    self._sent.popitem(last=False)
                send, created = partial(self._create, key, self._body(event, namespace, name)), True
            self._waiting += 1
        try:
            self._client.submit(send)
        except RuntimeError:  # the client is closing
            self._done()
            return False
        return created

    def _create(self, key: tuple[str, str, str], body: dict[str, Any]) -> None:
        try:
            if self._leads():
                self._client.create(EVENTS, body)
            else:
                with self._lock:
                    self._sent.pop(key, None)  # there is nothing to count repetitions in
        except ClusterError as error:
            logger.info("event not recorded: %s", error.message, extra={"reason": body["reason"]})
        finally:
            self._done()

    def _count(self, sent: _Sent, count: int, now: str) -> None:
        body = {"count": count, "lastTimestamp": now}
        try:
            if self._leads():
                path = EVENTS.path(sent.namespace, sent.name)
                self._client.request("PATCH", path, body=body, content=MERGE_CONTENT)
        except ClusterError as error:
            logger.debug("event not counted: %s", error.message)
        finally:
            self._done()

    def _done(self) -> None:
        with self._lock:
            self._waiting -= 1

    def _body(self, event: Event, namespace: str, name: str) -> dict[str, Any]:
        note = event.note if len(event.note) <= MAX_NOTE else event.note[: MAX_NOTE - 1] + "…"
        now = _now()
        return {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": dict(event.regarding),
            "reason": event.reason,
            "message": note,
            "type": "Warning" if event.warning else "Normal",
            "action": event.action,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": MANAGED_BY},
            "reportingComponent": MANAGED_BY,
            "reportingInstance": self._instance,
        }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
