"""What a step's time goes to, from the operations in a trace.

Each device's time is covered by the sets of moments in which it computes, communicates or copies. Their measures,
within a window of whole steps, are the shares:

    compute                   computing, and not communicating at the same time
    overlapped communication  both: it costs nothing
    exposed communication     communicating and not computing: what a faster link would save. It includes the wait for
                              slower peers, which is spent inside the collective
    memcpy                    copying alone
    idle                      none of it: launches, input, the host

They sum to 1. Several devices are averaged.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from rightpool import contract
from rightpool_profiler.traces import intervals
from rightpool_profiler.traces.xspace import Event, Plane

COLLECTIVE: Final = re.compile(
    r"^(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast|send|recv"
    r"|psum|pmean|all_gather|psum_scatter|reduce_scatter|all_to_all|ppermute)\b"
    r"|nccl|rccl|nvshmem|mscclpp|cross_device_reduce",
    re.IGNORECASE,
)
_CONTAINER: Final = re.compile(r"^(while|conditional|call)\b")
COPY: Final = re.compile(r"^(memcpy|memset|dma)", re.IGNORECASE)
_END: Final = "end: "


@dataclass(slots=True)
class _Device:
    """The operations of one device."""

    compute: intervals.Spans = field(default_factory=list)
    communication: intervals.Spans = field(default_factory=list)
    copy: intervals.Spans = field(default_factory=list)
    runs: dict[tuple[str, int], int] = field(default_factory=dict)  # (program, run) → start
    busy: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # program → picoseconds

    def add(self, event: Event, end: int) -> None:
        span = (event.start, end)
        if _is_collective(event):
            self.communication.append(span)
        elif COPY.search(event.name):
            self.copy.append(span)
        else:
            self.compute.append(span)
        program, run = event.stats.get("hlo_module"), event.stats.get("run_id")
        if isinstance(program, str) and isinstance(run, int):
            self.begin(program, run, event.start)
            self.busy[program] += end - event.start

    def begin(self, program: str, run: int, start: int) -> None:
        key = (program, run)
        self.runs[key] = min(start, self.runs.get(key, start))

    def window(self) -> tuple[int, int] | None:
        """From the start of one step to the start of a later one; None if the trace holds no whole step.

        The first run may have begun before the trace did, so its start is not used where others suffice.
        """
        if not self.busy:
            spans = self.compute + self.communication
            return (min(s for s, _ in spans), max(e for _, e in spans)) if spans else None
        program = max(self.busy, key=lambda name: self.busy[name])
        starts = sorted(start for (name, _), start in self.runs.items() if name == program)
        if len(starts) > 3:
            starts = starts[1:]
        return (starts[0], starts[-1]) if len(starts) > 1 else None

    def shares(self) -> dict[str, float] | None:
        window = self.window()
        if window is None or window[1] <= window[0]:
            return None
        compute, communication, copy = (
            intervals.clip(intervals.union(spans), *window) for spans in (self.compute, self.communication, self.copy)
        )
        overlapped = intervals.length(intervals.intersection(compute, communication))
        working = intervals.union([*compute, *communication])
        everything = intervals.length(intervals.union([*working, *copy]))
        total = window[1] - window[0]
        return {
            contract.PART_COMPUTE: (intervals.length(compute) - overlapped) / total,
            contract.PART_OVERLAPPED_COMMUNICATION: overlapped / total,
            contract.PART_EXPOSED_COMMUNICATION: (intervals.length(communication) - overlapped) / total,
            contract.PART_MEMCPY: (everything - intervals.length(working)) / total,
            contract.PART_IDLE: (total - everything) / total,
        }


def shares(planes: Iterable[Plane]) -> dict[str, float] | None:
    """Shares of one step by part; None if the trace holds no whole step of device work."""
    planes = list(planes)
    devices = [device for plane in planes if plane.name.startswith("/device:") for device in _accelerator(plane)]
    if not devices:
        devices = [device for plane in planes if plane.name == "/host:CPU" for device in _host(plane)]
    found = [one for one in (device.shares() for device in devices) if one is not None]
    if not found:
        return None
    return {part: sum(one[part] for one in found) / len(found) for part in found[0]}


def _is_collective(event: Event) -> bool:
    return any(COLLECTIVE.search(name) for name in (str(event.stats.get("hlo_op", "")), event.name))


def _accelerator(plane: Plane) -> list[_Device]:
    """A TPU lists its operations on one line, a GPU on one per stream."""
    device = _Device()
    for line in plane.lines:
        if line.name == "XLA Modules":
            for event in line.events:
                run = event.stats.get("run_id")
                program = event.name.split("(")[0]
                device.begin(program, run if isinstance(run, int) else event.start, event.start)
                device.busy[program] += event.end - event.start
        elif line.name == "XLA Ops" or line.name.startswith("Stream"):
            for event in _leaves(line.events):
                device.add(event, event.end)
    return [device] if device.compute or device.communication else []


def _host(plane: Plane) -> list[_Device]:
    """On CPU, operations are spans of host threads, told from others by their `hlo_op`.

    A collective may return at once and go on elsewhere; an event `end: <name>` then marks the moment at which it was
    really done. The two share an identity, `_p` of the first and `_c` of the second. Computations have such events too,
    but theirs are written whenever a thread comes round to them, long after the next operation has used the result.
    """
    ended: dict[int, int] = {}
    for line in plane.lines:
        for event in line.events:
            identity = event.stats.get("_c")
            if event.name.startswith(_END) and isinstance(identity, int):
                ended[identity] = event.start
    devices: dict[int, _Device] = defaultdict(_Device)
    for line in plane.lines:
        for event in _leaves([event for event in line.events if "hlo_op" in event.stats]):
            identity, ordinal = event.stats.get("_p"), event.stats.get("device_ordinal", 0)
            end = event.end
            if isinstance(identity, int) and _is_collective(event):
                end = max(end, ended.get(identity, end))
            devices[ordinal if isinstance(ordinal, int) else 0].add(event, end)
    return list(devices.values())


def _leaves(events: list[Event]) -> list[Event]:
    """Without the operations that merely contain others, such as loops."""
    events = sorted(events, key=lambda event: (event.start, -event.end))
    found: list[Event] = []
    for event, following in itertools.zip_longest(events, events[1:]):
        contains = following is not None and following.start < event.end and following.end <= event.end
        if not contains and not _CONTAINER.match(event.name):
            found.append(event)
    return found
