"""What the time of a program goes to, added up over its devices: several are averaged by their time."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from rightpool_profiler.traces.memory import Memory
from rightpool_profiler.traces.summary import Named, Summary, TimeByName
from rightpool_profiler.traces.sweep import Share, Window

_LISTED: Final = 10
_COLLECTIVES_LISTED: Final = 8


class Account:
    """Takes one device after the other."""

    def __init__(self, second: float) -> None:
        """second: how many units of time make one."""
        self._second = second
        self._parts: dict[str, float] = defaultdict(float)
        self._shares: dict[str, Share] = {}
        self._total = self._longest = 0
        self._steps: int | None = None
        self.operations = TimeByName(second)
        """What takes the time."""

    def add(
        self, window: Window, steps: int | None, parts: Mapping[str, int], collectives: Iterable[tuple[str, Share]]
    ) -> None:
        """The time of one device: its parts, and that of its collectives by name. Steps and seconds are those of the
        device with the longest time."""
        length = window[1] - window[0]
        self._total += length
        if length > self._longest:
            self._longest, self._steps = length, steps
        for part, time in parts.items():
            self._parts[part] += time
        for name, share in collectives:
            found = self._shares.setdefault(name, Share())
            found.count += share.count
            found.time += share.time
            found.exposed += share.exposed

    def summary(self, on: str, memory: Memory | None = None) -> Summary:
        """Raises ValueError where there is no time."""
        if not self._total:
            raise ValueError("it holds no work of a device, and no operator or operation of a host")
        largest = heapq.nlargest(_COLLECTIVES_LISTED, self._shares.items(), key=lambda item: (item[1].time, item[0]))
        return Summary(
            on,
            self._longest / self._second,
            self._steps or None,
            {part: time / self._total for part, time in self._parts.items()},
            [Named(name, one.count, one.time / self._total, one.exposed / self._total) for name, one in largest],
            self.operations.most(_LISTED, self._total),
            self.operations.by_kind().most(_LISTED, self._total),
            memory,
        )
