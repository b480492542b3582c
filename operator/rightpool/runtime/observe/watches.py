"""Tracks which watches are open. The store is up to date only while all of them are.

A watch counts as open from its acceptance by the API server until its connection closes, and for a short grace period,
because the server ends each one every few minutes and kopf opens a new one at once. A watch that is not open is either
requested again, or abandoned; only a restart repairs an abandoned watch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from rightpool.api.kubernetes import Resource

GRACE_SECONDS: Final = 15.0  # between two connections of one watch
ABANDONED_SECONDS: Final = 45.0  # more than any pause between two attempts
STREAM_SECONDS: Final = 420.0  # more than the server and the client ever leave one connection open


class Stream(Protocol):
    """The connection of a watch."""

    @property
    def closed(self) -> bool: ...


@dataclass(slots=True)
class _Watch:
    name: str
    tried_at: float
    """When it was last requested."""
    pending: int = 0
    """Requests without a response yet."""
    stream: Stream | None = None
    """The connection, as long as it is not known to be closed."""
    opened_at: float = 0.0
    open_at: float | None = None
    """When it was last seen open."""
    status: int | None = None
    """HTTP status of the last response if it was an error."""

    def update(self, now: float) -> None:
        """Check whether the connection is still open."""
        if self.stream is None:
            return
        if self.stream.closed or now - self.opened_at > STREAM_SECONDS:
            self.stream = None
            self.tried_at = max(self.tried_at, now)
        else:
            self.open_at = now


class Watches:
    """Thread-safe: the event loop reports requests, and other threads ask for missing watches."""

    def __init__(
        self,
        resources: Iterable[Resource],
        namespaces: Sequence[str] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._begun = False
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._by_path = {
            resource.path(namespace): _Watch(_name(resource, namespace), 0.0)
            for resource in resources
            for namespace in (self._namespaces if resource.namespaced else (None,))
        }

    def turn_off(self, resources: Collection[Resource]) -> None:
        """Expect no watches of these."""
        with self._lock:
            for resource in resources:
                for namespace in self._namespaces if resource.namespaced else (None,):
                    self._by_path.pop(resource.path(namespace), None)

    def begin(self) -> None:
        """Expect requests for every watch from now on."""
        with self._lock:
            self._begun = True
            for watch in self._by_path.values():
                watch.tried_at = self._clock()

    def asked(self, path: str) -> None:
        """Report a request: a list, a watch, or any other one, such as for discovery before all watches."""
        with self._lock:
            for watch in self._about(path):
                watch.tried_at = self._clock()
            if path in self._by_path:
                self._by_path[path].pending += 1

    def answered(self, path: str, stream: Stream | None, *, pause: float = 0.0, status: int | None = None) -> None:
        """Report the end of a request.

        `stream` is the connection of an accepted watch, `pause` the seconds of Retry-After, `status` the HTTP status of
        an error.
        """
        with self._lock:
            now = self._clock()
            for watch in self._about(path):
                watch.tried_at = now + pause
            if path not in self._by_path:
                return
            watch = self._by_path[path]
            watch.pending = max(0, watch.pending - 1)
            watch.status = status
            if stream is not None:
                watch.stream, watch.opened_at, watch.open_at = stream, now, now

    def missing(self) -> tuple[str, ...]:
        """The watches that are not open."""
        with self._lock:
            now = self._clock()
            for watch in self._by_path.values():
                watch.update(now)
            return tuple(
                watch.name
                for watch in self._by_path.values()
                if watch.open_at is None or now - watch.open_at > GRACE_SECONDS
            )

    def problem(self) -> str | None:
        """A message that names the watches that are not open, with the HTTP status of the last error."""
        missing = self.missing()
        with self._lock:
            status = {watch.name: watch.status for watch in self._by_path.values()}
        names = [f"{name} (HTTP {status[name]})" if status[name] else name for name in missing]
        return f"not watched: {', '.join(names)}" if names else None

    def abandoned(self) -> str | None:
        """A message that names the watches that are not open and not requested again; None if there are none."""
        missing = self.missing()
        with self._lock:
            now = self._clock()
            names = [
                watch.name
                for watch in self._by_path.values()
                if watch.name in missing and not watch.pending and now - watch.tried_at > ABANDONED_SECONDS
            ]
        if not names or not self._begun:
            return None
        return f"nothing has asked for a watch of {', '.join(names)} for {ABANDONED_SECONDS:.0f} s"

    def _about(self, path: str) -> Iterable[_Watch]:
        return (self._by_path[path],) if path in self._by_path else self._by_path.values()


def _name(resource: Resource, namespace: str | None) -> str:
    full = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    return f"{full} in {namespace}" if namespace else full
