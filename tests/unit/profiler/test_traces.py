"""Shares from traces: recorded ones of the example program, and synthetic ones with known shares."""

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool import contract
from rightpool_profiler.traces import collector, kineto, xspace
from rightpool_profiler.traces.shares import shares
from rightpool_profiler.traces.xspace import Event, Line, Plane
from tests.patience import PATIENCE

FIXTURES = Path(__file__).parent / "fixtures"
COMPUTE, EXPOSED, OVERLAPPED, IDLE, MEMCPY = (
    contract.PART_COMPUTE,
    contract.PART_EXPOSED_COMMUNICATION,
    contract.PART_OVERLAPPED_COMMUNICATION,
    contract.PART_IDLE,
    contract.PART_MEMCPY,
)


def load(name: str) -> bytes:
    return gzip.decompress((FIXTURES / f"{name}.xplane.pb.gz").read_bytes())


def test_one_process_computes() -> None:
    found = shares(xspace.read(load("cpu_one_process")))
    assert found is not None
    assert found[COMPUTE] == pytest.approx(0.858, abs=0.001)
    assert found[EXPOSED] == 0
    assert sum(found.values()) == pytest.approx(1)


def test_two_processes_wait_for_their_gradients() -> None:
    """XLA ran the all-reduce on a thread pool beside late `end:` events of computations; it hid behind none of them."""
    found = shares(xspace.read(load("cpu_two_processes")))
    assert found is not None
    assert found[EXPOSED] == pytest.approx(0.637, abs=0.001)
    assert found[OVERLAPPED] == 0
    assert found[COMPUTE] == pytest.approx(0.244, abs=0.001)


def op(name: str, start: int, end: int, run: int = 0, **stats: int | str) -> Event:
    return Event(
        name, start, end, {"hlo_op": name, "hlo_module": "jit_step", "run_id": run, "device_ordinal": 0, **stats}
    )


def host(*lines: list[Event]) -> list[Plane]:
    return [Plane("/host:CPU", [Line("thread", events) for events in lines])]


def steps(*templates: Event) -> list[Event]:
    """Five steps of 100 units."""
    return [
        op(event.name, event.start + 100 * run, event.end + 100 * run, run) for run in range(5) for event in templates
    ]


def test_each_share_is_recognised() -> None:
    compute = steps(op("fusion.1", 0, 50))
    communication = steps(op("all-reduce.2", 30, 70))
    found = shares(host(compute, communication))
    assert found == pytest.approx({COMPUTE: 0.3, OVERLAPPED: 0.2, EXPOSED: 0.2, MEMCPY: 0.0, IDLE: 0.3})


@pytest.mark.parametrize(
    "name",
    [
        "all-gather-start.1",
        "reduce-scatter",
        "all-to-all.3",
        "collective-permute-done.9",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    ],
)
def test_collectives_are_known_by_name(name: str) -> None:
    found = shares(host(steps(op("fusion", 0, 50), op(name, 50, 90))))
    assert found is not None and found[EXPOSED] == pytest.approx(0.4)


def test_a_loop_is_not_computing_while_its_body_communicates() -> None:
    found = shares(host(steps(op("while.1", 0, 80), op("fusion.1", 0, 20), op("all-reduce.1", 20, 80))))
    assert found is not None
    assert (found[EXPOSED], found[OVERLAPPED]) == (pytest.approx(0.6), 0)


def test_an_asynchronous_collective_ends_at_its_end_event() -> None:
    events = []
    for run in range(5):
        start = 100 * run
        events.append(op("all-reduce.1", start, start + 5, run, _p=run + 1))
        events.append(Event("end: all-reduce.1", start + 60, start + 60, {"_c": run + 1}))
    found = shares(host(events, steps(op("fusion", 90, 100))))
    assert found is not None and found[EXPOSED] == pytest.approx(0.6)


def test_lines_of_a_tpu_and_streams_of_a_gpu() -> None:
    tpu = Plane(
        "/device:TPU:0",
        [
            Line("XLA Modules", [Event("jit_step(1)", 100 * r, 100 * r + 80, {"run_id": r}) for r in range(5)]),
            Line(
                "XLA Ops",
                [
                    e
                    for r in range(5)
                    for e in (
                        Event("fusion.1", 100 * r, 100 * r + 60, {}),
                        Event("all-reduce.1", 100 * r + 60, 100 * r + 80, {}),
                    )
                ],
            ),
            Line("Steps", [Event("0", 0, 500, {})]),
        ],
    )
    found = shares([tpu, *host(steps(op("fusion", 0, 100)))])
    assert found == pytest.approx({COMPUTE: 0.6, OVERLAPPED: 0, EXPOSED: 0.2, MEMCPY: 0.0, IDLE: 0.2})
    gpu = Plane(
        "/device:GPU:0",
        [
            Line("Stream #1(Compute)", steps(op("gemm", 0, 40))),
            Line("Stream #2(MemcpyH2D)", [Event("MemcpyH2D", 100 * r + 40, 100 * r + 50, {}) for r in range(5)]),
        ],
    )
    found = shares([gpu])
    assert found == pytest.approx({COMPUTE: 0.4, OVERLAPPED: 0, EXPOSED: 0.0, MEMCPY: 0.1, IDLE: 0.5})


def test_a_trace_without_a_whole_step_gives_no_shares() -> None:
    assert shares(host([op("fusion", 0, 10)])) is None
    assert shares([]) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_an_xspace_or_a_value_error(data: bytes) -> None:
    try:
        xspace.read(data)
    except ValueError:
        pass


@given(st.integers(0, 4000), st.binary(min_size=1, max_size=8))
def test_a_damaged_trace_is_an_xspace_or_a_value_error(at: int, patch: bytes) -> None:
    whole = load("cpu_two_processes")[:6000]
    try:
        shares(xspace.read(whole[:at] + patch + whole[at + len(patch) :]))
    except ValueError:
        pass


def chrome(*events: object) -> bytes:
    return (
        b'{"schemaVersion": 1, "traceEvents": [' + b",\n".join(json.dumps(e).encode() for e in events) + b'], "z": 1}'
    )


def kernel(name: str, start: float, end: float, stream: int = 7, cat: str = "kernel") -> dict[str, object]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": start, "dur": end - start, "args": {}}


def test_kernels_of_pytorch() -> None:
    trace = chrome(
        kernel("void gemm", 0.0, 60.0),
        kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 40.0, 90.0, 20),
        kernel("Memcpy HtoD (Pinned -> Device)", 90.0, 95.0, 8, "gpu_memcpy"),
        kernel("void adam", 98.0, 100.0),
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 0, "dur": 900},
        {"ph": "i", "name": "Iteration Start", "ts": 1},
        kernel("void bad", 1e30, 2e30),
        {"ph": "X", "cat": ["kernel"], "name": "void bad", "pid": 0, "tid": 7, "ts": 0, "dur": 900},
    )
    found = shares(kineto.read([trace]))
    assert found == pytest.approx({COMPUTE: 0.42, OVERLAPPED: 0.2, EXPOSED: 0.3, MEMCPY: 0.05, IDLE: 0.03})


def test_a_recorded_trace_of_two_gpus(shared: Path) -> None:
    """Against plain sets of moments over its 3,116 kernels."""
    data = gzip.decompress((shared / "fixtures" / "kineto_h200_ddp2.json.gz").read_bytes())
    found = shares(kineto.read([data]))
    work = [e for e in json.loads(data)["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    start = min(e["ts"] for e in work)
    busy: dict[str, set[int]] = {"communication": set(), "compute": set()}
    for event in work:
        if event["cat"] == "kernel":
            kind = "communication" if "nccl" in event["name"] else "compute"
            first = event["ts"] - start
            busy[kind].update(range(round(first * 10), round((first + event["dur"]) * 10)))  # tenths of a microsecond
    total = (max(e["ts"] + e["dur"] for e in work) - start) * 10
    assert found is not None
    assert found[EXPOSED] == pytest.approx(len(busy["communication"] - busy["compute"]) / total, rel=0.02)
    assert found[COMPUTE] == pytest.approx(len(busy["compute"] - busy["communication"]) / total, rel=0.02)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_chrome_trace_or_a_value_error(data: bytes) -> None:
    for whole in (data, b'{"traceEvents": [' + data, chrome(kernel("a", 0, 1))[:-20] + data):
        try:
            kineto.read([whole])
        except ValueError:
            pass


@pytest.mark.parametrize("time", ["1" + "0" * 400, "-1", "1e400", "NaN", "Infinity", "true", '"5"', "null", "[]"])
def test_a_time_that_can_not_be_is_passed_over(time: str, tmp_path: Path) -> None:
    """Such a file once ended the reading of all traces of the pod."""
    whole = chrome(kernel("a", 0, 1))
    event = f'{{"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": {time}, "dur": 1}}, '
    data = whole.replace(b'"traceEvents": [', b'"traceEvents": [' + event.encode())
    assert kineto.read([data]) == kineto.read([whole])
    (tmp_path / "41.kineto.json").write_bytes(data)
    assert [pid for pid, _ in collector.collect(tmp_path)] == [41]


def test_the_name_of_a_file_says_how_many_steps_it_has(tmp_path: Path) -> None:
    whole = chrome(kernel("gemm", 0.0, 60.0), kernel("gemm", 100.0, 200.0))
    (tmp_path / "41.4.kineto.json").write_bytes(whole)
    (tmp_path / "42.kineto.json").write_bytes(whole)
    found = dict(collector.collect(tmp_path))
    assert (found[41].step, found[42].step) == (pytest.approx(50e-6), None)
    assert found[41].shares == found[42].shares and not list(tmp_path.iterdir())


def test_the_collector_reads_valid_traces_and_deletes_all_others(tmp_path: Path) -> None:
    (tmp_path / "41.xplane.pb").write_bytes(load("cpu_one_process"))
    (tmp_path / "42.xplane.pb").write_bytes(b"nonsense")
    (tmp_path / "43.xplane.pb").symlink_to("/etc/passwd")
    (tmp_path / "44.xplane.pb").write_bytes(b"")
    os.mkfifo(tmp_path / "45.xplane.pb")
    with (tmp_path / "46.xplane.pb").open("wb") as file:
        file.truncate(collector.MAX_BYTES["xplane.pb"] + 1)
    (tmp_path / "47.xplane.pb").mkdir()
    (tmp_path / "48.xplane.pb.tmp").write_bytes(b"half")
    assert [pid for pid, _ in collector.collect(tmp_path)] == [41]
    assert {path.name for path in tmp_path.iterdir()} == {"47.xplane.pb", "48.xplane.pb.tmp"}
    assert collector.collect(tmp_path / "absent") == []


def test_what_was_left_unfinished_is_deleted_after_ten_minutes(tmp_path: Path) -> None:
    """Files of a program that was killed while it wrote them; Kineto writes beside the name that it is given."""
    names = ("41.xplane.pb.tmp", "41.kineto.json.tmp", "41.kineto.json.tmp.tmp")
    for pid, age in (("41", 300), ("42", 900)):
        for name in names:
            path = tmp_path / name.replace("41", pid)
            path.write_bytes(b"half")
            os.utime(path, (time.time() - age,) * 2)
    (tmp_path / "43.kineto.json.tmp.tmp").symlink_to(tmp_path / "41.xplane.pb.tmp")
    os.utime(tmp_path / "43.kineto.json.tmp.tmp", (0, 0), follow_symlinks=False)
    assert collector.collect(tmp_path) == []
    assert {path.name for path in tmp_path.iterdir()} == set(names)


# A program changes its trace while the sidecar reads it: in a process of its own, which a signal may end.
_CHANGED = """
import os, sys
from pathlib import Path
from rightpool_profiler.traces import collector, {module}

path, read = Path(sys.argv[1]), {module}.read

def changed(data):
    {change}
    return read(data)

{module}.read = changed
print([pid for pid, _ in collector.collect(path.parent)], sorted(os.listdir(path.parent)))
"""


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("os.truncate(path, 0)", []),
        ("os.truncate(path, 300_000)", []),
        ("path.unlink(); os.mkfifo(path)", [41]),
        ("path.unlink(); path.symlink_to('/dev/zero')", [41]),
        ("os.truncate(path, 1 << 40)", [41]),
    ],
)
def test_a_trace_that_is_changed_while_it_is_read_ends_nothing(change: str, found: list[int], tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    path = folder / "41.kineto.json"
    path.write_bytes(chrome(*(kernel("a" * 60, 2 * at, 2 * at + 1) for at in range(20_000))))
    assert path.stat().st_size > 2_000_000
    ended = subprocess.run(
        [sys.executable, "-c", _CHANGED.format(module="kineto", change=change), str(path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{found} []\n"


@pytest.mark.parametrize("kind", collector.MAX_BYTES)
def test_a_trace_that_grows_is_read_up_to_its_limit(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a descriptor that the program has kept open."""
    monkeypatch.setitem(collector.MAX_BYTES, kind, 300_000)
    path = tmp_path / f"41.{kind}"
    path.write_bytes(chrome(kernel("a", 0, 1))[:-10])
    read = os.read

    def growing(handle: int, count: int) -> bytes:
        with path.open("ab") as file:
            file.write(b" " * 100_000)
        assert path.stat().st_size < 1_000_000, "it is read on and on"
        return read(handle, min(count, 100_000))

    monkeypatch.setattr(os, "read", growing)
    assert collector.collect(tmp_path) == []


def test_a_folder_of_traces_that_leads_elsewhere_is_left_alone(tmp_path: Path) -> None:
    """Else the program could have files of the sidecar deleted."""
    other = tmp_path / "kept"
    other.mkdir()
    (other / "41.xplane.pb").write_bytes(load("cpu_one_process"))
    (other / "newest.json.gz").write_bytes(b"kept")
    os.utime(other / "newest.json.gz", (0, 0))
    (tmp_path / "traces").symlink_to(other)
    assert collector.collect(tmp_path / "traces") == []
    assert len(list(other.iterdir())) == 2
