"""The work of devices, out of the events of a trace: which operation ran when, of which run of which program.

A TPU lists its operations on one line of its plane, a GPU on one per stream. On a CPU they are spans of host threads,
told from others by their `hlo_op`.
"""

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from rightpool_profiler.traces import intervals
from rightpool_profiler.traces.xspace import Event

COLLECTIVE: Final = re.compile(
    r"^(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast|send|recv"
    r"|psum|pmean|all_gather|psum_scatter|reduce_scatter|all_to_all|ppermute)\b"
    r"|nccl|rccl|nvshmem|mscclpp|cross_device_reduce",
    re.IGNORECASE,
)
COPY: Final = re.compile(r"^(memcpy|memset|dma)", re.IGNORECASE)
_CONTAINER: Final = re.compile(r"^(while|conditional|call)\b")
_END: Final = "end: "
_MAX_RUNS: Final = 50_000  # of programs, on one device

Span = tuple[int, int, str]  # start and end, of one unit, and name


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program, as the trace names it."""

    name: str
    identity: int | None
    """Tells two of one name apart, where the trace does."""


@dataclass(slots=True)
class Device:
    """The operations of one device."""

    compute: list[Span] = field(default_factory=list)
    communication: list[Span] = field(default_factory=list)
    copy: list[Span] = field(default_factory=list)
    own: list[Span] = field(default_factory=list)
    """Start, time that it takes itself, and name of each operation."""
    runs: dict[tuple[Program, int], int] = field(default_factory=dict)  # (program, run) → start
    busy: dict[Program, int] = field(default_factory=lambda: defaultdict(int))  # program → time

    @property
    def works(self) -> bool:
        return bool(self.compute or self.communication)

    def add(self, start: int, end: int, name: str, collective: bool) -> None:
        spans = self.communication if collective else self.copy if COPY.search(name) else self.compute
        spans.append((start, end, name))

    def begin(self, program: Program, run: int, start: int) -> None:
        key = (program, run)
        self.runs[key] = min(start, self.runs.get(key, start))

    def window(self) -> tuple[int, int] | None:
        """From the start of one step to the start of a later one; None if the trace holds no whole step.

        The first run may have begun before the trace did, so its start is not used where others suffice.
        """
        if not self.busy:
            return self.extent()
        name = max(self.busy, key=lambda one: self.busy[one]).name
        starts = self.starts({name})
        if len(starts) > 3:
            starts = starts[1:]
        return (starts[0], starts[-1]) if len(starts) > 1 else None

    def starts(self, programs: set[str]) -> list[int]:
        """Of the runs of these programs, sorted."""
        return sorted(start for (program, _), start in self.runs.items() if program.name in programs)

    def extent(self) -> tuple[int, int] | None:
        """From the first to the last moment of work."""
        spans = self.compute + self.communication + self.copy
        return (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None


@dataclass(frozen=True, slots=True)
class _Part:
    """What an operation is part of."""

    device: int
    program: Program | None
    run: int | None


_Operation = tuple[int, int, str, _Part, int | None]  # start, end, name, its part, and its identity


class Work:
    """Takes the events of a trace, in any order, and knows the devices at the end."""

    def __init__(self) -> None:
        self.count = 0
        """Operations so far."""
        self._lines: dict[tuple[int, int], list[_Operation]] = defaultdict(list)
        self._parts: dict[_Part, _Part] = {}
        self._names: dict[str, str] = {}
        self._accelerators: dict[int, Device] = {}
        self._ended: dict[int, int] = {}

    def add(self, plane: int, plane_name: str, line: int, line_name: str, event: Event) -> None:
        """plane, line: which of those of the trace, as they have the same names. Raises ValueError where there are more
        runs of programs than a short trace can have."""
        if plane_name.startswith("/device:"):
            device = self._accelerators.setdefault(plane, Device())
            if line_name == "XLA Modules":
                run = event.stats.get("run_id")
                program = Program(event.name.split("(")[0], _number(event.name.partition("(")[2].rstrip(")")))
                device.begin(program, run if isinstance(run, int) else event.start, event.start)
                _check(len(device.runs))
                device.busy[program] += event.end - event.start
            elif line_name == "XLA Ops" or line_name.startswith("Stream"):
                self._operation(plane, line, plane, event)
        elif plane_name == "/host:CPU":
            identity = event.stats.get("_c")
            if event.name.startswith(_END) and isinstance(identity, int):
                # A collective may return at once and go on elsewhere; this marks the moment at which it was really
                # done. Computations have such events too, but theirs are written whenever a thread comes round to
                # them, long after the next operation has used the result.
                if COLLECTIVE.search(event.name.removeprefix(_END)):
                    self._ended[identity] = event.start
                    self.count += 1
            elif "hlo_op" in event.stats:
                ordinal = event.stats.get("device_ordinal", 0)
                self._operation(plane, line, ordinal if isinstance(ordinal, int) else 0, event)

    def devices(self) -> tuple[bool, list[Device]]:
        """Whether they are accelerators, else what a host stands for; and those that work. To be called once."""
        hosts: dict[int, Device] = defaultdict(Device)
        for (plane, _), operations in self._lines.items():
            own = self._accelerators.get(plane)
            for device, found in ((own, operations),) if own is not None else _by_device(hosts, operations):
                self._fill(device, found)
            operations.clear()
        accelerators = [device for device in self._accelerators.values() if device.works]
        return bool(accelerators), accelerators or [device for device in hosts.values() if device.works]

    def _operation(self, plane: int, line: int, device: int, event: Event) -> None:
        program, run, identity = (event.stats.get(name) for name in ("hlo_module", "run_id", "program_id"))
        part = _Part(
            device,
            Program(program, identity if isinstance(identity, int) else None) if isinstance(program, str) else None,
            run if isinstance(run, int) else None,
        )
        collective = COLLECTIVE.search(event.name) or COLLECTIVE.search(str(event.stats.get("hlo_op", "")))
        pair = event.stats.get("_p")
        self.count += 1
        _check(len(self._parts))
        self._lines[plane, line].append(
            (
                event.start,
                event.end,
                self._names.setdefault(event.name, event.name),
                self._parts.setdefault(part, part),
                # Of a collective, by which its end is found; -1 where it has none of its own.
                None if collective is None else pair if isinstance(pair, int) else -1,
            )
        )

    def _fill(self, device: Device, operations: list[_Operation]) -> None:
        """The operations of one line that are of this device."""
        operations.sort(key=lambda one: (one[0], -one[1]))
        for (start, end, name, part, pair), following in itertools.zip_longest(operations, operations[1:]):
            # Those that merely contain others, such as loops, are no work.
            contains = following is not None and following[0] < end and following[1] <= end
            if contains or _CONTAINER.match(name):
                continue
            last = end if pair is None else max(end, self._ended.get(pair, end))
            device.add(start, last, name, pair is not None)
            if part.program is not None and part.run is not None:
                device.begin(part.program, part.run, start)
                device.busy[part.program] += last - start
        for start, time, name, pair, end in _self_times(operations):
            waited = 0 if pair is None else max(0, self._ended.get(pair, end) - end)
            device.own.append((start, time + waited, name))


def _check(runs: int) -> None:
    if runs > _MAX_RUNS:
        raise ValueError(f"more than {_MAX_RUNS} runs of programs")


def _by_device(hosts: dict[int, Device], operations: list[_Operation]) -> list[tuple[Device, list[_Operation]]]:
    """Threads of a pool work for several devices."""
    found: dict[int, list[_Operation]] = defaultdict(list)
    for one in operations:
        found[one[3].device].append(one)
    return [(hosts[device], own) for device, own in found.items()]


def _self_times(operations: list[_Operation]) -> list[tuple[int, int, str, int | None, int]]:
    """Start, time that it does not spend in another one, name, pair and end of each operation of a thread, sorted."""
    left = [end - start for start, end, *_ in operations]
    open_: list[int] = []
    for index, (start, end, *_) in enumerate(operations):
        while open_ and operations[open_[-1]][1] <= start:
            open_.pop()
        if open_:
            left[open_[-1]] -= min(end, operations[open_[-1]][1]) - start
        open_.append(index)
    return [
        (start, max(time, 0), name, pair, end)
        for (start, end, name, _, pair), time in zip(operations, left, strict=True)
    ]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 40 else None


def spans_of(spans: list[Span]) -> intervals.Spans:
    """The time that they cover."""
    return intervals.union((start, end) for start, end, _ in spans)
