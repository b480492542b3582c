"""How long a program waits for cores that others have. Linux alone says so.

A thread that is ready and has no core makes no step, and that is nothing of the program's doing where others have the
core. Where the program's own threads have it, it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rightpool_profiler.report import Report

_PROC: Final = Path("/proc")
_WORKING: Final = (0, 1, 2, 5, 6)  # columns of /proc/stat: user, nice, system, irq and softirq
# Columns of /proc/PID/stat behind its name: of itself in user and kernel, and of children that have ended.
_SPENT: Final = slice(11, 15)


@dataclass(frozen=True, slots=True)
class CoreTimes:
    """Seconds so far, at one moment."""

    waited: float
    """That the threads which make steps were ready and had no core: a mean over these."""
    stepping: float
    """Processor time of these threads together."""
    program: float
    """Processor time of the whole program."""
    machine: float
    """Processor time of all that runs on this machine."""

    def taken_since(self, before: CoreTimes) -> float:
        """Seconds of waiting that are others' doing: by how much of what else ran was theirs."""
        own = self.program - before.program
        others = max(0.0, self.machine - before.machine - own)
        rivals = max(0.0, own - (self.stepping - before.stepping))
        waited = max(0.0, self.waited - before.waited)
        return waited * others / (others + rivals) if others > 0.0 else 0.0


def core_times(program: int, stepping: Sequence[Report]) -> CoreTimes | None:
    """Of a process with its children, of which some make steps, each in its first thread. None where that is not
    known."""
    waited = [one.thread_waited for one in stepping if one.thread_waited is not None]
    try:
        machine = [int(word) for word in _read("stat").split()[1:9]]
        spent = sum(_spent(one) for one in _with_children(program))
    except ValueError:
        return None
    if not waited or len(waited) < len(stepping) or not machine:
        return None
    tick = 1.0 / os.sysconf("SC_CLK_TCK")
    return CoreTimes(
        waited=sum(waited) / len(waited),
        stepping=sum(one.thread_cpu or 0.0 for one in stepping),
        program=spent * tick,
        machine=sum(machine[column] for column in _WORKING) * tick,
    )


def _read(path: str) -> str:
    """Empty where a process has gone, and where there is no such thing."""
    try:
        return (_PROC / path).read_text()
    except OSError:
        return ""


def _spent(process: int) -> int:
    return sum(map(int, _read(f"{process}/stat").rpartition(")")[2].split()[_SPENT]))


def _with_children(process: int) -> list[int]:
    found = [process]
    for one in found:  # grows meanwhile
        for thread in _PROC.glob(f"{one}/task/*"):
            found += map(int, _read(f"{one}/task/{thread.name}/children").split())
    return found
