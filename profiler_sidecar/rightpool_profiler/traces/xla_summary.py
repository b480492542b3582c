"""What a trace of XLA, of a JAX program, says of the time of its steps: of devices, else of what a CPU stands for.

Where the trace says whose calls make the steps, and holds several, it is the time of whole steps, from the start of one
to the start of a later one; of calls that it was begun and ended between, all that it holds; where it does not say, of
whole runs of the program that takes most; else all that it holds. What the host waits for, and when it prepares work,
XLA does not say: that is idle. Several devices are averaged.
"""

import re
from collections import defaultdict
from typing import Final

from rightpool import contract
from rightpool_profiler.traces import intervals
from rightpool_profiler.traces.devices import Device, Work, spans_of
from rightpool_profiler.traces.shares import measures
from rightpool_profiler.traces.summary import Summary, Tally, plain
from rightpool_profiler.traces.xspace import Event

MAX_OPERATIONS: Final = 300_000  # 650 bytes each in the worst of files
_PICOSECONDS: Final = 1e12
_KIND: Final = re.compile(r"(-start|-done)?(\.\d+)*$")  # what an operation's name has behind its kind
_SIGNS: Final = re.compile(r"[^0-9A-Za-z]+")
_PREFIXES: Final = ("jit", "pmap")  # of a function's name in that of the program


class Reading:
    """Takes the events of a trace, and makes the summary of them."""

    def __init__(self) -> None:
        self._work = Work()
        self._functions: set[tuple[str, int]] = set()
        self._calls: int | None = None

    def add(self, plane: int, plane_name: str, line: int, line_name: str, event: Event) -> None:
        """Raises ValueError where there are more operations than a short trace can have."""
        if event.name == contract.TRACE_MARK:
            function, steps = event.stats.get("function"), event.stats.get("steps")
            if isinstance(function, str) and isinstance(steps, int) and steps > 0 and len(self._functions) < 2:
                self._functions.add((function, steps))
            calls = event.stats.get("calls")
            self._calls = calls if isinstance(calls, int) and calls > 0 else None
            return
        self._work.add(plane, plane_name, line, line_name, event)
        if self._work.count > MAX_OPERATIONS:
            raise ValueError(f"it holds more than {MAX_OPERATIONS} operations")

    def summary(self) -> Summary:
        """To be called once. Raises ValueError where the trace holds no work."""
        accelerators, devices = self._work.devices()
        parts: dict[str, float] = defaultdict(float)
        collectives, operations = Tally(), Tally()
        total = longest = 0
        steps = None
        for device in devices:
            window, made = self._window(device)
            length = window[1] - window[0]
            if length <= 0:
                continue
            total += length
            if length > longest:
                longest, steps = length, made
            for part, time in measures(device, window).items():
                parts[part] += time
            _tell(device, window, collectives, operations)
        if not total:
            raise ValueError("it holds no work of a device and no operation of XLA")
        if not accelerators:
            parts[contract.PART_COMPUTE] += parts.pop(contract.PART_MEMCPY)
        on = "device" if accelerators else "host"
        return Summary.of(on, longest / _PICOSECONDS, total, steps, parts, collectives, operations)

    def _window(self, device: Device) -> tuple[tuple[int, int], int | None]:
        """The time that counts, and the steps in it."""
        whole = device.extent() or (0, 0)
        function, each = next(iter(self._functions)) if len(self._functions) == 1 else ("", 0)
        if self._calls is not None and each:
            return whole, self._calls * each
        wanted = {_letters(prefix + function) for prefix in _PREFIXES}
        programs = {program for program, _ in device.runs if each and _letters(program.name) in wanted}
        if not programs:
            return device.window() or whole, None
        # The first run may have begun before the trace did.
        starts = device.starts({program.name for program in programs})[1:]
        if len(starts) < 2:
            return whole, None
        # Two programs of one name are two functions, or one with two shapes: which, the trace does not say.
        return (starts[0], starts[-1]), (len(starts) - 1) * each if len(programs) == 1 else None


def _tell(device: Device, window: tuple[int, int], collectives: Tally, operations: Tally) -> None:
    """What takes the time of one device."""
    kinds = (
        (max(start, window[0]), min(end, window[1]), plain(_KIND.sub("", name)))
        for start, end, name in device.communication
    )
    computing = intervals.clip(spans_of(device.compute), *window)
    collectives.add_exposed([span for span in kinds if span[0] < span[1]], computing)
    for start, time, name in device.own:
        if window[0] <= start < window[1]:
            operations.add(plain(name), time)


def _letters(name: str) -> str:
    """XLA writes signs of a function's name in its own way."""
    return _SIGNS.sub("", name)
