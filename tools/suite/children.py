"""Runs a command with its output in a log, and ends it with all its children on silence or an interrupt."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from tools.suite.parts import Command

MARK: Final = "RIGHTPOOL_SUITE_COMMAND"
# Containers often set it. A run starts hundreds of Pythons, and without compiled modules each takes twice as long to
# import what it needs.
NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"
# A test that has ended is in the log at once: silence is what a command is ended for.
UNBUFFERED: Final = {"PYTHONUNBUFFERED": "1"}
LOOK_SECONDS: Final = 0.1
# Where the suite itself is killed, the command is interrupted by the kernel.
ENDS_WITH_SUITE: Final[Command] = ("setpriv", "--pdeathsig", "INT", "--")


class End(Enum):
    """How a command ended."""

    BY_ITSELF = "by itself"
    SILENT = "silent"
    LATE = "late"
    INTERRUPTED = "interrupted"


class Ended(NamedTuple):
    """status: the exit status, negative after a signal. cpu: seconds of processor time, also of all children that were
    waited for. The programs of a cluster are not among them."""

    how: End
    status: int
    cpu: float


def run(
    command: Command,
    log: Path,
    *,
    seconds: float,
    most: float = math.inf,
    environment: Mapping[str, str] = os.environ,
    stop: threading.Event | None = None,
    grace: float = 60.0,
) -> Ended:
    """Returns how it ended. Its output is appended to the log.

    seconds: without any output, after which it is ended. How long it takes in all depends on what else the machine
    does; what hangs says nothing. most: seconds in all, where there is no more time than that.

    It inherits the lock on the clusters, so that another suite waits for its end even where this one was killed. On
    silence, an interrupt, or when its time is over it gets SIGINT, upon which pytest reports its position and tears its
    fixtures down. After `grace` seconds it is killed with all processes that it started, in its process group or
    outside.
    """
    mark = uuid.uuid4().hex
    kept = {name: value for name, value in environment.items() if name != NO_BYTECODE}
    with log.open("ab") as output:
        try:
            child = subprocess.Popen(
                ENDS_WITH_SUITE + command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**kept, **UNBUFFERED, MARK: mark},
                process_group=0,
                close_fds=False,
            )
        except OSError as error:
            output.write(f"{error.filename}: {error.strerror}\n".encode())
            return Ended(End.BY_ITSELF, 127, 0.0)
    began = time.monotonic()
    size, written_at = -1, began
    while True:
        cpu = _cpu_of_ended(child, LOOK_SECONDS)
        if cpu is not None:
            return Ended(End.BY_ITSELF, child.returncode, cpu)
        if stop is not None and stop.is_set():
            end = End.INTERRUPTED
            break
        if time.monotonic() - began > most:
            end = End.LATE
            break
        before, size = size, log.stat().st_size
        if size != before:
            written_at = time.monotonic()
        elif time.monotonic() - written_at > seconds:
            end = End.SILENT
            break
    _signal_group(child, signal.SIGINT)
    cpu = _cpu_of_ended(child, grace)
    _signal_group(child, signal.SIGKILL)
    for pid in _marked(mark):
        _kill(pid)
    while cpu is None:
        cpu = _cpu_of_ended(child, grace)
    return Ended(end, child.returncode, cpu)


def _cpu_of_ended(child: subprocess.Popen[bytes], seconds: float) -> float | None:
    """Wait for its end as `Popen.wait` does, which does not tell the processor time. None if it has not ended."""
    deadline = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        pass


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _marked(mark: str) -> Iterator[int]:
    """Processes that inherited the mark, including those in other sessions."""
    wanted = f"{MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:  # ended meanwhile, or of another user
            continue
        if wanted in variables:
            yield int(path.parent.name)
