"""What a summary says of a trace agrees with XLA's own tool, xprof, whose answers are recorded in fixtures/xprof.json.

With RIGHTPOOL_TEST_XPROF, the path of the command `xprof` (2.24 or newer), it is asked again.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from rightpool import contract
from tests.patience import PATIENCE

from .test_xla_summary import FIXTURES, MARK, converted, span, xspace

COMMAND: Final = os.environ.get("RIGHTPOOL_TEST_XPROF", "")
RECORDED: Final[dict[str, dict[str, Any]]] = json.loads((FIXTURES / "xprof.json").read_text())
_DOT: Final = "%dot.1 = f32[256,256]{1,0} dot(f32[256,256]{1,0} %a, f32[256,256]{1,0} %b)"
_COPY: Final = "%copy.2 = f32[256,256]{1,0} copy(f32[256,256]{1,0} %dot.1)"
_REDUCE: Final = "%all-reduce.3 = f32[256,256]{1,0} all-reduce(f32[256,256]{1,0} %copy.2)"


def tpu() -> bytes:
    """Six steps in the form of a TPU: XLA says the costs of an operation with its name."""
    costs = {
        name: {"flops": flops, "bytes_accessed": size, "program_id": 7, "symbol_id": number}
        for number, (name, flops, size) in enumerate(
            ((_DOT, 6_000_000, 30_000), (_COPY, 0, 400_000), (_REDUCE, 0, 1_000)), 1
        )
    }
    starts = [100 * run for run in range(6)]
    modules = [span("jit_step(7)", at, at + 80, run_id=run) for run, at in enumerate(starts)]
    work = [
        span(name, at + begin, at + end)
        for at in starts
        for name, begin, end in ((_DOT, 0, 50), (_COPY, 50, 65), (_REDUCE, 65, 80))
    ]
    planes = {"/device:TPU:0": {"XLA Modules": modules, "XLA Ops": work}, "/host:CPU": {"python": [MARK]}}
    return xspace(planes, costs)


def recorded(name: str) -> bytes:
    return gzip.decompress((FIXTURES / f"{name}.xplane.pb.gz").read_bytes())


TRACES: Final = {"cpu_one_process": recorded("cpu_one_process"), "gpu_h100": recorded("gpu_h100"), "tpu": tpu()}
_RUN: Final = "ThunkExecutor::Execute"  # of a program on a CPU


def test_a_cpu() -> None:
    """The summary leaves the first run out, which may have begun before the trace, and xprof does not."""
    found = converted(TRACES["cpu_one_process"])[0]
    events = {one["event"]: one for one in RECORDED["cpu_one_process"]["aggregates"]}
    run = events.pop(_RUN)
    runs = run["count"] - 1
    busy = 1 - found.parts[contract.PART_IDLE]
    assert busy * found.seconds / runs * 1e12 == pytest.approx(run["total_duration_ps"] / run["count"], rel=0.01)
    longest = sorted(events.values(), key=lambda one: -one["total_duration_ps"])
    assert [one.name for one in found.operations] == [one["event"] for one in longest[:10]]
    for one in found.operations:
        event = events[one.name]
        assert (one.count, runs + 1) == (runs, event["count"]), one.name
        mean = event["total_duration_ps"] / event["count"]
        assert one.share * found.seconds / one.count * 1e12 == pytest.approx(mean, rel=0.02), one.name


def test_a_gpu() -> None:
    """Where kernels overlap, which is 2 µs here, xprof counts the time of both, and the summary that of one."""
    found, answer = converted(TRACES["gpu_h100"])[0], RECORDED["gpu_h100"]
    assert found.seconds * 1e3 == pytest.approx(answer["total_self_time_ms_all_records"], rel=1e-5)
    busy = 1 - found.parts[contract.PART_IDLE]
    assert busy * found.seconds * 1e3 == pytest.approx(answer["total_device_duration_ms"], rel=1e-5)
    assert found.memory is not None
    assert found.memory.peak / 2**30 == pytest.approx(answer["peak_memory_usage_gib"], abs=0.005)
    longest = answer["kernel_records"]
    assert [(one.name, one.count) for one in found.operations] == [
        (one["kernel_name"], one["execution_count"]) for one in longest
    ]
    for one, kernel in zip(found.operations, longest, strict=True):
        assert one.share * found.seconds * 1e6 == pytest.approx(kernel["total_duration_us"], abs=2.2), one.name


def test_the_form_of_a_tpu() -> None:
    """The summary has the four whole steps, xprof all six."""
    found, answer = converted(TRACES["tpu"])[0], RECORDED["tpu"]
    assert found.steps == 4
    points = {one["name"]: one for one in answer["top_operations"]}
    profiled = {one["name"].rpartition("//")[2]: one for one in answer["top_by_time"]}
    assert {one.name for one in found.operations} == points.keys()
    for one in found.operations:
        point, profile = points[one.name], profiled[one.name]
        seconds = profile["total_self_time_ms"] / 1e3
        assert one.share * found.seconds / one.count == pytest.approx(seconds / profile["occurrences"]), one.name
        assert (one.flops or 0) == pytest.approx(profile["flops"] / seconds), one.name
        assert (one.flops or 0) / (one.bytes or 1) == pytest.approx(point["operational_intensity_flop_per_byte"])
    moved = sum((one.bytes or 0) * one.share * found.seconds / one.count for one in found.operations) * 6
    elapsed = answer["program"]["total_time_ms"] / 1e3
    assert moved / elapsed / 2**30 == pytest.approx(answer["program"]["measured_memory_bw_gibs"], abs=0.005)


_TOOLS: Final = (
    ("get_device_time_attribution",),
    ("get_top_hlo_ops",),
    ("get_roofline_model",),
    ("get_memory_profile",),
    ("aggregate_xplane_events", f"--event_regex=^(wrapped_|multiply_|bitcast_|ynn_|dot$|{_RUN}$)"),
)


def answers_of(folder: Path) -> dict[str, Any]:
    """What xprof says of a folder of traces."""
    answers: dict[str, Any] = {}
    for tool, *options in _TOOLS:
        command = [COMMAND, tool, str(folder), *options]
        answers |= json.loads(subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True).stdout)
    return answers


@pytest.mark.skipif(not COMMAND, reason="RIGHTPOOL_TEST_XPROF names no command `xprof`")
@pytest.mark.parametrize("name", TRACES)
def test_what_is_recorded_is_what_it_says(name: str, tmp_path: Path) -> None:
    run = tmp_path / "plugins" / "profile" / "first"
    run.mkdir(parents=True)
    (run / "rank-0.xplane.pb").write_bytes(TRACES[name])
    answers = answers_of(tmp_path)
    assert {key: _like(answers[key], value) for key, value in RECORDED[name].items()} == RECORDED[name]


def _like(answer: Any, recorded: Any) -> Any:
    """The answer, with the fields alone that were recorded."""
    if isinstance(recorded, dict):
        return {key: _like(answer[key], value) for key, value in recorded.items()}
    if isinstance(recorded, list):
        return [_like(*pair) for pair in zip(answer, recorded, strict=True)]
    return answer
