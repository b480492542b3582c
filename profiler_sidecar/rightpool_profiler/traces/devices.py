"""The work of devices, out of the events of a trace: which operation ran when, of which run of which program.

A TPU lists its operations on one line of its plane, a GPU on one per stream. On a CPU they are spans of host threads,
told from others by their `hlo_op`.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rightpool_profiler.traces import sweep
from rightpool_profiler.traces.costs import Cost
from rightpool_profiler.traces.names import Names
from rightpool_profiler.traces.nesting import self_times
from rightpool_profiler.traces.spans import Spans
from rightpool_profiler.traces.sweep import Window, Working
from rightpool_profiler.traces.xspace import BYTES, FLOPS, Event, Value

COLLECTIVE: Final = re.compile(
    r"^(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast|send|recv"
    r"|psum|pmean|all_gather|psum_scatter|reduce_scatter|all_to_all|ppermute)\b"
    r"|nccl|rccl|nvshmem|mscclpp|cross_device_reduce",
    re.IGNORECASE,
)
COPY: Final = re.compile(r"^(memcpy|memset|dma)", re.IGNORECASE)
_CONTAINER: Final = re.compile(r"^(while|conditional|call)\b")
_KIND: Final = re.compile(r"(-start|-done)?(\.\d+)*$")  # what an operation's name has behind its kind
_END: Final = "end: "
_MAX_RUNS: Final = 50_000  # of programs, on one device
_MAX_LANES: Final = 4096
_NONE: Final = -1
_AFTER: Final = (2**63 - 1, 2**63 - 1)  # what follows the last operation


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program, as the trace names it."""

    name: str
    """As its compiler made it, such as jit_step."""
    identity: int | None
    """Tells two of one name apart, where the trace does."""


@dataclass(frozen=True, slots=True)
class _Label:
    """What is the same of all executions of an operation."""

    name: int
    kind: int
    """Of work, as in `sweep`."""
    collective: int
    """Number of the name without what tells collectives of one kind apart; -1 where it is none."""
    container: bool
    cost: Cost
    """Of one execution."""


@dataclass(slots=True)
class Device:
    """The operations of one device."""

    lanes: list[Spans] = field(default_factory=list)
    """With each: the label, the part, and the pair by which the end of a collective is found."""
    runs: dict[tuple[Program, int], int] = field(default_factory=dict)
    """When each run began, by program and number of the run."""
    busy: dict[Program, int] = field(default_factory=lambda: defaultdict(int))
    """How long operations of each program took, added."""
    extent: Window | None = None
    """From the first to the last moment of work."""
    works: bool = False
    """Whether it computes or communicates."""

    def begin(self, program: Program, run: int, start: int) -> None:
        key = (program, run)
        self.runs[key] = min(start, self.runs.get(key, start))
        if len(self.runs) > _MAX_RUNS:
            raise ValueError(f"more than {_MAX_RUNS} runs of programs")

    def window(self) -> Window | None:
        """From the start of one step to the start of a later one; None if the trace holds no whole step.

        The first run may have begun before the trace did, so its start is not used where others suffice.
        """
        if not self.busy:
            return self.extent
        name = max(self.busy, key=lambda one: self.busy[one]).name
        starts = self.starts({name})
        if len(starts) > 3:
            starts = starts[1:]
        return (starts[0], starts[-1]) if len(starts) > 1 else None

    def starts(self, programs: set[str]) -> list[int]:
        """Of the runs of these programs, sorted."""
        return sorted(start for (program, _), start in self.runs.items() if program.name in programs)


_Part = tuple[Program | None, int | None]  # and the run


class Work:
    """Takes the events of a trace, in any order, and knows the devices at the end."""

    def __init__(self) -> None:
        self.names = Names()
        self.count = 0
        """Operations so far."""
        self._labels: list[_Label] = []
        self._label_numbers: dict[tuple[int, bool, Cost], int] = {}
        self._parts: list[_Part] = []
        self._part_numbers: dict[_Part, int] = {}
        self._lanes: dict[tuple[int, int, int], Spans] = {}  # by plane, line and device
        self._accelerators: dict[int, Device] = {}
        self._ended: dict[int, int] = {}

    def add(self, plane: int, plane_name: str, line: int, line_name: str, event: Event) -> None:
        """plane, line: which of those of the trace, as they have the same names. Raises ValueError where there are more
        runs of programs, names or threads than a short trace can have."""
        if plane_name.startswith("/device:"):
            device = self._accelerators.setdefault(plane, Device())
            if line_name == "XLA Modules":
                run = event.stats.get("run_id")
                program = Program(event.name.split("(")[0], _number(event.name.partition("(")[2].rstrip(")")))
                device.begin(program, run if isinstance(run, int) else event.start, event.start)
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
        """Whether they are accelerators, else what a host stands for; and those that work."""
        hosts: dict[int, Device] = defaultdict(Device)
        for (plane, _, number), spans in self._lanes.items():
            device = self._accelerators.get(plane) or hosts[number]
            device.lanes.append(spans)
            self._look(device, spans)
        accelerators = [device for device in self._accelerators.values() if device.works]
        return bool(accelerators), accelerators or [device for device in hosts.values() if device.works]

    def work(self, device: Device) -> list[Iterator[Working]]:
        """What `sweep` wants of a device. Its numbers are those of names of collectives."""
        return [
            ((start, end, label.kind, label.collective) for start, end, label, _ in self._leaves(spans))
            for spans in device.lanes
        ]

    def own(self, device: Device) -> Iterator[tuple[int, int, int, Cost]]:
        """Start, time that it takes itself, number of the name, and cost of each operation."""
        for spans in device.lanes:
            for (start, end, label, _, pair), time in self_times(spans):
                about = self._labels[label]
                waited = self._end(about, pair, end) - end
                yield start, time + waited, about.name, about.cost

    def _operation(self, plane: int, line: int, device: int, event: Event) -> None:
        program, run, identity = (event.stats.get(name) for name in ("hlo_module", "run_id", "program_id"))
        part = (
            Program(program, identity if isinstance(identity, int) else None) if isinstance(program, str) else None,
            run if isinstance(run, int) else None,
        )
        pair = event.stats.get("_p")
        self.count += 1
        spans = self._lanes.get((plane, line, device))
        if spans is None:
            if len(self._lanes) >= _MAX_LANES:
                raise ValueError(f"it holds more than {_MAX_LANES} threads of devices")
            spans = self._lanes[plane, line, device] = Spans("iiq")
        own = pair if isinstance(pair, int) else _NONE
        spans.add(event.start, event.end, self._label(event), self._part(part), own)

    def _label(self, event: Event) -> int:
        hlo = event.stats.get("hlo_op")
        collective = bool(COLLECTIVE.search(event.name)) or (isinstance(hlo, str) and bool(COLLECTIVE.search(hlo)))
        cost = _cost(event.stats.get(FLOPS)), _cost(event.stats.get(BYTES))
        key = (self.names.number(event.name), collective, cost)
        number = self._label_numbers.get(key)
        if number is None:
            kind = sweep.COMMUNICATION if collective else sweep.COPY if COPY.search(event.name) else sweep.COMPUTE
            common = self.names.number(_KIND.sub("", event.name)) if collective else _NONE
            number = self._label_numbers[key] = len(self._labels)
            self._labels.append(_Label(key[0], kind, common, bool(_CONTAINER.match(event.name)), cost))
        return number

    def _part(self, part: _Part) -> int:
        number = self._part_numbers.get(part)
        if number is None:
            if len(self._parts) >= _MAX_RUNS:
                raise ValueError(f"more than {_MAX_RUNS} runs of programs")
            number = self._part_numbers[part] = len(self._parts)
            self._parts.append(part)
        return number

    def _look(self, device: Device, spans: Spans) -> None:
        """What the operations of one of its lines say of a device."""
        first, last = device.extent or (None, 0)
        for start, end, label, (program, run) in self._leaves(spans):
            first, last = start if first is None else min(first, start), max(last, end)
            device.works = device.works or label.kind != sweep.COPY
            if program is not None and run is not None:
                device.begin(program, run, start)
                device.busy[program] += end - start
        device.extent = None if first is None else (first, last)

    def _leaves(self, spans: Spans) -> Iterator[tuple[int, int, _Label, _Part]]:
        """Those that merely contain others, such as loops, are no work. A collective goes on until its end."""
        for (start, end, number, part, pair), following in itertools.pairwise(itertools.chain(spans, (_AFTER,))):
            label = self._labels[number]
            contains = following[0] < end and following[1] <= end
            if not contains and not label.container:
                yield start, self._end(label, pair, end), label, self._parts[part]

    def _end(self, label: _Label, pair: int, end: int) -> int:
        return max(end, self._ended.get(pair, end)) if label.collective >= 0 else end


def _cost(value: Value | None) -> float | None:
    """Of one execution; None where the trace does not say, or what can't be."""
    return float(value) if isinstance(value, int | float) and 0 < value < 1e18 else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 40 else None
