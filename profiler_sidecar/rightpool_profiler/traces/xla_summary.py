"""What a trace of XLA, of a JAX program, says of the time of its steps: of devices, else of what a CPU stands for.

Where the trace says whose calls make the steps, and holds several, it is the time of whole steps, from the start of one
to the start of a later one; of calls that it was begun and ended between, all that it holds; where it does not say, of
whole runs of the program that takes most; else all that it holds. What the host waits for, and when it prepares work,
XLA does not say: that is idle. Several devices are averaged.
"""

import re
from typing import Final

from rightpool import contract
from rightpool_profiler.traces.account import Account
from rightpool_profiler.traces.devices import Device, Work
from rightpool_profiler.traces.memory import Levels, Owner
from rightpool_profiler.traces.names import plain
from rightpool_profiler.traces.shares import PARTS
from rightpool_profiler.traces.summary import Summary
from rightpool_profiler.traces.sweep import sweep
from rightpool_profiler.traces.xspace import Event

MAX_OPERATIONS: Final = 5_000_000  # 32 bytes each
_PICOSECONDS: Final = 1e12
_MEMORY: Final = {"MemoryAllocation": 1, "MemoryDeallocation": -1}
_LEVEL: Final = ("allocator_name", "bytes_allocated", "allocation_bytes")
_SIGNS: Final = re.compile(r"[^0-9A-Za-z]+")
_PREFIXES: Final = ("jit", "pmap")  # of a function's name in that of the program


class Reading:
    """Takes the events of a trace, and makes the summary of them."""

    def __init__(self) -> None:
        self._work = Work()
        self._functions: set[tuple[str, int]] = set()
        self._calls: int | None = None
        self._levels = Levels()
        self._changes = 0  # of the memory in use

    def add(self, plane: int, plane_name: str, line: int, line_name: str, event: Event) -> None:
        """Raises ValueError where there are more operations than a short trace can have."""
        if event.name == contract.TRACE_MARK:
            function, steps = event.stats.get("function"), event.stats.get("steps")
            if isinstance(function, str) and isinstance(steps, int) and steps > 0 and len(self._functions) < 2:
                self._functions.add((function, steps))
            calls = event.stats.get("calls")
            self._calls = calls if isinstance(calls, int) and calls > 0 else None
            return
        if event.name in _MEMORY:
            self._add_memory(event)
        else:
            self._work.add(plane, plane_name, line, line_name, event)
        if self._work.count + self._changes > MAX_OPERATIONS:
            raise ValueError(f"it holds more than {MAX_OPERATIONS} operations")

    def summary(self) -> Summary:
        """Raises ValueError where the trace holds no work."""
        accelerators, devices = self._work.devices()
        account = Account(_PICOSECONDS)
        windows = []
        for device in devices:
            window, steps = self._window(device)
            if window[1] <= window[0]:
                continue
            windows.append(window)
            swept = sweep(self._work.work(device), window)
            parts = swept.parts(PARTS)
            if not accelerators:
                parts[contract.PART_COMPUTE] += parts.pop(contract.PART_MEMCPY)
            texts = self._work.names.texts
            account.add(window, steps, parts, ((texts[name], share) for name, share in swept.shares.items()))
            for start, time, name, cost in self._work.own(device):
                if window[0] <= start < window[1]:
                    account.operations.add(texts[name], time)
                    account.operations.add_costs(texts[name], time, cost)
        memory = self._levels.within((min(windows)[0], max(end for _, end in windows))) if windows else None
        return account.summary("device" if accelerators else "host", memory)

    def _add_memory(self, event: Event) -> None:
        """What an allocator of XLA has handed out, or got back."""
        owner, used, change = (event.stats.get(name) for name in _LEVEL)
        if isinstance(owner, str) and isinstance(used, int) and isinstance(change, int) and used >= 0:
            self._changes += 1
            self._levels.add(Owner(plain(owner), "host" in owner), event.start, used, change * _MEMORY[event.name])

    def _window(self, device: Device) -> tuple[tuple[int, int], int | None]:
        """The time that counts, and the steps in it."""
        whole = device.extent or (0, 0)
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


def _letters(name: str) -> str:
    """XLA writes signs of a function's name in its own way."""
    return _SIGNS.sub("", name)
