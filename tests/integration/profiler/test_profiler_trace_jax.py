"""Traces that a user asks for, of real JAX programs on several devices of the CPU, through a real agent and sidecar.

RIGHTPOOL_TEST_PYTHONS names more Pythons, separated by colons, with other versions of JAX.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from rightpool import contract
from rightpool.api.trace import Trace, TraceState
from rightpool.cli.trace_files import fetch_xspaces
from rightpool.planning.jobs.job import JobKey
from rightpool.runtime.act.trace_answers import read_answer
from rightpool_profiler.traces import xspace
from tests.integration.profiler.conftest import PATIENCE, Pod, clean_environment
from tests.integration.profiler.test_profiler_trace import chrome_trace, chrome_traces, sent, served

pytestmark = pytest.mark.jax

# Prints the losses bit by bit. The file named STOP ends it, at the step that LAST names, so that runs can be compared.
_PROGRAM: Final = """
import hashlib, os, sys, time
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("data",))
whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
weights = [jax.device_put(jnp.full((128, 128), 0.01 * (i + 1)), whole) for i in range(3)]

def loss(weights, x):
    for w in weights: x = jnp.tanh(x @ w)
    return (x ** 2).mean()

@jax.jit
def train(weights, x):
    value, grads = jax.value_and_grad(loss)(weights, x)
    return [w - 0.1 * g for w, g in zip(weights, grads)], value

stop, last = os.environ["STOP"], int(os.environ.get("LAST", "0"))
losses, step = [], 0
{before}
while not (os.path.exists(stop) and step >= last):
    if step < last or not last:
        x = jax.device_put(np.full((64, 128), 1 + step % 7, np.float32), cut)
        weights, value = train(weights, x)
        losses.append(float(value).hex())
        step += 1
    time.sleep(0.01)
{after}
print(hashlib.sha256(" ".join(losses[:last] if last else []).encode()).hexdigest(), flush=True)
"""
_PYTHONS: Final = (sys.executable, *filter(None, os.environ.get("RIGHTPOOL_TEST_PYTHONS", "").split(":")))
_DEVICES: Final = 4
_FLAGS: Final = f"--xla_force_host_platform_device_count={_DEVICES}"


class Program:
    def __init__(self, pod: Pod, folder: Path, before: str = "", after: str = "") -> None:
        self.pod = pod
        self.stop = folder / "stop"
        self.script = folder / "program.py"
        self.script.write_text(_PROGRAM.format(before=before, after=after))

    def start(self, python: str = sys.executable, **environment: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [python, str(self.script)],
            env=self.pod.environment(XLA_FLAGS=_FLAGS, STOP=str(self.stop), **environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        self.pod.programs.append(program)
        self.pod.until(lambda: program.poll() is not None or self.pod.metrics().get(contract.STEPS, 0) >= 3)
        return program

    def end(self, program: subprocess.Popen[str]) -> str:
        """What the program prints: it has run on as if nothing had happened, and said nothing else."""
        self.stop.touch()
        out, err = program.communicate(timeout=PATIENCE)
        assert (program.returncode, err) == (0, "")
        return out

    def bare(self, python: str = sys.executable, **environment: str) -> str:
        """What it prints without the agent."""
        self.stop.touch()
        result = subprocess.run(
            [python, str(self.script)],
            env=clean_environment(XLA_FLAGS=_FLAGS, STOP=str(self.stop), **environment),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd="/",
        )
        assert (result.returncode, result.stderr) == (0, "")
        self.stop.unlink()
        return result.stdout


@pytest.mark.parametrize("python", _PYTHONS)
def test_a_trace_of_a_program_on_four_devices(pod: Pod, tmp_path: Path, python: str) -> None:
    program = Program(pod, tmp_path)
    running = program.start(python)
    answer = served(pod, "first")
    assert answer["state"] == contract.TRACE_CAPTURED, answer
    summary = answer["summary"]
    assert summary["on"] == "host" and summary["steps"] >= 2
    assert sum(summary["parts"].values()) == pytest.approx(1.0)
    assert summary["parts"].keys() == {
        contract.PART_COMPUTE,
        contract.PART_OVERLAPPED_COMMUNICATION,
        contract.PART_EXPOSED_COMMUNICATION,
        contract.PART_IDLE,
    }, "what XLA does not say is absent"
    assert summary["parts"][contract.PART_IDLE] * summary["seconds"] >= summary["steps"] * 0.01, (
        "it sleeps in each step"
    )
    (collective,) = summary["collectives"]
    assert collective["name"] == "all-reduce" and 0 < collective["exposed"] <= collective["share"] < 1
    # Each device is read over its own whole steps. A trace that begins within one holds one more of some devices.
    assert _DEVICES * (summary["steps"] - 1) < collective["count"] <= _DEVICES * summary["steps"], "one in each step"
    assert any(one["name"].startswith("dot") for one in summary["operations"])
    events = chrome_trace(pod, "first", answer)
    (mark,) = (event for event in events if event["name"] == contract.TRACE_MARK)
    assert mark["args"] == {"function": "train", "steps": 1}
    seen = {
        event["args"]["device_ordinal"] for event in events if event.get("args", {}).get("hlo_module") == "jit_train"
    }
    assert seen == set(range(_DEVICES))
    (read,) = read_answer(json.dumps(answer)).ranks
    assert read.summary is not None and read.summary.steps == summary["steps"], "the operator believes it"
    assert served(pod, "first") == answer, "a repeated request is the same one"
    second = served(pod, "second")
    assert second["state"] == contract.TRACE_CAPTURED and second["sha256"] != answer["sha256"]
    assert sent(pod, "first")[0] == 1, "the next one has taken its place"
    assert len(list(pod.kept.iterdir())) == 3, "what was answered, the file, and what XLA has written"
    assert not list((pod.shared / "traces").glob("*requested*")), "the program's side keeps none"
    pod.restart_sidecar()
    assert served(pod, "second") == second, "it is not taken again"
    program.end(running)


class SendsXspace:
    """In place of a pod: what its sidecar sends of a trace."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod

    def container_output(self, *arguments: Any, silence: float) -> Iterator[bytes]:
        *_, identity, which = arguments[3]
        assert which == "xspace"
        yield sent(self._pod, identity, of_xla=True)[1]


def test_a_folder_for_xprof(pod: Pod, tmp_path: Path) -> None:
    """With RIGHTPOOL_TEST_XPROF, the path of the command `xprof` (2.24 or newer), it is read by it."""
    program = Program(pod, tmp_path)
    running = program.start()
    answer = served(pod, "first")
    program.end(running)
    trace = Trace("first", TraceState.CAPTURED, 1.8e9, 0, 1, "pod-1", sha256=answer["sha256"])
    folder = tmp_path / "xprof"
    (path,) = fetch_xspaces(SendsXspace(pod), JobKey("vision", "job"), trace, folder)  # type: ignore[arg-type]
    written = path.read_bytes()
    (plane,) = (head.plane for head in xspace.heads([written]) if head.plane.name == "/host:CPU")
    assert plane.lines and contract.TRACE_MARK.encode() in written
    assert b"/host:metadata" in written and b"jit_train" in written, "with the HLO of the program"
    command = os.environ.get("RIGHTPOOL_TEST_XPROF")
    for tool in ("get_overview", "get_memory_profile", "list_xplane_lines", "get_peak_allocations") if command else ():
        done = subprocess.run([str(command), tool, str(folder)], capture_output=True, timeout=PATIENCE, check=True)
        found = json.loads(done.stdout)
        assert found["capture"]["run"] == "first" and found["capture"]["files_used"] == ["rank-0"], tool
        if tool == "get_peak_allocations":
            modules = {one["module_name"].partition("(")[0]: one["total_hbm_mib"] for one in found["modules"]}
            weights = 3 * 128 * 128 * 4 / 2**20
            assert 2 * weights < modules["jit_train"] < 4 * weights, "old ones, new ones, and what is between"


def test_the_losses_are_the_same_bit_by_bit(pod: Pod, tmp_path: Path) -> None:
    program = Program(pod, tmp_path)
    alone = program.bare(LAST="300")
    running = program.start(LAST="300")
    for identity in ("one", "two"):
        assert served(pod, identity)["state"] == contract.TRACE_CAPTURED
    assert program.end(running) == alone


def long_trace(pod: Pod) -> None:
    """A trace that lasts until something ends it."""
    pod.alter("jax_trace.py", {"\nSTEPS = 5": "\nSTEPS = 1 << 30", "_ENOUGH = 10.0": f"_ENOUGH = {PATIENCE}"})
    pod.alter("trace_schedule.py", {"_REQUESTED_LONGEST = 90.0": f"_REQUESTED_LONGEST = {PATIENCE}"})


def capturing(pod: Pod, identity: str) -> None:
    """The agent has begun the trace."""
    pod.until(lambda: pod.post({"id": identity, "rank": 0}, path=contract.PATH_TRACE)[1]["state"] == "capturing")


_OWN: Final = """
import glob, tempfile
folder = tempfile.mkdtemp()
def traced(): return len(glob.glob(folder + "/**/*.xplane.pb", recursive=True))
"""


@pytest.mark.parametrize("python", _PYTHONS)
@pytest.mark.parametrize("how", ["jax.profiler", "a session below it", "a server"])
def test_the_programs_own_profiler_goes_first(pod: Pod, tmp_path: Path, how: str, python: str) -> None:
    begin, end = {
        "jax.profiler": ("jax.profiler.start_trace(folder)", "jax.profiler.stop_trace(); assert traced() == 1"),
        "a session below it": (
            "from jax._src.lib import _profiler\nown = _profiler.ProfilerSession(_profiler.ProfileOptions())",
            "assert own.stop()",
        ),
        "a server": ("import socket\njax.profiler.start_server(socket.create_server(('', 0)).getsockname()[1])", ""),
    }[how]
    program = Program(pod, tmp_path, _OWN + begin, end)
    running = program.start(python)
    answer = served(pod, "one")
    assert (answer["state"], answer["reason"]) == (contract.TRACE_FAILED, "ProgramProfiles")
    program.stop.touch()
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err  # XLA's server says where it listens


@pytest.mark.parametrize("python", _PYTHONS)
def test_the_program_begins_its_own_trace_meanwhile(pod: Pod, tmp_path: Path, python: str) -> None:
    long_trace(pod)
    go = tmp_path / "go"
    before = f"{_OWN}\nreal = time.sleep\ndef sleep(s):\n    if os.path.exists({str(go)!r}) and not own:\n        "
    before += (
        "own.append(jax.profiler.start_trace(folder))\n    real(s)\nown = []\ntime.sleep = sleep"  # between two steps
    )
    program = Program(pod, tmp_path, before, "jax.profiler.stop_trace(); assert traced() == 1")
    running = program.start(python)
    assert pod.post({"id": "one", "rank": 0}, path=contract.PATH_TRACE)[0] == 202
    capturing(pod, "one")
    go.touch()
    answer = served(pod, "one")
    assert (answer["state"], answer["reason"]) == (contract.TRACE_FAILED, "ProgramProfiles")
    program.end(running)


@pytest.mark.parametrize("handler", ["none", "exits"])
def test_a_program_that_is_ended_in_the_middle(pod: Pod, tmp_path: Path, handler: str) -> None:
    long_trace(pod)
    stacks = tmp_path / "stacks"
    before = f"import faulthandler, signal; faulthandler.register(signal.SIGUSR2, open({str(stacks)!r}, 'w'))\n"
    if handler == "exits":
        before += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))"
    program = Program(pod, tmp_path, before)
    running = program.start()
    assert pod.post({"id": "one", "rank": 0}, path=contract.PATH_TRACE)[0] == 202
    capturing(pod, "one")
    running.send_signal(signal.SIGTERM)
    try:
        out, err = running.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGUSR2)
        pod.until(lambda: stacks.stat().st_size > 0)
        pytest.fail("the program does not end:\n" + stacks.read_text())
    assert (running.returncode, out, err) == (3 if handler == "exits" else -signal.SIGTERM, "", "")


def test_a_program_that_makes_no_more_steps(pod: Pod, tmp_path: Path) -> None:
    pod.alter("trace_schedule.py", {"_REQUESTED_LONGEST = 90.0": "_REQUESTED_LONGEST = 1.0"})
    program = Program(pod, tmp_path)
    running = program.start(LAST="20")
    pod.until(lambda: pod.metrics().get(contract.STEPS, 0) >= 20)
    assert served(pod, "one")["reason"] == "NoSteps"
    program.end(running)


def test_a_program_that_compiles_in_each_step(pod: Pod, tmp_path: Path) -> None:
    """Another shape each time, so that no interval is a step's: the trace is had, or the reason why not."""
    before = "rows = iter(range(8, 1 << 20, 8))\nfull = np.full\n"
    before += "np.full = lambda shape, *a: full((next(rows), shape[1]), *a)"
    pod.alter("trace_request.py", {"_LASTS = 240.0": "_LASTS = 10.0"})
    program = Program(pod, tmp_path, before)
    running = program.start()
    answer = served(pod, "one")
    assert (answer["state"], answer["reason"]) in (
        (contract.TRACE_CAPTURED, ""),
        (contract.TRACE_FAILED, "NoSteps"),
    )
    program.end(running)


def test_two_requests_at_once(pod: Pod, tmp_path: Path) -> None:
    program = Program(pod, tmp_path)
    running = program.start()
    for identity in ("one", "two"):
        assert pod.post({"id": identity, "rank": 0}, path=contract.PATH_TRACE)[0] == 202
    answer = served(pod, "two")
    assert answer["state"] == contract.TRACE_CAPTURED, "the newer one counts"
    chrome_trace(pod, "two", answer)
    assert len(list(pod.kept.iterdir())) == 3, "what was answered, the file, and what XLA has written"
    program.end(running)


@pytest.mark.parametrize("name", ["made.tmp", "copy.tmp"])
def test_a_full_volume_of_the_sidecar(pod: Pod, tmp_path: Path, name: str) -> None:
    program = Program(pod, tmp_path)
    running = program.start()
    (pod.kept / name).symlink_to("/dev/full")
    answer = served(pod, "one")
    assert (answer["state"], answer["reason"]) == (contract.TRACE_FAILED, "NoSpace")
    assert served(pod, "two")["state"] == contract.TRACE_CAPTURED, "what was in the way is gone with the attempt"
    program.end(running)


def test_all_ranks_of_two_processes(pod: Pod, tmp_path: Path) -> None:
    """They compute by themselves, as the ranks of a search for parameters do."""
    programs = [Program(pod, tmp_path) for _ in range(2)]
    running = [program.start(JAX_PROCESS_ID=str(rank), JAX_NUM_PROCESSES="2") for rank, program in enumerate(programs)]
    assert served(pod, "one", 1)["state"] == contract.TRACE_CAPTURED, "the second one makes steps now, too"
    answer = served(pod, "all", contract.TRACE_ALL)
    assert answer["state"] == contract.TRACE_CAPTURED, answer
    assert [(one["rank"], one["reason"]) for one in answer["ranks"]] == [(0, ""), (1, "")]
    for events in chrome_traces(pod, "all", answer["ranks"]):
        assert any(event["name"] == contract.TRACE_MARK for event in events)
    for program, process in zip(programs, running, strict=True):
        program.end(process)


def test_a_version_that_would_say_so_on_stderr(pod: Pod, tmp_path: Path) -> None:
    pod.alter("jax_trace.py", {"_SINCE = (0, 8)": "_SINCE = (1 << 30, 0)"})
    program = Program(pod, tmp_path)
    running = program.start()
    assert served(pod, "one")["reason"] == "UnsupportedVersion"
    program.end(running)
