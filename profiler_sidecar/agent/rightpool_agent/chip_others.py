"""How much of a chip's time goes to processes that are not this pod's.

NVML says of each process on the chip how busy it keeps the multiprocessors. A process is the pod's if it is seen here,
in the reader's own control group, and it or an ancestor has been given the pod's variable. So what the pod has left
behind by itself is the pod's, too.

Inside a container a driver names the container's processes by their ids here, and others by those of the host. An older
one names all by those of the host: then no process is ever known, and nothing is said. Nor is it on parts of a chip
that MIG has made, and in a virtual machine with a part of a chip, whose neighbours no driver names.
"""

from __future__ import annotations

import os
import time
from typing import Any

_EVERY = 5.0  # seconds
_VARIABLE = "RIGHTPOOL_SHARED_DIR"
_GENERATIONS = 64


class Others:
    """Of one chip."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._since = int(time.time() * 1e6)
        self._due = time.monotonic() + _EVERY
        self._knows = False  # whether a process of this pod was ever named
        self._broken = False

    def read(self) -> float | None:
        """Share of the time in which multiprocessors worked for others since the last reading; None where it is not
        known, and before the next one is due."""
        now = time.monotonic()
        if self._broken or now < self._due:
            return None
        self._due = now + _EVERY
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(self._handle, self._since)
        except self._nvml.NVMLError_NotFound:
            samples = []  # nothing has run
        except Exception:
            self._broken = True  # unsupported: do not try again
            return None
        used: dict[int, list[int]] = {}
        for sample in samples:
            self._since = max(self._since, int(sample.timeStamp))
            if sample.smUtil <= 100:  # some drivers put nonsense beside what is so
                used.setdefault(int(sample.pid), []).append(int(sample.smUtil))
        others = {pid: shares for pid, shares in used.items() if not is_ours(pid)}
        self._knows = self._knows or len(others) < len(used)
        if not self._knows:
            return None
        return min(1.0, sum(sum(shares) / len(shares) for shares in others.values()) / 100.0)


def is_ours(pid: int) -> bool:
    """Whether a process is of this pod. One that can't be seen is not."""
    mark = f"{_VARIABLE}={os.environ.get(_VARIABLE, '')}".encode()
    try:
        if _group(pid) != _group(os.getpid()):
            return False
        for _ in range(_GENERATIONS):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        return True
            except PermissionError:
                pass  # another user's: who started it tells
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
            if pid == 0:
                break
    except (OSError, ValueError, IndexError):
        pass
    return False


def _group(pid: int) -> str:
    with open(f"/proc/{pid}/cgroup") as file:
        return file.read()
