"""Traces that the program's own thread takes, as on a GPU: real JAX on the CPU, whose agent takes the CPU for one.

Whether they do a program on a real GPU no harm is for tests/gpu/check_jax_trace_threads.py and check_agent_jax.py.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from rightpool import contract
from tests.integration.profiler.conftest import Pod
from tests.integration.profiler.test_profiler_trace import chrome_trace, served
from tests.integration.profiler.test_profiler_trace_jax import Program, capturing
from tests.patience import PATIENCE

pytestmark = pytest.mark.jax

# A thread that computes beside the one that trains.
_BESIDE = """
import threading
other = jax.jit(lambda x: x * 2 + 1)
def compute():
    while not os.path.exists(stop): other(jnp.ones((8, 8))); time.sleep(0.005)
threading.Thread(target=compute).start()
"""


@pytest.fixture
def as_gpu(pod: Pod) -> Pod:
    pod.alter("jax_trace.py", {'_GPUS = frozenset({"gpu",': '_GPUS = frozenset({"cpu", "gpu",'})
    # On a CPU the operations themselves are what the host does.
    pod.alter("jax_gpu_trace.py", {"options.host_tracer_level = 1": "options.host_tracer_level = 2"})
    return pod


def long_trace(pod: Pod) -> None:
    pod.alter("jax_trace.py", {"\nSTEPS = 5": "\nSTEPS = 1 << 30"})
    pod.alter("jax_gpu_trace.py", {"_LONGEST = 10.0": "_LONGEST = 1e6"})


def test_a_trace_holds_whole_calls(as_gpu: Pod, tmp_path: Path) -> None:
    program = Program(as_gpu, tmp_path)
    alone = program.bare(LAST="900")
    running = program.start(LAST="900")
    answer = served(as_gpu, "first")
    assert answer["state"] == contract.TRACE_CAPTURED, answer
    events = chrome_trace(as_gpu, "first", answer)
    (mark,) = (event for event in events if event["name"] == contract.TRACE_MARK)
    calls = mark["args"]["calls"]
    assert calls >= 5 and mark["args"] == {"function": "train", "steps": 1, "calls": calls}
    runs = {event["args"]["run_id"] for event in events if event.get("args", {}).get("hlo_module") == "jit_train"}
    assert len(runs) == calls == answer["summary"]["steps"], "each call that was counted, and no other"
    assert served(as_gpu, "second")["state"] == contract.TRACE_CAPTURED
    assert program.end(running) == alone, "losses are the same bit by bit"


def test_a_program_that_computes_from_two_threads(as_gpu: Pod, tmp_path: Path) -> None:
    program = Program(as_gpu, tmp_path, _BESIDE)
    running = program.start()
    answer = served(as_gpu, "one")
    assert (answer["state"], answer["reason"]) == (contract.TRACE_FAILED, "JaxOnGPU")
    program.end(running)


def test_a_call_that_records_too_much(as_gpu: Pod, tmp_path: Path) -> None:
    as_gpu.alter("jax_trace.py", {"\nREQUESTED_BYTES = 12 << 20": "\nREQUESTED_BYTES = 1 << 10"})
    program = Program(as_gpu, tmp_path)
    running = program.start()
    answer = served(as_gpu, "one")
    assert (answer["state"], answer["reason"]) == (contract.TRACE_FAILED, "TooLarge")
    program.end(running)


def test_a_trace_ends_before_it_is_too_large(as_gpu: Pod, tmp_path: Path) -> None:
    long_trace(as_gpu)
    as_gpu.alter("jax_trace.py", {"\nREQUESTED_BYTES = 12 << 20": "\nREQUESTED_BYTES = 1 << 19"})
    program = Program(as_gpu, tmp_path)
    running = program.start()
    answer = served(as_gpu, "one")
    assert answer["state"] == contract.TRACE_CAPTURED and answer["summary"]["steps"] >= 2, answer
    program.end(running)


@pytest.mark.parametrize("where", ["the same thread", "another thread"])
def test_the_program_begins_its_own_trace_meanwhile(as_gpu: Pod, tmp_path: Path, where: str) -> None:
    long_trace(as_gpu)
    go = tmp_path / "go"
    before = f"""
import glob, tempfile, threading
folder, real, own = tempfile.mkdtemp(), time.sleep, []
def begin():
    own.append(jax.profiler.start_trace(folder))
def sleep(s):
    if os.path.exists({str(go)!r}) and not own and threading.current_thread() is threading.main_thread():
        {"begin()" if where == "the same thread" else "own.append(threading.Thread(target=begin)); own[0].start()"}
    real(s)
time.sleep = sleep
"""
    after = "[one.join() for one in own if one]\njax.profiler.stop_trace()\n"
    after += "assert glob.glob(folder + '/**/*.xplane.pb', recursive=True)"
    program = Program(as_gpu, tmp_path, before, after)
    running = program.start()
    assert as_gpu.post({"id": "one", "rank": 0}, path=contract.PATH_TRACE)[0] == 202
    capturing(as_gpu, "one")
    begun = as_gpu.metrics()[contract.STEPS] + 400  # four seconds, of which it watches two
    as_gpu.until(lambda: as_gpu.metrics().get(contract.STEPS, 0) >= begun)
    go.touch()
    answer = served(as_gpu, "one")
    assert (answer["state"], answer["reason"]) == (contract.TRACE_FAILED, "ProgramProfiles")
    program.end(running)


@pytest.mark.parametrize("handler", ["none", "exits"])
def test_a_program_that_is_ended_in_the_middle(as_gpu: Pod, tmp_path: Path, handler: str) -> None:
    long_trace(as_gpu)
    before = "import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))" if handler == "exits" else ""
    program = Program(as_gpu, tmp_path, before)
    running = program.start()
    assert as_gpu.post({"id": "one", "rank": 0}, path=contract.PATH_TRACE)[0] == 202
    capturing(as_gpu, "one")
    begun = as_gpu.metrics()[contract.STEPS] + 400
    as_gpu.until(lambda: as_gpu.metrics().get(contract.STEPS, 0) >= begun)
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err) == (3 if handler == "exits" else -signal.SIGTERM, "", "")


def test_a_program_that_makes_no_more_steps(as_gpu: Pod, tmp_path: Path) -> None:
    as_gpu.alter("trace_schedule.py", {"_REQUESTED_LONGEST = 90.0": "_REQUESTED_LONGEST = 1.0"})
    program = Program(as_gpu, tmp_path)
    running = program.start(LAST="20")
    as_gpu.until(lambda: as_gpu.metrics().get(contract.STEPS, 0) >= 20)
    assert served(as_gpu, "one")["reason"] == "NoSteps"
    program.end(running)
