"""Processes on a chip that are not the pod's: by real processes, and by NVML's answers as drivers give them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from rightpool_agent import chip_others  # type: ignore[import-not-found]

from tests.unit.profiler.test_agent_chips import Nvml

_HERE: Final = os.getpid()
_GONE: Final = 1 << 30  # no process here has so high an id, as is so of the host's in a container
_CHILD: Final = "print('is there', flush=True); input()"


@pytest.fixture(autouse=True)
def of_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod of the process beside which the tests ask, which was given its variable as it was started."""
    given = [one for one in Path("/proc/self/environ").read_bytes().split(b"\0") if b"=" in one]
    name, _, value = given[0].partition(b"=")
    monkeypatch.setattr(chip_others, "_VARIABLE", name.decode())
    monkeypatch.setenv(name.decode(), value.decode())
    monkeypatch.setattr(chip_others, "_EVERY", 0.0)


@contextmanager
def child(environment: dict[str, str], *before: str) -> Iterator[int]:
    command = [*before, sys.executable, "-c", _CHILD]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as one:
        assert one.stdout is not None and one.stdin is not None
        assert one.stdout.readline() == "is there\n"
        yield one.pid
        one.stdin.close()


def reading(*shares: tuple[int, int]) -> float | None:
    """Of a chip on which processes have these shares, in percent."""
    nvml = Nvml()
    nvml._answers["nvmlDeviceGetProcessUtilization"] = samples(*shares)
    found: float | None = chip_others.Others(nvml, "board").read()
    return found


def samples(*shares: tuple[int, int]) -> list[Any]:
    return [SimpleNamespace(pid=pid, smUtil=share, timeStamp=1) for pid, share in shares]


def test_own_processes_alone() -> None:
    assert reading((_HERE, 97)) == 0.0


def test_a_process_of_the_host_takes_its_share() -> None:
    """In a container, recent drivers leave such a process the id that it has on the host."""
    assert reading((_HERE, 60), (_GONE, 18), (_GONE + 1, 7)) == pytest.approx(0.25)


def test_a_driver_that_names_all_by_their_ids_on_the_host_says_nothing() -> None:
    assert reading((_GONE, 60), (_GONE + 1, 18)) is None


def test_what_can_not_be_so_is_left_out() -> None:
    assert reading((_HERE, 60), (_GONE, 4_000_000)) == 0.0


def test_several_samples_of_a_process_are_averaged() -> None:
    assert reading((_HERE, 60), (_GONE, 10), (_GONE, 30)) == pytest.approx(0.2)


def test_a_chip_on_which_nothing_runs() -> None:
    nvml = Nvml()
    nvml._answers["nvmlDeviceGetProcessUtilization"] = samples((_HERE, 60))
    others = chip_others.Others(nvml, "board")
    assert others.read() == 0.0
    others._nvml = SimpleNamespace(nvmlDeviceGetProcessUtilization=idle, NVMLError_NotFound=nvml.NVMLError_NotFound)
    assert others.read() == 0.0, "it is known that its own would be named"
    others._knows = False
    assert others.read() is None


def idle(*_: Any) -> None:
    raise Nvml.NVMLError_NotFound()


def test_a_chip_that_does_not_say_is_not_asked_again() -> None:
    others = chip_others.Others(Nvml("nvmlDeviceGetProcessUtilization"), "part")
    assert others.read() is None and others._broken


def test_a_child_is_ours_and_so_is_one_that_its_environment_was_taken_from() -> None:
    with child(dict(os.environ)) as pid:
        assert chip_others.is_ours(pid)
    with child({"PATH": os.environ.get("PATH", "")}) as pid:
        assert chip_others.is_ours(pid), "its parent is"


def test_a_process_of_another_pod_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where processes of several pods are seen, as with `hostPID`."""
    monkeypatch.setenv(chip_others._VARIABLE, "elsewhere")
    with child(dict(os.environ)) as pid:
        assert chip_others.is_ours(pid), "started with it"
    monkeypatch.setenv(chip_others._VARIABLE, "here")
    with child({"PATH": os.environ.get("PATH", "")}) as pid:
        assert not chip_others.is_ours(pid)


def test_one_that_is_gone_is_not_ours() -> None:
    assert not chip_others.is_ours(_GONE)
