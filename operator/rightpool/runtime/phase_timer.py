"""How long each phase of a cycle takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class PhaseTimer:
    """Adds up what a cycle spends in each phase, which it may enter more than once."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time inside for this phase, also where it fails."""
        began = self._clock()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + self._clock() - began

    def take(self) -> dict[str, float]:
        """Seconds of each phase that was entered, and begin anew."""
        seconds, self._seconds = self._seconds, {}
        return seconds
