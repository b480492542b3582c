"""How long the processes of a pod wait for their data, each for itself."""

from typing import Final

from rightpool_profiler.window import Window

_STEPS: Final = 10.0  # a share holds for as long as this many of the steps that it was measured over
_SHORTEST: Final = 30.0  # seconds, at least
_LONGEST: Final = 600.0  # seconds, at most


class Inputs:
    """Shares of the step time that were spent waiting for data, averaged over the interval.

    Where a step takes longer than the interval, the share of the last one holds on: it is no less true for that.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._windows: dict[tuple[int, int], tuple[Window, Window]] = {}
        self._last: dict[tuple[int, int], tuple[float, float, float]] = {}  # when, seconds waited, seconds stepped

    def add(self, process: tuple[int, int], waited: float, stepped: float, now: float) -> None:
        """`process` ended steps that took `stepped` seconds, of which it waited `waited` for data."""
        if process not in self._windows:
            self._windows[process] = Window(self._interval), Window(self._interval)
        for window, seconds in zip(self._windows[process], (waited, stepped), strict=True):
            window.add(now, seconds)
        self._last[process] = now, waited, stepped

    def forget(self, process: tuple[int, int]) -> None:
        """The process has ended."""
        self._windows.pop(process, None)
        self._last.pop(process, None)

    def share(self, process: tuple[int, int], now: float) -> float | None:
        """Share of the step, 0–1; None where the process waits for nothing that is measured, or for too long."""
        if process not in self._last:
            return None
        waited, stepped = (window.mean(now) for window in self._windows[process])
        if waited is None or not stepped:
            at, waited, stepped = self._last[process]
            if not stepped or now - at > min(max(_STEPS * stepped, self._interval, _SHORTEST), _LONGEST):
                return None
        return min(1.0, waited / stepped)
