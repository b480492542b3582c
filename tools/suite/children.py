"""Runs a command with its output in a log, and ends it with all its children on a timeout or interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Final

from tools.suite.parts import Command

MARK: Final = "RIGHTPOOL_SUITE_COMMAND"
# Containers often set it. A run starts hundreds of Pythons, and without compiled modules each takes twice as long to
# import what it needs.
NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"
LOOK_SECONDS: Final = 0.1


class End(Enum):
    """How a command ended."""

    BY_ITSELF = "by itself"
    TOO_LONG = "too long"
    INTERRUPTED = "interrupted"


def run(
    command: Command,
    log: Path,
    *,
    seconds: float,
    environment: Mapping[str, str] = os.environ,
    stop: threading.Event | None = None,
    grace: float = 60.0,
) -> tuple[End, int]:
    """Returns how it ended and its exit status, negative after a signal. Its output is appended to the log.

    On a timeout or interrupt it gets SIGINT, upon which pytest reports its position and tears its fixtures down. After
    `grace` seconds it is killed with all processes that it started, in its process group or outside.
    """
    mark = uuid.uuid4().hex
    kept = {name: value for name, value in environment.items() if name != NO_BYTECODE}
    with log.open("ab") as output:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**kept, MARK: mark},
                process_group=0,
            )
        except OSError as error:
            output.write(f"{command[0]}: {error.strerror}\n".encode())
            return End.BY_ITSELF, 127
    deadline = time.monotonic() + seconds
    while True:
        try:
            return End.BY_ITSELF, child.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        if stop is not None and stop.is_set():
            end = End.INTERRUPTED
            break
        if time.monotonic() > deadline:
            end = End.TOO_LONG
            break
    _signal_group(child, signal.SIGINT)
    try:
        child.wait(grace)
    except subprocess.TimeoutExpired:
        pass
    _signal_group(child, signal.SIGKILL)
    for pid in _marked(mark):
        _kill(pid)
    return end, child.wait()


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
