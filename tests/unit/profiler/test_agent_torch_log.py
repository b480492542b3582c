"""PyTorch's C++ log is quiet while memory is recorded, and then as it was."""

from __future__ import annotations

import ctypes
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


@pytest.mark.parametrize("module", [SimpleNamespace(__file__="/nowhere/__init__.py"), SimpleNamespace(__file__=None)])
def test_a_build_that_has_it_elsewhere(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setitem(sys.modules, "torch", module)
    assert not torch_log.silence()


def test_what_pytorch_would_say(capfd: pytest.CaptureFixture[str]) -> None:
    """Otherwise there is nothing to be silent about, and the level need not be raised."""
    kept = torch.ones(1000)
    with torch.autograd.profiler.profile(profile_memory=True):
        del kept
    assert "Memory block of unknown size" in capfd.readouterr().err
