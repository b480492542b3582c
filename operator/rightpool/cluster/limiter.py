"""A token bucket that limits requests to the API server."""

import threading
import time
from collections.abc import Callable


class RateLimiter:
    """At most `burst` requests at once and `qps` a second in the long run, over all threads.

    A waiting caller has already taken its token, so that callers are served in their order of arrival.
    """

    def __init__(
        self,
        qps: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._clock = clock
        self._sleep = sleep
        self._filled_at = clock()
        self._blocked_until = 0.0
        self._lock = threading.Lock()

    def acquire(self) -> float:
        """Wait for a token; the seconds waited."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
            self._filled_at = now
            self._tokens -= 1.0
            wait = max(0.0, -self._tokens / self._qps, self._blocked_until - now)
        if wait > 0:
            self._sleep(wait)
        return wait

    def block(self, seconds: float) -> None:
        """Start no request for this long, as the server asked (Retry-After)."""
        with self._lock:
            self._blocked_until = max(self._blocked_until, self._clock() + seconds)
