"""The watchdog: is the operator doing its work, as opposed to merely being there?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

STALL_INTERVALS: Final = 12  # a cycle may be slow; a dozen of them in a row without progress is a stall
STALL_SECONDS: Final = 120.0
START_SECONDS: Final = 600.0  # the first complete list of a large fleet, on a slow API server


class Health:
    """Marks are set by the threads that do the work, and read by the probe."""

    def __init__(self, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limit = max(STALL_SECONDS, STALL_INTERVALS * interval)
        self._lock = threading.Lock()
        self._started_at = clock()
        self._progress_at: float | None = None
        self._fatal: str | None = None

    def progress(self) -> None:
        """The planner came round: as leader with a cycle, as follower or without an API server with the attempt."""
        with self._lock:
            self._progress_at = self._clock()

    def fatal(self, message: str) -> None:
        """Something that only a restart can repair."""
        with self._lock:
            self._fatal = message

    @property
    def age(self) -> float | None:
        """Seconds since the planner last came round; None before the first time."""
        with self._lock:
            return None if self._progress_at is None else self._clock() - self._progress_at

    def problem(self) -> str | None:
        """Why the process should be restarted; None where it need not be."""
        with self._lock:
            if self._fatal is not None:
                return self._fatal
            if self._progress_at is None:
                waited = self._clock() - self._started_at
                return f"the planner has not begun after {waited:.0f} s" if waited > START_SECONDS else None
            age = self._clock() - self._progress_at
            return f"the planner has made no progress for {age:.0f} s" if age > self._limit else None
