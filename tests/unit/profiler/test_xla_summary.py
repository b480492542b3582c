"""The summary of a trace of XLA, and the file that is made of it: of traces with known shares, and of recorded ones."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rightpool_agent import jax_trace  # type: ignore[import-not-found]

from rightpool import contract
from rightpool_profiler.traces import chrome, devices, xla_summary
from rightpool_profiler.traces import xspace as reader
from rightpool_profiler.traces.shares import shares
from rightpool_profiler.traces.summary import Summary
from rightpool_profiler.traces.xla_summary import Reading
from rightpool_profiler.traces.xspace import Event
from tests.fuzz.mutation import damaged

from .xspaces import field, op, span, xspace

FIXTURES = Path(__file__).parent / "fixtures"
COMPUTE, EXPOSED, OVERLAPPED, IDLE, MEMCPY = (
    contract.PART_COMPUTE,
    contract.PART_EXPOSED_COMMUNICATION,
    contract.PART_OVERLAPPED_COMMUNICATION,
    contract.PART_IDLE,
    contract.PART_MEMCPY,
)
MARK = span(contract.TRACE_MARK, 1000, 1001, function="step", steps=1)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def converted(data: bytes, size: int = 1 << 18) -> tuple[Summary, list[dict[str, Any]]]:
    """The summary, and the events of the file."""
    reading, raw = Reading(), io.BytesIO()
    with gzip.GzipFile("", "wb", 1, raw) as packed:
        written = chrome.write(lambda: pieces(data, size), packed, reading.add)
    body = gzip.decompress(raw.getvalue())
    assert len(body) == written
    return reading.summary(), json.loads(body)["traceEvents"]


def host(*lines: list[Event]) -> bytes:
    return xspace({"/host:CPU": {f"thread {number}": events for number, events in enumerate(lines)}})


def steps(*templates: Event, each: int = 100) -> list[Event]:
    """Six steps; the first one had begun before the trace."""
    shift = each * 1_000_000
    return [
        Event(one.name, one.start + shift * run, one.end + shift * run, {**one.stats, "run_id": run})
        for run in range(6)
        for one in templates
    ]


def test_the_mark_is_that_of_the_agent() -> None:
    assert jax_trace.MARK == contract.TRACE_MARK


def test_whole_steps_of_a_cpu() -> None:
    compute = steps(op("while.1", 0, 50), op("dot.1", 0, 30), op("dot.2", 30, 50))
    found, _ = converted(host(compute, steps(op("all-reduce.7", 40, 70)), [MARK]))
    assert (found.on, found.steps, found.seconds) == ("host", 4, pytest.approx(400e-6))
    assert found.parts == pytest.approx({COMPUTE: 0.4, OVERLAPPED: 0.1, EXPOSED: 0.2, IDLE: 0.3})
    (collective,) = found.collectives
    assert (collective.name, collective.count) == ("all-reduce", 4)
    assert (collective.share, collective.exposed) == (pytest.approx(0.3), pytest.approx(0.2))
    assert {one.name: (one.count, one.share) for one in found.operations} == {
        "dot.1": (4, pytest.approx(0.3)),
        "dot.2": (4, pytest.approx(0.2)),
        "all-reduce.7": (4, pytest.approx(0.3)),
        "while.1": (4, pytest.approx(0.0)),
    }


@pytest.mark.parametrize(
    ("mark", "module", "expected"),
    [
        ({"function": "step", "steps": 20}, "jit_step", 80),
        ({"function": "<lambda>", "steps": 1}, "jit__lambda", 4),
        ({"function": "step", "steps": 1}, "pmap_step", 4),
        ({"function": "another", "steps": 1}, "jit_step", None),
        ({"function": "step", "steps": 0}, "jit_step", None),
        ({"function": 7, "steps": 1}, "jit_step", None),
        ({"steps": 1}, "jit_step", None),
    ],
)
def test_the_agent_names_whose_calls_make_the_steps(mark: dict[str, Any], module: str, expected: int | None) -> None:
    events = steps(op("dot.1", 0, 30, hlo_module=module))
    found, _ = converted(host(events, [span(contract.TRACE_MARK, 900, 901, **mark)]))
    assert found.steps == expected
    assert found.parts[COMPUTE] == pytest.approx(0.3), "by whole runs either way"


def test_a_trace_between_two_calls_holds_whole_ones() -> None:
    """As the program's own thread takes it on a GPU, whose operations name no run."""
    events = [span("gemm", 100 * run, 100 * run + 60, hlo_module="jit_step") for run in range(6)]
    planes = {"/device:GPU:0": {"Stream #14(Compute)": events}}
    mark = span(contract.TRACE_MARK, 700, 701, function="step", steps=10, calls=6)
    found, _ = converted(xspace({**planes, "/host:CPU": {"python": [mark]}}))
    assert (found.on, found.steps, found.seconds) == ("device", 60, pytest.approx(560e-6))
    assert found.parts[COMPUTE] == pytest.approx(360 / 560)
    unknown = span(contract.TRACE_MARK, 700, 701, function="step", steps=10)
    assert converted(xspace({**planes, "/host:CPU": {"python": [unknown]}}))[0].steps is None


def test_steps_are_never_guessed() -> None:
    events = steps(op("dot.1", 0, 30))
    assert converted(host(events))[0].steps is None, "nobody says which function makes them"
    two = [*events, *steps(op("dot.9", 50, 60, program_id=4))]
    assert converted(host(two, [MARK]))[0].steps is None, "two functions of one name"
    other = span(contract.TRACE_MARK, 1000, 1001, function="other", steps=1)
    assert converted(host(events, [MARK, other]))[0].steps is None
    few = [one for one in events if one.stats["run_id"] in (0, 1)]
    found, _ = converted(host(few, [MARK]))
    assert found.steps is None and found.seconds == pytest.approx(130e-6), "the first may have begun before the trace"


def test_a_collective_goes_on_until_its_end_event() -> None:
    events = []
    for run in range(6):
        events.append(op("all-reduce.1", 100 * run, 100 * run + 5, run, _p=run + 1))
        events.append(span("end: all-reduce.1", 100 * run + 60, 100 * run + 60, _c=run + 1))
    found, written = converted(host(events, steps(op("fusion", 90, 100)), [MARK]))
    assert found.parts[EXPOSED] == pytest.approx(0.6) and found.collectives[0].share == pytest.approx(0.6)
    assert found.operations[0].share == pytest.approx(0.6)
    assert not any("_p" in one.get("args", {}) for one in written), "XLA's own notes are no statistics"


def test_lines_of_a_tpu_and_streams_of_a_gpu() -> None:
    tpu = {
        "XLA Modules": [span(f"jit_step({7})", 100 * run, 100 * run + 80, run_id=run) for run in range(6)],
        "XLA Ops": [
            one
            for run in range(6)
            for one in (
                span("%fusion.1", 100 * run, 100 * run + 60),
                span("all-reduce.1", 100 * run + 60, 100 * run + 80),
            )
        ],
        "Steps": [span("0", 0, 600)],
    }
    threads = {"python": [MARK], "pool": steps(op("dot", 0, 100))}
    found, _ = converted(xspace({"/device:TPU:0": tpu, "/device:TPU:1": tpu, "/host:CPU": threads}))
    assert (found.on, found.steps) == ("device", 4)
    assert found.parts == pytest.approx({COMPUTE: 0.6, OVERLAPPED: 0, EXPOSED: 0.2, MEMCPY: 0.0, IDLE: 0.2})
    gpu = {
        "Stream #1(Compute)": [span("gemm", 0, 40)],
        "Stream #2(MemcpyH2D)": [span("MemcpyH2D", 40, 50), span("gemm", 80, 100)],
    }
    found, _ = converted(xspace({"/device:GPU:0": gpu}))
    assert (found.on, found.steps) == ("device", None)
    assert found.parts == pytest.approx({COMPUTE: 0.6, OVERLAPPED: 0, EXPOSED: 0, MEMCPY: 0.1, IDLE: 0.3})


def test_flops_and_bytes_that_belong_to_names() -> None:
    """As XLA says them on a TPU, once for all executions."""
    modules = [span("jit_step(7)", 100 * run, 100 * run + 80, run_id=run) for run in range(6)]
    work = [
        one
        for run in range(6)
        for one in (span("%dot.1 = f32[]", 100 * run, 100 * run + 60), span("copy", 100 * run + 60, 100 * run + 80))
    ]
    costs = {"%dot.1 = f32[]": {"other": 5, "flops": 6_000_000, "bytes_accessed": 3e4}, "copy": {"bytes_accessed": 400}}
    data = xspace({"/device:TPU:0": {"XLA Modules": modules, "XLA Ops": work}, "/host:CPU": {"python": [MARK]}}, costs)
    found, written = converted(data)
    dot, copy = found.operations
    assert (dot.flops, dot.bytes) == (pytest.approx(6e6 / 60e-6), pytest.approx(3e4 / 60e-6))
    assert (copy.flops, copy.bytes) == (None, pytest.approx(400 / 20e-6))
    assert {one["args"]["flops"] for one in written if one["name"].startswith("%dot")} == {6_000_000}
    assert "flops" not in converted(xspace({"/device:TPU:0": {"XLA Ops": work}}))[0].to_dict()["operations"][0]
    assert shares(reader.read(data)) is not None


def test_numbers_of_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MAX_NUMBERS", 3)
    names = {f"dot.{number}": {"flops": 7, "bytes_accessed": 9} for number in range(9)}
    data = xspace({"/device:TPU:0": {"XLA Ops": [span(name, 0, 1) for name in names]}}, names)
    (head,) = reader.heads([data])
    assert len(head.costs) == 1


def test_memory_by_the_allocators_of_xla() -> None:
    def level(name: str, at: float, used: int, change: int, allocator: str = "GPU_0_bfc") -> Event:
        return span(name, at, at, allocator_name=allocator, bytes_allocated=used, allocation_bytes=change)

    changes = [
        level("MemoryAllocation", 150, 700, 200),
        level("MemoryDeallocation", 300, 100, 600),
        level("MemoryAllocation", 310, 9000, 9000, "xla_gpu_host_bfc"),
    ]
    found, _ = converted(host(steps(op("dot.1", 0, 30)), changes, [MARK]))
    assert found.memory is not None and found.seconds == pytest.approx(400e-6)
    assert (found.memory.peak, found.memory.at) == (700, pytest.approx(50 / 400))
    assert found.memory.timeline[:4] == (500, 500, 500, 700) and found.memory.timeline[-1] == 100


def test_the_file_opens_where_chrome_traces_do() -> None:
    noise = span("ThreadpoolListener::Record", 5, 5, _p=9)
    note = span('user\'s "note"\n', 1, 2, step_num=12, loss="low")
    _, found = converted(host([*steps(op("dot.1", 0, 30)), noise], [note, MARK]))
    assert [one["args"]["name"] for one in found if one["ph"] == "M"] == ["/host:CPU", "thread 0", "thread 1"]
    spans = [one for one in found if one["ph"] == "X"]
    assert len(spans) == 6 + 2
    assert spans[0] == {
        "ph": "X",
        "pid": 0,
        "tid": 0,
        "ts": 0.0,
        "dur": 30.0,
        "name": "dot.1",
        "args": {"hlo_op": "dot.1", "hlo_module": "jit_step", "run_id": 0, "device_ordinal": 0, "program_id": 3},
    }
    (noted,) = (one for one in spans if one["name"].startswith("user"))
    assert noted["args"] == {"step_num": 12, "loss": "low"}


@pytest.mark.parametrize("name", ["cpu_one_process", "cpu_two_processes"])
def test_recorded_traces_agree_with_the_shares_of_the_diagnosis(name: str) -> None:
    data = gzip.decompress((FIXTURES / f"{name}.xplane.pb.gz").read_bytes())
    found, _ = converted(data)
    known = shares(reader.read(data))
    assert known is not None and known.pop(MEMCPY) == 0
    assert found.parts == pytest.approx(known)


def test_a_recorded_trace_of_a_gpu() -> None:
    """Ten steps of a program on an H100, JAX 0.11.2, which sends a batch in each: graphs of kernels, and copies."""
    data = gzip.decompress((FIXTURES / "gpu_h100.xplane.pb.gz").read_bytes())
    found, _ = converted(data)
    known = shares(reader.read(data))
    assert known is not None and found.parts == pytest.approx(known)
    assert found.on == "device" and 0 < found.parts[MEMCPY] < found.parts[COMPUTE] < found.parts[IDLE]
    assert found.memory is not None and found.memory.peak == max(found.memory.timeline) > 2**22
    (matrix, copies) = ({one.name: one for one in found.kinds}[kind] for kind in ("matrix", "copy"))
    assert matrix.share > 0.5 * found.parts[COMPUTE] and copies.count == 20


@pytest.mark.skipif(not os.environ.get("RIGHTPOOL_SHARED"), reason="fixtures of the shared folder")
def test_a_capture_by_the_profilers_server() -> None:
    data = (Path(os.environ["RIGHTPOOL_SHARED"]) / "fixtures" / "xprof_cpu_remote.xplane.pb").read_bytes()
    found, _ = converted(data)
    assert found.parts[COMPUTE] == pytest.approx(0.951, abs=0.001)
    assert [one.name for one in found.operations] == ["ynn_fusion", "wrapped_tanh"]


def test_what_holds_no_work() -> None:
    for data in (b"", host([span("PjitFunction(step)", 0, 10)])):
        with pytest.raises(ValueError, match="no work"):
            converted(data)


def test_the_programs_behind_a_trace_change_nothing() -> None:
    """As the agent writes them: a plane without lines, whose names hold the HLO, here of 2 KB and of 2 MB."""
    data = host(steps(op("dot.1", 0, 30)), [MARK])
    hlo = (
        field(1, 1) + field(2, b"jit_step(3)") + field(5, field(1, 1) + field(6, b"h" * size))
        for size in (2_000, 2_000_000)
    )
    programs = field(1, field(2, b"/host:metadata") + b"".join(field(4, field(1, 1) + field(2, one)) for one in hlo))
    assert converted(data + programs) == converted(data)


def test_more_operations_than_the_sidecar_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xla_summary, "MAX_OPERATIONS", 5)
    with pytest.raises(ValueError, match="more than 5 operations"):
        converted(host(steps(op("dot.1", 0, 30))))


def test_other_events_are_held_by_nobody() -> None:
    """However many there are: what is needed at once is far less than the file."""
    data = host(
        [*steps(op("dot.1", 0, 30)), *(span("ParseArguments", at, at + 1, note=f"{at:9}" * 20) for at in range(3_000))]
    )
    reading = Reading()
    with gzip.GzipFile(os.devnull, "wb", 1) as packed:
        tracemalloc.start()
        chrome.write(lambda: pieces(data, 1 << 12), packed, reading.add)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < len(data) / 3


@pytest.mark.parametrize(
    "data",
    [
        field(1, b"") * 200,
        field(1, field(3, b"") * 200),
        field(1, field(4, field(1, 1)) * 300),
        field(1, field(2, b"/host:CPU") + field(3, field(4, b"\x08" * 3_000_000))),
    ],
)
def test_files_that_are_made_to_fill_the_sidecar(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_MAX_LINES", "_MAX_NAMES"):
        monkeypatch.setattr(reader, limit, 100)
    with pytest.raises(ValueError, match=r"than a short trace can have|an event of"):
        converted(data)


def test_more_runs_of_programs_than_a_short_trace_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_MAX_RUNS", 10)
    modules = [span("jit_step(7)", at, at + 1, run_id=at) for at in range(20)]
    tpu = xspace({"/device:TPU:0": {"XLA Modules": modules}})
    for data in (tpu, host([op("dot", at, at + 1, run=at) for at in range(20)])):
        with pytest.raises(ValueError, match="more than 10 runs"):
            converted(data)
        with pytest.raises(ValueError, match="more than 10 runs"):
            shares(reader.read(data))


_TIMES = st.integers(0, 100)
_EVENTS = st.builds(
    lambda name, start, length, run, device: op(name, start, start + length, run, device_ordinal=device),
    st.sampled_from(["dot.1", "all-reduce.2", "while.3", "MemcpyD2H", "psum.4"]),
    _TIMES,
    _TIMES,
    st.integers(0, 3),
    st.integers(0, 1),
)


@given(st.lists(st.lists(_EVENTS, max_size=8), min_size=1, max_size=3), st.integers(1, 50))
def test_parts_are_the_whole_however_the_file_is_cut(lines: list[list[Event]], size: int) -> None:
    data = host(*lines, [MARK])
    try:
        found, written = converted(data)
    except ValueError:
        return
    assert sum(found.parts.values()) == pytest.approx(1.0)
    assert all(-1e-9 <= share <= 1 + 1e-9 for share in found.parts.values())
    for collective in found.collectives:
        assert 0 <= (collective.exposed or 0) <= collective.share + 1e-9
    assert converted(data, size) == (found, written)


@given(st.integers(0, 1 << 32))
def test_a_damaged_file_is_summarised_or_refused(seed: int) -> None:
    random = Random(seed)
    data = damaged(host(steps(op("dot.1", 0, 30), op("all-reduce.2", 30, 50)), [MARK]), random, random.randrange(1, 4))
    try:
        found, _ = converted(data)
    except ValueError:
        return
    assert sum(found.parts.values()) == pytest.approx(1.0)
