"""The watchdog: whether the operator makes progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

STALL_INTERVALS: Final = 12  # single cycles may be slow
STALL_SECONDS: Final = 120.0
START_SECONDS: Final = 60.0  # for the first page of the first list, or the error that comes instead
# A request waits for its connection and for its answer, and before that for as long as an earlier answer has said.
TIMEOUTS: Final = 4


class Health:
    """Progress is recorded by the working threads and read by the probes.

    interval: of the cycles, seconds. api_timeout: of a request to the API server, seconds: one that fails is progress,
    so that nothing is restarted because the API server is away.
    """

    def __init__(self, interval: float, api_timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start_limit = max(START_SECONDS, TIMEOUTS * api_timeout)
        self._limit = max(STALL_SECONDS, STALL_INTERVALS * interval, self._start_limit)
        self._lock = threading.Lock()
        self._started_at = clock()
        self._progress_at: float | None = None

    def progress(self) -> None:
        """Record a page of a list, a batch of jobs or a round of the planner: a leader's cycle, a follower's wait, an
        attempt that failed."""
        with self._lock:
            self._progress_at = self._clock()

    def problem(self) -> str | None:
        """Why the process has to be restarted; None if it has not."""
        with self._lock:
            if self._progress_at is None:
                waited = self._clock() - self._started_at
                return f"the planner has not begun after {waited:.0f} s" if waited > self._start_limit else None
            age = self._clock() - self._progress_at
            return f"the planner has made no progress for {age:.0f} s" if age > self._limit else None
