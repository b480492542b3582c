"""events.k8s.io/v1 Events: what happened to an object, for `kubectl describe`.

An Event is a courtesy: it never delays or fails what it tells about. It is sent in the background, dropped when too
many are waiting, and not repeated while an equal one is recent.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import EVENTS
from rightpool.contract import MANAGED_BY

MAX_NOTE: Final = 1024
REMEMBERED: Final = 20_000
REPEAT_AFTER: Final = 600.0
WAITING_LIMIT: Final = 500

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """regarding: apiVersion, kind, name, namespace, uid. reason: as in conditions. action: a verb."""

    regarding: Mapping[str, str]
    reason: str
    action: str
    note: str
    warning: bool = False


class EventRecorder:
    """Sends Events; remembers what was sent."""

    def __init__(self, client: ClusterClient, *, instance: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._instance = instance[:128]
        self._clock = clock
        self._sent: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._waiting = 0
        self._lock = threading.Lock()

    def post(self, event: Event) -> bool:
        """Whether it will be sent."""
        key = (event.regarding.get("uid", ""), event.reason, event.note)
        now = self._clock()
        with self._lock:
            last = self._sent.get(key)
            if last is not None and now - last < REPEAT_AFTER:
                return False
            if self._waiting >= WAITING_LIMIT:
                return False
            self._sent[key] = now
            self._sent.move_to_end(key)
            while len(self._sent) > REMEMBERED:
                self._sent.popitem(last=False)
            self._waiting += 1
        try:
            self._client.submit(self._send, event)
        except RuntimeError:  # the client is closing
            self._done()
            return False
        return True

    def _send(self, event: Event) -> None:
        try:
            self._client.create(EVENTS, self._body(event))
        except ClusterError as error:
            logger.info("event not recorded: %s", error.message, extra={"reason": event.reason})
        finally:
            self._done()

    def _done(self) -> None:
        with self._lock:
            self._waiting -= 1

    def _body(self, event: Event) -> dict[str, Any]:
        namespace = event.regarding.get("namespace") or "default"
        note = event.note if len(event.note) <= MAX_NOTE else event.note[: MAX_NOTE - 1] + "…"
        return {
            "metadata": {"name": f"{event.regarding['name'][:200]}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
            "eventTime": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "reportingController": MANAGED_BY,
            "reportingInstance": self._instance,
            "action": event.action,
            "reason": event.reason,
            "regarding": dict(event.regarding),
            "note": note,
            "type": "Warning" if event.warning else "Normal",
        }
