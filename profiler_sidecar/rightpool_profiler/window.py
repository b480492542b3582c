"""The recent values of one quantity, so that a scrape reports an interval and not its last moment."""

from collections import deque
from typing import Final

_MAX_VALUES: Final = 512


class Window:
    """Values of the last `seconds`."""

    __slots__ = ("_seconds", "_values")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._values: deque[tuple[float, float]] = deque(maxlen=_MAX_VALUES)

    def add(self, now: float, value: float) -> None:
        self._values.append((now, value))

    def _recent(self, now: float) -> list[float]:
        while self._values and self._values[0][0] < now - self._seconds:
            self._values.popleft()
        return [value for _, value in self._values]

    def mean(self, now: float) -> float | None:
        """The average; None if nothing was added lately."""
        values = self._recent(now)
        return sum(values) / len(values) if values else None

    def peak(self, now: float) -> float | None:
        """The largest; None if nothing was added lately."""
        return max(self._recent(now), default=None)
