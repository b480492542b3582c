"""Sends Events, which `kubectl describe` and `kubectl events` show.

Events are best effort: they never delay or fail the operation that they report. They are sent in the background and
dropped when too many are pending. One that the API server could not take is sent again in later cycles, for ten minutes
and under the same name, so that it is there once. A statement that is repeated within an hour is counted in the Event
that was sent: `kubectl` shows when it was first and last so, and how often.

Only the leader sends them. While a renewal of the Lease is late, Events wait. Those that still wait when another
process has led are dropped, whatever they tell of: a process that was stopped for minutes sends none when it continues,
but for those that had passed this check before, one for each thread of the client at most.

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

from rightpool.api.value_object import value_object
from rightpool.api.wording import sentence
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, Unavailable
from rightpool.cluster.resources import EVENTS
from rightpool.contract import MANAGED_BY
from rightpool.reporting.events import Event

REMEMBERED: Final = 20_000
REPEAT_AFTER: Final = 3600.0  # as long as API servers keep Events
COUNT_SECONDS: Final = 300.0  # between two requests that only count
RESEND_SECONDS: Final = 600.0
WAITING_LIMIT: Final = 500

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sent:
    namespace: str
    name: str
    at: float
    """When it was sent."""
    counted_at: float
    count: int = 1


@value_object
class _Pending:
    """An Event that is not sent yet."""

    key: tuple[str, str, str]
    body: dict[str, Any]
    term: int
    """Of the Lease, when what it tells was so."""
    until: float
    """Not sent again after this, by the recorder's clock."""


class EventRecorder:
    """Sends Events, and remembers them to count repetitions."""

    def __init__(
        self,
        client: ClusterClient,
        *,
        leads: Callable[[], bool],
        term: Callable[[], int],
        instance: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """leads: whether this process leads for as long as a request takes; asked right before one is sent.
        term: how often the Lease has changed its holder. While it is equal, no other process has led."""
        self._client = client
        self._leads = leads
        self._term = term
        self._instance = instance[:128]
        self._clock = clock
        self._sent: OrderedDict[tuple[str, str, str], _Sent] = OrderedDict()
        self._waiting = 0
        self._kept: list[_Pending] = []
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
                pending = _Pending(key, self._body(event, namespace, name), self._term(), now + RESEND_SECONDS)
                send, created = partial(self._create, pending), True
            self._waiting += 1
        return self._submit(send) and created

    def resend(self) -> None:
        """Send what could not be sent. Called in each cycle of a leader."""
        with self._lock:
            kept, self._kept = self._kept, []
        for pending in kept:
            self._submit(partial(self._create, pending))

    def _submit(self, send: Callable[[], None]) -> bool:
        try:
            self._client.submit(send)
        except RuntimeError:  # the client is closing
            self._done()
            return False
        return True

    def _create(self, pending: _Pending) -> None:
        kept = False
        try:
            if self._term() != pending.term:
                with self._lock:
                    self._sent.pop(pending.key, None)  # there is nothing to count repetitions in
            elif self._leads():
                self._client.create(EVENTS, pending.body)
            else:
                kept = self._keep(pending)
        except AlreadyExists:
            pass  # an earlier request, whose answer was lost, was carried out
        except Unavailable as error:
            kept = self._keep(pending, error.message)
        except ClusterError as error:
            _log_unsent(pending, error.message)
        finally:
            if not kept:
                self._done()

    def _keep(self, pending: _Pending, problem: str = "a renewal of the Lease is late") -> bool:
        if self._clock() > pending.until:
            _log_unsent(pending, problem)
            return False
        with self._lock:
            self._kept.append(pending)
        return True

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
        now = _now()
        return {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": dict(event.regarding),
            "reason": event.reason,
            "message": sentence(event.note),
            "type": "Warning" if event.warning else "Normal",
            "action": event.action,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": MANAGED_BY},
            "reportingComponent": MANAGED_BY,
            "reportingInstance": self._instance,
        }


def _log_unsent(pending: _Pending, problem: str) -> None:
    logger.info("event not recorded: %s", problem, extra={"reason": pending.body["reason"]})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
