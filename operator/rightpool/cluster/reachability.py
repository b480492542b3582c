"""Whether the API server answers: one line in the log when it stops, and one when it answers again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from rightpool.cluster.client import Body, Hook, Request, Send
from rightpool.cluster.errors import ClusterError, Unreachable

logger = logging.getLogger(__name__)


class Reachability:
    """A hook of all clients of a process. Thread-safe. inner: a hook that it calls, None: none."""

    def __init__(self, inner: Hook | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._inner = inner
        self._clock = clock
        self._lock = threading.Lock()
        self._lost_at: float | None = None

    def __call__(self, request: Request, send: Send) -> Body:
        try:
            answer = send(request) if self._inner is None else self._inner(request, send)
        except Unreachable as error:
            self._lost(error)
            raise
        except ClusterError:
            self._answered()
            raise
        self._answered()
        return answer

    def _lost(self, error: Unreachable) -> None:
        with self._lock:
            if self._lost_at is None:
                self._lost_at = self._clock()
                logger.warning("the API server does not answer: %s", error.message)

    def _answered(self) -> None:
        if self._lost_at is None:  # without the lock: nearly always so
            return
        with self._lock:
            if self._lost_at is not None:
                logger.info("the API server answers again after %.0f s", self._clock() - self._lost_at)
                self._lost_at = None
