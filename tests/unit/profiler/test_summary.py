"""Summaries of traces: one recorded on two H200s, one on a CPU, and made ones whose shares are known."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool import contract
from rightpool.runtime.act.trace_answers import read_answer
from rightpool_profiler.traces import kineto, names
from rightpool_profiler.traces import kineto_summary as module
from rightpool_profiler.traces.kineto_summary import summarise
from rightpool_profiler.traces.shares import shares
from rightpool_profiler.traces.summary import Summary
from tests.fuzz.mutation import damaged

COMPUTE, EXPOSED, OVERLAPPED, IDLE, MEMCPY, INPUT, LAUNCH = (
    contract.PART_COMPUTE,
    contract.PART_EXPOSED_COMMUNICATION,
    contract.PART_OVERLAPPED_COMMUNICATION,
    contract.PART_IDLE,
    contract.PART_MEMCPY,
    contract.PART_INPUT,
    contract.PART_LAUNCH,
)

Event = dict[str, Any]


def event(category: str, name: str, start: float, end: float, tid: int = 7, pid: int = 0) -> Event:
    """Times in microseconds."""
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": end - start}


def text(events: list[Event]) -> bytes:
    return b'{"schemaVersion": 1, "traceEvents": [\n' + ",\n".join(map(json.dumps, events)).encode() + b"\n]}"


def summary(*events: Event) -> Summary:
    return summarise([text(list(events))])


def test_a_device() -> None:
    found = summary(
        event("kernel", "gemm", 0, 40),
        event("kernel", "ncclDevKernel_AllReduce_Sum_f32", 30, 60, tid=20),
        event("gpu_memcpy", "Memcpy HtoD", 60, 65),
        event("kernel", "gemm", 90, 100),
        event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 50, 75),
        event("cpu_op", "aten::mm", 70, 85),
        event("cuda_runtime", "cudaLaunchKernel", 83, 86),
        event("cuda_runtime", "cudaDeviceSynchronize", 86, 100),
        event("user_annotation", "Optimizer.step#SGD.step", 84, 85),
    )
    assert (found.on, found.seconds, found.steps) == ("device", pytest.approx(100e-6), 1)
    assert found.parts == pytest.approx(
        {COMPUTE: 0.40, OVERLAPPED: 0.10, EXPOSED: 0.20, MEMCPY: 0.05, INPUT: 0.10, LAUNCH: 0.11, IDLE: 0.04}
    )
    (collective,) = found.collectives
    assert (collective.share, collective.exposed, collective.count) == (pytest.approx(0.3), pytest.approx(0.2), 1)
    assert [(one.name, one.count) for one in found.operations] == [
        ("gemm", 2),
        ("ncclDevKernel_AllReduce_Sum_f32", 1),
        ("Memcpy HtoD", 1),
    ]


def test_a_host_alone() -> None:
    """Time of operators in each other counts once, and that of a batch being made is a wait for data."""
    found = summary(
        event("Trace", "PyTorch Profiler (0)", 0, 100),
        event("user_annotation", "enumerate(DataLoader)#_X.__next__", 0, 20),
        event("cpu_op", "aten::stack", 10, 20),
        event("cpu_op", "aten::linear", 20, 60),
        event("cpu_op", "aten::addmm", 25, 55),
        event("user_annotation", "gloo:all_reduce", 50, 80, tid=8),
    )
    assert found.on == "host" and found.steps is None
    assert found.parts == pytest.approx({INPUT: 0.2, COMPUTE: 0.3, OVERLAPPED: 0.1, EXPOSED: 0.2, IDLE: 0.2})
    assert {one.name: one.share for one in found.operations} == pytest.approx(
        {"aten::stack": 0.1, "aten::linear": 0.1, "aten::addmm": 0.3}
    )
    (collective,) = found.collectives
    assert collective.exposed == pytest.approx(0.2)


def test_two_devices_are_averaged() -> None:
    found = summary(event("kernel", "a", 0, 50), event("kernel", "a", 90, 100), event("kernel", "a", 0, 100, pid=1))
    assert found.parts[COMPUTE] == pytest.approx(0.8)


SHAPES = {"Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"]}


def with_args(one: Event, **args: Any) -> Event:
    return {**one, "args": args}


def test_flops_of_kernels_are_those_of_the_operators_that_launch_them() -> None:
    """The longest kernel of an operator does its work; of another one nothing is known."""
    found = summary(
        with_args(event("cpu_op", "aten::mm", 0, 9), **{"External id": 5}, **SHAPES),
        with_args(event("cpu_op", "aten::mm", 10, 19), **{"External id": 6}, **SHAPES),
        with_args(event("kernel", "gemm", 10, 30), **{"External id": 5}),
        with_args(event("kernel", "splitK", 30, 35), **{"External id": 5}),
        with_args(event("kernel", "gemm", 40, 80), **{"External id": 6}),
        with_args(event("kernel", "gemm", 80, 90), **{"External id": 77}),
        with_args(event("gpu_memcpy", "Memcpy HtoD", 90, 100), bytes=5000),
    )
    by_name = {one.name: one for one in found.operations}
    assert by_name["gemm"].flops == pytest.approx(2 * 2 * 64 * 32 * 16 / 60e-6)
    assert by_name["gemm"].bytes == pytest.approx(2 * 4 * (64 * 32 + 32 * 16 + 64 * 16) / 60e-6)
    assert (by_name["splitK"].flops, by_name["splitK"].bytes) == (None, None)
    assert (by_name["Memcpy HtoD"].flops, by_name["Memcpy HtoD"].bytes) == (None, pytest.approx(5e8))


def test_flops_of_operators_of_a_host() -> None:
    product = with_args(event("cpu_op", "aten::mm", 0, 20), **{"External id": 5}, **SHAPES)
    found = summary(product, event("cpu_op", "aten::relu", 20, 30))
    product_found, other = found.operations
    assert product_found.flops == pytest.approx(2 * 64 * 32 * 16 / 20e-6) and other.flops is None


@pytest.mark.skipif(not os.environ.get("RIGHTPOOL_SHARED"), reason="fixtures of the shared folder")
def test_a_recorded_trace_of_two_gpus_agrees_with_the_shares_of_the_diagnosis() -> None:
    recorded = Path(os.environ["RIGHTPOOL_SHARED"]) / "fixtures" / "kineto_h200_ddp2.json.gz"
    data = gzip.decompress(recorded.read_bytes())
    found, known = summarise([data]), shares(kineto.read([data]))
    assert known is not None and found.steps == 3
    idle = sum(found.parts[part] for part in (IDLE, INPUT, LAUNCH))
    assert {name: found.parts[name] for name in known} | {IDLE: idle} == pytest.approx(known)
    assert found.collectives[0].name.startswith("ncclDevKernel_AllReduce")
    assert len(json.dumps(found.to_dict())) < 4000


@pytest.mark.skipif(not os.environ.get("RIGHTPOOL_SHARED"), reason="fixtures of the shared folder")
def test_work_of_a_recorded_trace_is_a_share_of_the_usual_step() -> None:
    """Whatever it cost to trace it, kernels take as long as they do."""
    recorded = Path(os.environ["RIGHTPOOL_SHARED"]) / "fixtures" / "kineto_h200_ddp2.json.gz"
    found = summarise([gzip.decompress(recorded.read_bytes())])
    assert found.steps == 3
    work = sum(found.parts[part] for part in (COMPUTE, OVERLAPPED, EXPOSED, MEMCPY))
    usual = found.seconds / 3 * (work + 0.5 * (1.0 - work))
    at_pace = found.at_usual_pace(usual)
    for part in (COMPUTE, OVERLAPPED, EXPOSED, MEMCPY):
        assert at_pace.parts[part] * usual == pytest.approx(found.parts[part] * found.seconds / 3)
    assert sum(at_pace.parts.values()) == pytest.approx(1.0)
    assert at_pace.slowdown == pytest.approx(found.seconds / 3 / usual)
    assert at_pace.collectives[0].share * usual == pytest.approx(found.collectives[0].share * found.seconds / 3)
    assert found.at_usual_pace(None) == found.at_usual_pace(found.seconds) == found


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[1, 2]", text([]), text([event("kernel", "a", 5, 5)]), text([event("cpu_op", "a", 1, 9)])[:-20]],
)
def test_what_is_no_trace(data: bytes) -> None:
    with pytest.raises(ValueError):
        summarise([data])


def test_more_than_fits_into_the_sidecar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SPANS", 3)
    events = [event("kernel", "a", 0, 1), event("cpu_op", "b", 0, 1), event("user_annotation", "c", 0, 1)]
    assert summary(*events)
    with pytest.raises(ValueError, match="more than 3 operations"):
        summary(*events, event("cuda_runtime", "d", 0, 1))


def test_more_threads_or_names_than_a_program_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_THREADS", 2)
    with pytest.raises(ValueError, match="more than 2 threads"):
        summary(*(event("cpu_op", "a", 0, 1, tid=thread) for thread in range(3)))
    monkeypatch.setattr(names, "_MOST", 2)
    with pytest.raises(ValueError, match="more than 2 names"):
        summary(*(event("cpu_op", name, 0, 1) for name in "abc"))


def test_flops_are_of_a_bounded_number_of_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_COSTS", 1)
    products = [
        with_args(event("cpu_op", "aten::mm", at, at + 20), **{"External id": at}, **SHAPES) for at in (0, 20, 40)
    ]
    (found,) = summary(*products).operations
    assert found.flops == pytest.approx(2 * 64 * 32 * 16 / 20e-6), "of the others neither FLOPs nor time count"


def allocation(moment: float, used: Any, change: Any, kind: Any = 1, number: Any = 0, held: Any = None) -> Event:
    about = {"Total Reserved": held, "Total Allocated": used, "Bytes": change, "Device Id": number, "Device Type": kind}
    known = {name: value for name, value in about.items() if value is not None}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "ts": moment, "args": known}


STEP = [
    event("Trace", "PyTorch Profiler (0)", 0, 100),
    event("cpu_op", "aten::mm", 5, 20),
    event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 25, 60),
    event("user_annotation", "Optimizer.step#AdamW.step", 70, 80),
]
GPUS = b'{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H200", "totalGlobalMem": 4000}], "traceEvents": ['


def test_memory_of_a_device_and_not_of_the_host() -> None:
    """As PyTorch says it of a GPU; the memory of the device stands before the events."""
    events = [
        *STEP,
        event("kernel", "gemm", 10, 30),
        allocation(10, 1500, 500, held=2500),
        allocation(15, 9000, 8000, kind=0, number=-1, held=0),
        allocation(40, 2500, 1000, held=3000),
        allocation(65, 1200, -1300, held=3000),
    ]
    data = GPUS + ",".join(map(json.dumps, events)).encode() + b"]}"
    memory = summarise([data]).memory
    assert memory is not None
    assert (memory.device, memory.peak, memory.reserved, memory.capacity) == ("cuda:0", 2500, 3000, 4000)
    assert (memory.at, memory.step, memory.phase) == (0.4, 0.5, contract.PHASE_BACKWARD)
    assert (memory.ends, memory.timeline[0], memory.timeline[-1]) == ((1200,), 1000, 1200)


def test_memory_of_a_host_is_told_without_a_device() -> None:
    """What was allocated before, its allocator does not know; it has no memory that it holds."""
    first = allocation(10, 700, 200, kind=0, number=-1, held=0)
    memory = summary(*STEP, first, allocation(30, 600, -100, kind=0, number=-1, held=0)).memory
    assert memory is not None
    assert (memory.device, memory.peak, memory.reserved, memory.capacity) == ("cpu", 200, None, None)
    assert (memory.phase, memory.ends) == (contract.PHASE_FORWARD, (100,))


@pytest.mark.parametrize(
    "wrong",
    [
        allocation(10, None, 5),
        allocation(10, -1, 5),
        allocation(10, float("nan"), 5),
        allocation(10, 1 << 80, 5),
        allocation(10, 5, None),
        allocation(10, 5, "many"),
        allocation(10, 5, -(1 << 80)),
        allocation(10, 5, 5, kind=None),
        allocation(10, 5, 5, kind=20),
        allocation(10, 5, 5, kind=True),
        allocation(10, 5, 5, number=None),
        allocation(10, 5, 5, number=-1),
        allocation(-5, 5, 5),
        {**allocation(10, 5, 5), "args": [5]},
    ],
)
def test_what_can_not_be_read_of_memory_is_absent(wrong: Event) -> None:
    assert summary(*STEP, wrong).memory is None


def test_memory_counts_for_what_fits_into_the_sidecar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SPANS", 6)
    assert summary(*STEP, *[allocation(10, 5, 5)] * 3).memory is not None
    with pytest.raises(ValueError, match="more than 6 operations"):
        summary(*STEP, *[allocation(10, 5, 5)] * 4)


@pytest.mark.parametrize(
    "properties",
    [
        "{}",
        "7",
        "[7]",
        '[{"id": 0}]',
        '[{"id": 0, "totalGlobalMem": -1}]',
        '[{"id": 0, "totalGlobalMem": 1e400}]',
        "[[",
    ],
)
def test_devices_whose_memory_is_not_told(properties: str) -> None:
    head = f'{{"deviceProperties": {properties}, "traceEvents": ['.encode()
    data = head + ",".join(map(json.dumps, [*STEP, allocation(10, 5, 5)])).encode() + b"]}"
    memory = summarise([data]).memory
    assert memory is not None and memory.peak == 5 and memory.capacity is None


def test_names_are_cut_and_plain() -> None:
    found = summary(event("kernel", "\x1b]0;x\x07" + "n" * 500, 0, 10))
    assert found.operations[0].name == "]0;x" + "n" * 74


_EVENTS = st.lists(
    st.builds(
        event,
        st.sampled_from(["kernel", "gpu_memcpy", "cpu_op", "user_annotation", "cuda_runtime", "Trace", "other"]),
        st.sampled_from(["gemm", "ncclKernel", "Memcpy", "enumerate(DataLoader)#x", "gloo:x", "cudaStreamSynchronize"]),
        st.integers(0, 50),
        st.integers(50, 100),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=30,
)


@given(_EVENTS)
def test_parts_are_the_whole(events: list[Event]) -> None:
    try:
        found = summary(*events)
    except ValueError:
        return
    assert sum(found.parts.values()) == pytest.approx(1.0)
    assert all(-1e-9 <= share <= 1 + 1e-9 for share in found.parts.values())
    for one in found.collectives:
        assert one.exposed is not None and -1e-9 <= one.exposed <= one.share + 1e-9


_SOME = st.one_of(
    st.none(), st.integers(-(1 << 70), 1 << 70), st.integers(0, 5000), st.floats(), st.booleans(), st.text(max_size=3)
)
_ALLOCATIONS = st.lists(
    st.builds(allocation, st.integers(-5, 110), _SOME, _SOME, st.one_of(st.integers(0, 2), _SOME), _SOME, _SOME),
    max_size=20,
)


@given(_EVENTS, _ALLOCATIONS)
def test_whatever_is_said_of_memory_the_rest_is_the_same(events: list[Event], allocations: list[Event]) -> None:
    try:
        alone = summary(*events)
    except ValueError:
        return
    found = summary(*allocations, *events)
    assert replace(found, memory=None) == alone
    memory = found.memory
    if memory is not None:
        assert max(memory.timeline) == memory.peak and memory.reserved != 0
    rank = {"rank": 0, "state": "captured", "reason": "", "message": "", "bytes": 1, "sha256": "a" * 64}
    answer = {"id": "x", "rank": 0, "state": "captured", "reason": "", "message": "", "world": None}
    read = read_answer(json.dumps({**answer, "ranks": [{**rank, "summary": found.to_dict()}]}, allow_nan=False))
    understood = None if read.ranks[0].summary is None else read.ranks[0].summary.memory
    assert (None if understood is None else understood.peak_bytes) == (None if memory is None else memory.peak)


@given(_EVENTS, st.integers(1, 50))
def test_how_a_file_is_cut_makes_no_difference(events: list[Event], size: int) -> None:
    data = text(events)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert list(kineto.events(pieces)) == events


@given(_EVENTS, st.integers(0, 2**32))
def test_a_damaged_file_is_summarised_or_refused(events: list[Event], seed: int) -> None:
    data = damaged(text(events), Random(seed), 3)
    try:
        found = summarise([data])
    except ValueError:
        return
    assert sum(found.parts.values()) == pytest.approx(1.0)
    json.dumps(found.to_dict(), allow_nan=False)
