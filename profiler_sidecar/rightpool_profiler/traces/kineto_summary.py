"""What a trace of PyTorch's profiler says of the time of its steps: of devices where it has their work, else of the
host.

Parts of the time are shares that sum to 1, as in `shares`, and two of what is idle there:

    input     the program waits in its DataLoader: on a device, while nothing runs there
    launch    nothing runs on the device while the host is inside an operator or a call of the runtime other than a
              synchronisation: it prepares the next work

The time of a host is that of its operators. There the wait for data goes before computing, since operators that make a
batch are part of it. Several devices are averaged.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from rightpool import contract
from rightpool_profiler.traces import intervals, kineto
from rightpool_profiler.traces.devices import COLLECTIVE, COPY, Span
from rightpool_profiler.traces.summary import MAX_SPANS, Summary, Tally, plain

_MAX_DEVICES: Final = 64
_LOADER: Final = "enumerate(DataLoader)"
_OPTIMIZER: Final = "Optimizer.step#"
_HOST_COLLECTIVE: Final = ("gloo:", "mpi:", "ucc:")
_RUNTIME: Final = frozenset({"cuda_runtime", "cuda_driver"})
_DEVICE: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})


@dataclass(slots=True)
class _Trace:
    """The spans of a trace that count here."""

    devices: dict[int, list[Span]] = field(default_factory=dict)
    operators: dict[int, list[Span]] = field(default_factory=lambda: defaultdict(list))  # by thread
    collectives: list[Span] = field(default_factory=list)  # of the host
    loading: list[tuple[int, int]] = field(default_factory=list)
    runtime: list[tuple[int, int]] = field(default_factory=list)
    window: tuple[int, int] | None = None
    steps: int = 0


def summarise(chunks: Iterable[bytes]) -> Summary:
    """The summary of a trace. Raises ValueError for what is no trace, holds no work, or more than a short one can."""
    trace = _read(chunks)
    found = _of_devices(trace) if trace.devices else _of_host(trace)
    if found is None:
        raise ValueError("it holds no work of a device and no operator")
    return found


def _read(chunks: Iterable[bytes]) -> _Trace:
    trace = _Trace()
    names: dict[str, str] = {}
    count = 0
    for event in kineto.events(chunks):
        category, thread = event.get("cat"), event.get("tid")
        if event.get("ph") != "X" or not isinstance(category, str):
            continue
        start, duration = kineto.nanoseconds(event.get("ts")), kineto.nanoseconds(event.get("dur"))
        if start is None or duration is None:
            continue
        name = plain(str(event.get("name")))
        name = names.setdefault(name, name)
        end = start + duration
        if category in _DEVICE:
            device = event.get("pid")
            if not isinstance(device, int):
                continue
            count += 1
            trace.devices.setdefault(device, []).append((start, end, name))
        elif category in _RUNTIME:
            count += 1
            if "Synchronize" not in name:
                trace.runtime.append((start, end))
        elif category == "cpu_op" and isinstance(thread, int):
            count += 1
            trace.operators[thread].append((start, end, name))
        elif category == "user_annotation":
            count += 1
            if name.startswith(_LOADER):
                trace.loading.append((start, end))
            elif name.startswith(_HOST_COLLECTIVE):
                trace.collectives.append((start, end, name))
            elif name.startswith(_OPTIMIZER):
                trace.steps += 1
        elif category == "Trace":
            trace.window = start, end
        if count > MAX_SPANS or len(trace.devices) > _MAX_DEVICES:
            raise ValueError(f"it holds more than {MAX_SPANS} operations, or {_MAX_DEVICES} devices")
    return trace


def _of_devices(trace: _Trace) -> Summary | None:
    loading = intervals.union(trace.loading)
    preparing = intervals.union(
        [*trace.runtime, *((start, end) for spans in trace.operators.values() for start, end, _ in spans)]
    )
    parts: dict[str, float] = defaultdict(float)
    collectives, operations = Tally(), Tally()
    total = longest = 0
    for spans in trace.devices.values():
        window = min(start for start, _, _ in spans), max(end for _, end, _ in spans)
        length = window[1] - window[0]
        if length <= 0:
            continue
        total += length
        longest = max(longest, length)
        communication = [span for span in spans if COLLECTIVE.search(span[2])]
        copy = [span for span in spans if COPY.search(span[2]) and not COLLECTIVE.search(span[2])]
        compute = intervals.union(
            (span[0], span[1]) for span in spans if not COPY.search(span[2]) and not COLLECTIVE.search(span[2])
        )
        communicating = intervals.union((start, end) for start, end, _ in communication)
        working = intervals.union([*compute, *communicating])
        busy = intervals.union([*working, *((start, end) for start, end, _ in copy)])
        idle = intervals.without([window], busy)
        waiting = intervals.intersection(idle, loading)
        rest = intervals.without(idle, loading)
        both = intervals.length(intervals.intersection(compute, communicating))
        launching = intervals.length(intervals.intersection(rest, preparing))
        parts[contract.PART_COMPUTE] += intervals.length(compute) - both
        parts[contract.PART_OVERLAPPED_COMMUNICATION] += both
        parts[contract.PART_EXPOSED_COMMUNICATION] += intervals.length(communicating) - both
        parts[contract.PART_MEMCPY] += intervals.length(busy) - intervals.length(working)
        parts[contract.PART_INPUT] += intervals.length(waiting)
        parts[contract.PART_LAUNCH] += launching
        parts[contract.PART_IDLE] += intervals.length(rest) - launching
        collectives.add_exposed(communication, compute)
        for start, end, name in spans:
            operations.add(name, end - start)
    if not total:
        return None
    return Summary.of("device", longest / 1e9, total, trace.steps, parts, collectives, operations)


def _of_host(trace: _Trace) -> Summary | None:
    spans = [span for own in trace.operators.values() for span in own]
    if not spans:
        return None
    window = trace.window or (min(start for start, _, _ in spans), max(end for _, end, _ in spans))
    total = window[1] - window[0]
    if total <= 0:
        return None
    loading = intervals.clip(intervals.union(trace.loading), *window)
    compute = intervals.clip(intervals.union((start, end) for start, end, _ in spans), *window)
    compute = intervals.without(compute, loading)
    communicating = intervals.clip(intervals.union((start, end) for start, end, _ in trace.collectives), *window)
    both = intervals.length(intervals.intersection(compute, communicating))
    exposed = intervals.without(communicating, intervals.union([*compute, *loading]))
    busy = intervals.union([*loading, *compute, *exposed])
    parts: dict[str, float] = {
        contract.PART_COMPUTE: intervals.length(compute) - both,
        contract.PART_OVERLAPPED_COMMUNICATION: both,
        contract.PART_EXPOSED_COMMUNICATION: intervals.length(exposed),
        contract.PART_INPUT: intervals.length(loading),
        contract.PART_IDLE: total - intervals.length(busy),
    }
    collectives, operations = Tally(), Tally()
    clipped = [(max(start, window[0]), min(end, window[1]), name) for start, end, name in trace.collectives]
    collectives.add_exposed([span for span in clipped if span[0] < span[1]], intervals.union([*compute, *loading]))
    for own in trace.operators.values():
        for name, seconds in _self_times(own):
            operations.add(name, seconds)
    return Summary.of("host", total / 1e9, total, trace.steps, parts, collectives, operations)


def _self_times(spans: list[Span]) -> Iterable[tuple[str, int]]:
    """The time of each operator of a thread that it does not spend in another one."""
    open_: list[list[Any]] = []  # end, name, time left
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_ and open_[-1][0] <= start:
            _, done, left = open_.pop()
            yield done, max(left, 0)
        if open_:
            open_[-1][2] -= min(end, open_[-1][0]) - start
        open_.append([end, name, end - start])
    for _, name, left in open_:
        yield name, max(left, 0)
