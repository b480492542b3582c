"""The memory that a program has in use over the time of a trace: how much at most, and when."""

from dataclasses import dataclass
from typing import Any, Final

from rightpool_profiler.traces.spans import Spans
from rightpool_profiler.traces.sweep import Window

TIMELINE: Final = 24
"""Parts of the time of which the most memory is told, one after the other."""

_MAX_OWNERS: Final = 256


@dataclass(frozen=True, slots=True)
class Memory:
    """Of the device, or the allocator, that has most in use; else of the host."""

    peak: int
    """Bytes in use at most, in the time that was traced."""
    at: float
    """When, as a share of that time."""
    timeline: tuple[int, ...]
    """Bytes in use at most in each of TIMELINE equal parts of it."""

    def to_dict(self) -> dict[str, Any]:
        return {"peak": self.peak, "at": self.at, "timeline": list(self.timeline)}


@dataclass(slots=True)
class _Owner:
    levels: Spans
    """Moment, the same again, and the bytes in use from then on."""
    first: int
    """Moment of the first one."""
    before: int
    """Bytes in use before it."""
    most: int = 0


class Levels:
    """Takes what is allocated and freed, in any order."""

    def __init__(self) -> None:
        self._owners: dict[tuple[bool, str], _Owner] = {}

    def add(self, owner: str, host: bool, moment: int, used: int, change: int) -> None:
        """owner: the device or the allocator. used: its bytes in use after a change by so many. Raises ValueError for
        more owners than there can be, and for numbers that no trace has."""
        found = self._owners.get((not host, owner))
        if found is None:
            if len(self._owners) >= _MAX_OWNERS:
                raise ValueError(f"it holds memory of more than {_MAX_OWNERS} devices")
            found = self._owners[not host, owner] = _Owner(Spans("q"), moment, used - change)
        found.levels.add(moment, moment, used)
        if moment < found.first:
            found.first, found.before = moment, used - change
        found.most = max(found.most, used)

    def within(self, window: Window) -> Memory | None:
        """What a window shows of it; None where nothing was allocated or freed."""
        owner = self._largest()
        if owner is None or window[1] <= window[0]:
            return None
        length, place, level = window[1] - window[0], 0, max(0, owner.before)
        peak, when = level, window[0]
        timeline = [0] * TIMELINE

        def fill(last: int) -> None:
            for part in range(place, last + 1):
                timeline[part] = max(timeline[part], level)

        for moment, _, used in owner.levels:
            if moment >= window[1]:
                break
            if moment > window[0]:
                part = (moment - window[0]) * TIMELINE // length
                fill(part)
                place = part
            level = max(0, used)
            if moment <= window[0] or level > peak:
                peak, when = level, max(moment, window[0])
            timeline[place] = level if moment <= window[0] else max(timeline[place], level)
        fill(TIMELINE - 1)
        return Memory(peak, (when - window[0]) / length, tuple(timeline))

    def _largest(self) -> _Owner | None:
        key = max(self._owners, key=lambda one: (one[0], self._owners[one].most), default=None)
        return None if key is None else self._owners[key]
