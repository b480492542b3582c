"""What a trace of PyTorch's profiler says of the time of its steps: of devices where it has their work, else of the
host.

Parts of the time are those of `sweep`. The time of a host is that of its operators. There the wait for data goes before
computing, since operators that make a batch are part of it. Several devices are averaged.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rightpool import contract
from rightpool_profiler.traces import kineto, sweep
from rightpool_profiler.traces.account import Account
from rightpool_profiler.traces.costs import Cost, cost_of
from rightpool_profiler.traces.devices import COLLECTIVE, COPY
from rightpool_profiler.traces.memory import Levels, Memory, Owner
from rightpool_profiler.traces.names import Names
from rightpool_profiler.traces.nesting import self_times
from rightpool_profiler.traces.phases import Phases
from rightpool_profiler.traces.spans import Spans
from rightpool_profiler.traces.summary import Summary
from rightpool_profiler.traces.sweep import Window, Working

MAX_SPANS: Final = 3_000_000  # of devices and host together, 36 bytes each at most
_MAX_DEVICES: Final = 64
_MAX_THREADS: Final = 4096
_MAX_COSTS: Final = 100_000  # operators whose FLOPs are known
_LOADER: Final = "enumerate(DataLoader)"
_MEMORY: Final = "[memory]"
_HOST_COLLECTIVE: Final = ("gloo:", "mpi:", "ucc:")
_RUNTIME: Final = frozenset({"cuda_runtime", "cuda_driver"})
_DEVICE: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_CPU, _CUDA = 0, 1  # types of devices, as PyTorch numbers them
_NONE: Final = -1
_SECOND: Final = 1e9
_ON_HOST: Final = (
    contract.PART_COMPUTE,
    contract.PART_OVERLAPPED_COMMUNICATION,
    contract.PART_EXPOSED_COMMUNICATION,
    contract.PART_INPUT,
    contract.PART_IDLE,
)
_ON_DEVICE: Final = (*_ON_HOST, contract.PART_MEMCPY, contract.PART_LAUNCH)


def summarise(chunks: Iterable[bytes]) -> Summary:
    """The summary of a trace. Raises ValueError for what is no trace, holds no work, or more than a short one can."""
    head, rest = kineto.opened(chunks)
    trace = _Trace(kineto.device_memory(head))
    for event in kineto.events_of(rest):
        trace.add(event)
    return trace.of_devices() if trace.devices else trace.of_host()


class _Trace:
    """The spans of a trace that count here."""

    def __init__(self, capacities: Mapping[int, int]) -> None:
        """capacities: bytes of devices by their numbers."""
        self.capacities = capacities
        self.names = Names()
        self.devices: dict[int, Spans] = {}  # with the number of the name, and of the operator
        self.operators: dict[int, Spans] = {}  # by thread; with the number of the name
        self.collectives = Spans("i")  # of the host
        self.loading, self.runtime = Spans(), Spans()
        self.phases, self.levels = Phases(), Levels()
        self.window: Window | None = None
        self.costs: dict[int, tuple[Cost, int, int]] = {}  # of an operator by its number; with its name and time
        self.copied: dict[int, list[int]] = defaultdict(lambda: [0, 0])  # by name: time, and bytes
        self.count = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """Raises ValueError."""
        category, start = event.get("cat"), kineto.nanoseconds(event.get("ts"))
        if start is None or not isinstance(category, str):
            return
        if event.get("name") == _MEMORY:
            self._add_memory(_arguments(event), start)
            return
        duration = kineto.nanoseconds(event.get("dur"))
        if duration is None or event.get("ph") != "X":
            return
        name, end = str(event.get("name")), start + duration
        if category in _DEVICE:
            self._add_work(event, start, end, self.names.number(name))
        elif category in _RUNTIME:
            self._counted()
            if "Synchronize" not in name:
                self.runtime.add(start, end)
        elif category == "cpu_op":
            self._add_operator(event, start, end, name)
        elif category == "user_annotation":
            self._counted()
            if name.startswith(_LOADER):
                self.loading.add(start, end)
            elif name.startswith(_HOST_COLLECTIVE):
                self.collectives.add(start, end, self.names.number(name))
            else:
                self.phases.add(name, start, end)
        elif category == "Trace":
            self.window = start, end

    def _counted(self) -> None:
        self.count += 1
        if self.count > MAX_SPANS:
            raise ValueError(f"it holds more than {MAX_SPANS} operations")

    def _add_work(self, event: Mapping[str, Any], start: int, end: int, name: int) -> None:
        device, arguments = event.get("pid"), _arguments(event)
        if not isinstance(device, int):
            return
        self._counted()
        if device not in self.devices and len(self.devices) >= _MAX_DEVICES:
            raise ValueError(f"it holds more than {_MAX_DEVICES} devices")
        self.devices.setdefault(device, Spans("iq")).add(start, end, name, _whole(arguments.get("External id")))
        copied = _whole(arguments.get("bytes"))
        if copied > 0 and event.get("cat") != "kernel":
            found = self.copied[name]
            found[0] += end - start
            found[1] += copied

    def _add_operator(self, event: Mapping[str, Any], start: int, end: int, name: str) -> None:
        thread = event.get("tid")
        if not isinstance(thread, int):
            return
        self._counted()
        if thread not in self.operators and len(self.operators) >= _MAX_THREADS:
            raise ValueError(f"it holds more than {_MAX_THREADS} threads")
        number = self.names.number(name)
        self.operators.setdefault(thread, Spans("i")).add(start, end, number)
        arguments = _arguments(event)
        self.phases.add(name, start, end)
        cost = cost_of(name, arguments)
        if cost is not None and len(self.costs) < _MAX_COSTS:
            self.costs[_whole(arguments.get("External id"))] = cost, number, end - start

    def _add_memory(self, about: Mapping[str, Any], moment: int) -> None:
        """What an allocator has handed out, or got back. That of the host counts while memory is recorded alone."""
        kind, number, change = about.get("Device Type"), _whole(about.get("Device Id")), about.get("Bytes")
        used, held = _whole(about.get("Total Allocated")), _whole(about.get("Total Reserved"))
        if used == _NONE or not isinstance(change, int) or isinstance(kind, bool):
            return
        if kind == _CUDA and number != _NONE:
            owner = Owner(_cuda(number), host=False)
        elif kind == _CPU:
            owner = Owner("cpu", host=True, whole=False)
        else:
            return
        self._counted()
        self.levels.add(owner, moment, used, change, None if held == _NONE else held)

    # --- what it says ------------------------------------------------------------------------------------------------

    def of_devices(self) -> Summary:
        """Raises ValueError."""
        account = Account(_SECOND)
        kinds = [_kind(text) for text in self.names.texts]
        extents = [_extent(spans) for spans in self.devices.values()]
        for spans, window in zip(self.devices.values(), extents, strict=True):
            if window[1] <= window[0]:
                continue
            swept = sweep.sweep([_work(spans, kinds), *self._of_host_beside()], window)
            parts = swept.parts(_ON_DEVICE)
            account.add(window, self.phases.steps, parts, self._by_name(swept))
            for start, end, name, _ in spans:
                account.operations.add(self.names.texts[name], end - start)
            self._tell_costs(spans, account)
        for name, (time, copied) in self.copied.items():
            account.operations.add_costs(self.names.texts[name], time, (None, copied))
        return account.summary("device", self._memory())

    def _of_host_beside(self) -> Iterator[Iterator[Working]]:
        """Waits for data, and what prepares the next work."""
        yield ((start, end, sweep.INPUT, _NONE) for start, end in self.loading)
        yield ((start, end, sweep.LAUNCH, _NONE) for start, end in self.runtime)
        for operators in self.operators.values():
            yield ((start, end, sweep.LAUNCH, _NONE) for start, end, _ in operators)

    def _tell_costs(self, spans: Spans, account: Account) -> None:
        """Of the kernels that an operator launches, the longest one does its work."""
        longest: dict[int, tuple[int, int]] = {}
        for start, end, name, operator in spans if self.costs else ():
            if operator in self.costs:
                longest[operator] = max(longest.get(operator, (0, 0)), (end - start, name))
        for operator, (time, name) in longest.items():
            account.operations.add_costs(self.names.texts[name], time, self.costs[operator][0])

    def of_host(self) -> Summary:
        """Raises ValueError."""
        account = Account(_SECOND)
        window = self._whole_window()
        if self.operators and window[1] > window[0]:
            streams: list[Iterator[Working]] = [
                ((start, end, sweep.INPUT, _NONE) for start, end in self.loading),
                ((start, end, sweep.COMMUNICATION, name) for start, end, name in self.collectives),
                *(((start, end, sweep.COMPUTE, _NONE) for start, end, _ in own) for own in self.operators.values()),
            ]
            swept = sweep.sweep(streams, window, sweep.COMPUTE | sweep.INPUT)
            parts = swept.parts(_ON_HOST, loading_first=True)
            account.add(window, self.phases.steps, parts, self._by_name(swept))
            for own in self.operators.values():
                for (_, _, name), time in self_times(own):
                    account.operations.add(self.names.texts[name], time)
        for cost, name, time in self.costs.values():
            account.operations.add_costs(self.names.texts[name], time, cost)
        return account.summary("host", self._memory())

    def _whole_window(self) -> Window:
        return self.window or _around([_extent(spans) for spans in self.operators.values()])

    def _memory(self) -> Memory | None:
        capacities = {_cuda(number): size for number, size in self.capacities.items()}
        window = self._whole_window()
        return self.levels.within(window, self.phases.ends(window[1]), self.phases.at, capacities)

    def _by_name(self, swept: sweep.Swept) -> Iterator[tuple[str, sweep.Share]]:
        return ((self.names.texts[name], share) for name, share in swept.shares.items())


def _arguments(event: Mapping[str, Any]) -> Mapping[str, Any]:
    found = event.get("args")
    return found if isinstance(found, dict) else {}


def _whole(value: Any) -> int:
    """A number that fits; none where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else _NONE


def _cuda(number: int) -> str:
    return f"cuda:{number}"


def _extent(spans: Spans) -> Window:
    first, last = 2**63 - 1, 0
    for start, end, *_ in spans:
        first, last = min(first, start), max(last, end)
    return first, last


def _around(extents: list[Window]) -> Window:
    return min((one[0] for one in extents), default=0), max((one[1] for one in extents), default=0)


def _kind(name: str) -> int:
    if COLLECTIVE.search(name):
        return sweep.COMMUNICATION
    return sweep.COPY if COPY.search(name) else sweep.COMPUTE


def _work(spans: Spans, kinds: list[int]) -> Iterator[Working]:
    return (
        (start, end, kinds[name], name if kinds[name] == sweep.COMMUNICATION else _NONE)
        for start, end, name, _ in spans
    )
