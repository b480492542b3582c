"""PyTorch's C++ log is quiet while memory is recorded, and then as it was."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from rightpool_agent import torch_log  # type: ignore[import-not-found] # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def level() -> Iterator[Any]:
    """The level of this process' log."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    found = ctypes.c_int.in_dll(library, "FLAGS_caffe2_log_level")
    before = found.value
    found.value = 1
    yield found
    torch_log.restore()
    found.value = before


def test_warnings_are_left_out_for_a_while(level: Any) -> None:
    assert torch_log.silence() and level.value == 2
    assert torch_log.silence() and level.value == 2, "a second time"
    torch_log.restore()
    assert level.value == 1
    torch_log.restore()
    assert level.value == 1


@pytest.mark.parametrize(("own", "silent"), [(0, False), (2, True), (3, True)])
def test_a_level_of_the_programs_own_stays(level: Any, own: int, silent: bool) -> None:
    level.value = own
    assert torch_log.silence() is silent and level.value == own
    torch_log.restore()
    assert level.value == own


def test_a_level_that_the_program_sets_meanwhile_stays(level: Any) -> None:
    assert torch_log.silence()
    level.value = 3
    torch_log.restore()
    assert level.value == 3


def test_a_child_is_not_silent() -> None:
    """Such as a worker of a DataLoader, which outlives the trace."""
    program = (
        "import ctypes, os, torch, torch.autograd.profiler\n"
        "from rightpool_agent import torch_log, torch_trace\n"
        "torch_trace.install()\n"
        "library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), 'lib', 'libc10.so'))\n"
        "level = ctypes.c_int.in_dll(library, 'FLAGS_caffe2_log_level')\n"
        "assert torch_log.silence()\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(level.value)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), level.value)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "1 2\n"


@pytest.mark.parametrize("module", [SimpleNamespace(__file__="/nowhere/__init__.py"), SimpleNamespace(__file__=None)])
def test_a_build_that_has_it_elsewhere(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setitem(sys.modules, "torch", module)
    assert not torch_log.silence()


def test_what_pytorch_would_say() -> None:
    """Otherwise there is nothing to be silent about, and the level need not be raised."""
    program = "import torch; kept = torch.ones(1000)\nwith torch.profiler.profile(profile_memory=True): del kept\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Memory block of unknown size" in done.stderr
