"""How a trace of a PyTorch program is kept cheap: what is left out, and when it is written and freed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch")
from rightpool_agent import torch_teardown, torch_trace, trace_schedule  # type: ignore[import-not-found] # noqa: E402

pytestmark = pytest.mark.torch

# A pass waits inside until what it lets through is done: where that came before or after it, the program would not end.
_PROGRAM: Final = """
import os, sys, threading, time
import torch
import torch.autograd.profiler
sys.path.append(sys.argv[2])
from rightpool_agent import torch_steps, torch_trace

PATIENCE = 900.0
torch_trace._PASS_WITHIN = PATIENCE
torch_steps._wrap_backward(sys.modules["torch.autograd"])
torch_trace.install()
torch_steps.platform = "cpu"
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

def loss():
    return net(torch.ones(2, 4)).sum()

session = torch_trace.begin_requested()
while not session.ended:
    loss().backward()
    optimizer.step()
    torch_trace.on_step(session)

happened = []

class Result:
    def __init__(self, result): self.result = result
    def save(self, path):
        self.result.save(path)
        happened.append("written")
    def __del__(self): happened.append("freed")

session.result = Result(session.result)
agent = threading.Thread(target=torch_trace.finish, args=(session, sys.argv[1]))
agent.start()

def until(condition):
    late = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < late, happened
        time.sleep(0.001)

def inside(what):
    until(lambda: torch_trace.awaited is not None)
    print(*happened, "then", end=" ")
    end = loss()
    end.register_hook(lambda _: until(lambda: what in happened))
    end.backward()

inside("written")
inside("freed")
agent.join()
print(*happened, os.path.getsize(sys.argv[1]) > 0)
"""


def test_a_result_is_written_and_freed_while_the_program_is_inside_backward_passes(tmp_path: Path) -> None:
    """PyTorch holds the interpreter's lock meanwhile, and in a pass the program does not need it."""
    agent = Path(torch_trace.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": ""}  # nothing of the agent is at work but what the program calls
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "trace.json"), str(agent)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "then written then written freed True\n"), done.stderr


def test_a_program_that_ends_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_trace, "_PASS_WITHIN", 3600.0)
    monkeypatch.setattr(torch_trace, "_leaving", False)
    torch_trace.leave()
    torch_trace._await_pass(torch_trace.Session())
    assert torch_trace.awaited is None


def test_the_programs_own_thread_does_not_wait_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_trace, "_PASS_WITHIN", 3600.0)
    session = torch_trace.Session()
    session.thread = threading.get_ident()
    torch_trace._await_pass(session)
    assert torch_trace.awaited is None


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyTorch's profiler, of a program on a CPU."""
    monkeypatch.setitem(sys.modules, "rightpool_agent.torch_steps", SimpleNamespace(platform="cpu"))
    monkeypatch.setattr(torch_trace.torch_log, "silence", lambda: True)
    return sys.modules["torch.autograd.profiler"]


def test_what_nobody_reads_is_not_made(on_cpu: Any) -> None:
    """Of stacks, modules and arithmetic nothing is recorded, and no object is made of an operation."""
    profiler = torch_trace._profiler(on_cpu, True)
    assert (profiler.with_stack, profiler.with_modules, profiler.with_flops) == (False, False, False)
    assert profiler.record_shapes and profiler.profile_memory
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 15):
        assert profiler.experimental_config.trace_only


@pytest.mark.parametrize("known", [("disable_external_correlation",), ()])
def test_a_pytorch_that_can_leave_out_less(
    on_cpu: Any, monkeypatch: pytest.MonkeyPatch, known: tuple[str, ...]
) -> None:
    def config(**options: bool) -> dict[str, bool]:
        if not known or set(options) - set(known):
            raise TypeError("incompatible constructor arguments")
        return options

    module = ModuleType("torch._C._profiler")
    module._ExperimentalConfig = config  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch._C._profiler", module)
    assert torch_trace._lean() == (dict.fromkeys(known, True) or None)


def test_passes_of_two_threads_that_begin_at_once_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the last report of a program that ends then would be lost."""
    released = threading.Lock()
    monkeypatch.setattr(torch_trace, "awaited", released)
    torch_trace.passes()
    assert torch_trace.awaited is None


def test_a_trace_on_request_has_no_more_steps_than_begin_in_a_short_time(on_cpu: Any, tmp_path: Path) -> None:
    """What a step costs to record, and to end, goes by how much it does: four long ones would be seconds."""
    session = torch_trace.begin_requested()
    assert not isinstance(session, str)
    for _ in range(3):
        torch_trace.on_step(session)
        time.sleep(2 * torch_trace._ENOUGH)
    assert session.ended and session.result is not None
    torch_trace.abandon(session)
    assert session.took >= 2 * torch_trace._ENOUGH
    schedule = trace_schedule.Schedule(str(tmp_path))
    schedule._usual = 0.75 * session.took
    assert schedule._cost(session) == pytest.approx(0.25 * session.took), "beyond what its one step takes"
    schedule._usual = None
    assert schedule._cost(session) is None


_ENDING: Final = """
import ctypes, os, sys, threading, time
import torch
import torch.autograd.profiler
sys.path.append(sys.argv[2])
from rightpool_agent import torch_log, torch_steps, torch_trace

torch_trace.install()
torch_steps.platform = "cpu"
net = torch.nn.Linear(4, 4)
level = ctypes.c_int.in_dll(ctypes.CDLL(torch_log._path()), "FLAGS_caffe2_log_level")

def forked():
    child = os.fork()
    if not child:
        os._exit(level.value)  # as children of multiprocessing do
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def open_a_trace():
    session = torch_trace.begin_requested()
    torch_trace.on_step(session)
    net(torch.ones(2, 4)).sum().backward()
    assert session.profiler is not None and not session.ended

if sys.argv[1] == "thread":
    one = threading.Thread(target=open_a_trace)
    one.start()
    one.join()
else:
    open_a_trace()
    assert forked() > 0, "no signal"
    assert torch_trace.session.ended
    torch_trace.abandon(torch_trace.session)
    assert level.value == 1 and torch_log.silence() and level.value == 2
    assert (forked(), level.value) == (1, 2), "a child, such as a worker of a DataLoader, outlives the trace"
    open_a_trace()
torch_trace.leave()
"""


@pytest.mark.parametrize("way", ["thread", "fork and exit"])
def test_a_program_and_its_children_end_though_a_trace_is_open(way: str) -> None:
    """PyTorch's profiler may crash, or wait for ever, as a process ends within a trace. A child is not silent."""
    agent = Path(torch_trace.__file__).parents[1]
    command = [sys.executable, "-c", _ENDING, way, str(agent)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""}, timeout=900)
    assert done.returncode == 0, done.stderr


def test_kineto_is_asked_to_tear_cupti_down_no_longer_than_our_trace_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profiler of the program's own, or of its children, would make them wait for ever at their end."""
    asked = []
    monkeypatch.setattr(os, "putenv", lambda *named: asked.append(named))
    monkeypatch.setattr(os, "unsetenv", lambda *named: asked.append(named))
    stopped = torch_teardown.end(lambda: asked.append("stopped") or "result")
    assert stopped == "result"
    assert asked == [("TEARDOWN_CUPTI", "1"), "stopped", ("TEARDOWN_CUPTI",)]


def test_the_end_of_a_trace_waits_for_the_thread_that_tears_cupti_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """It calls CUDA until then, for which that thread waits."""
    called, gone = threading.Event(), threading.Event()

    def wait() -> None:
        called.wait()
        gone.set()

    cuda = SimpleNamespace(_C=SimpleNamespace(_cuda_getDevice=called.set))
    monkeypatch.setitem(sys.modules, "torch", cuda)
    monkeypatch.setattr(torch_teardown, "_LONGEST", 900.0)
    torch_teardown.end(threading.Thread(target=wait, daemon=True).start)
    assert gone.is_set() and not torch_teardown._waiting
