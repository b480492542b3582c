"""Facts of the operating system about this process: identity, CPU time and memory."""

from __future__ import annotations

import os
import time
from typing import Any

_RANKS = ("RANK", "JAX_PROCESS_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX")
_WORLDS = ("WORLD_SIZE", "JAX_NUM_PROCESSES", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def facts() -> dict[str, Any]:
    """Identity, `cpu` seconds since the start (with ended children), `memory` bytes resident, at monotonic `at`; of the
    first thread, `thread_cpu` seconds and `thread_waited`: that it was ready and had no core."""
    times = os.times()
    found: dict[str, Any] = {
        "pid": os.getpid(),
        "start": _start_ticks(),
        "rank": rank(),
        "world": world(),
        "at": time.monotonic(),
        "cpu": times.user + times.system + times.children_user + times.children_system,
    }
    found.update(_thread_times())
    if memory := resident():
        found["memory"] = memory
    limit = _memory_limit()
    if limit is not None:
        found["memory_limit"] = limit
    return found


def rank() -> int:
    """This process' rank by its launcher's environment; 0 without a launcher."""
    for name in _RANKS:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return 0


def world() -> int:
    """Processes of this program by its launcher's environment; 1 without a launcher."""
    for name in _WORLDS:
        value = os.environ.get(name, "")
        if value.isdigit():
            return max(1, int(value))
    return 1


def _start_ticks() -> int:
    """Clock ticks from boot to this process' start: with the pid, unique in the pod."""
    try:
        with open("/proc/self/stat") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _thread_times() -> dict[str, float]:
    """Nothing where the system does not say."""
    try:
        with open("/proc/self/schedstat") as file:
            ran, waited = file.read().split()[:2]
        return {"thread_cpu": int(ran) * 1e-9, "thread_waited": int(waited) * 1e-9}
    except (OSError, ValueError):
        return {}


def _memory_limit() -> int | None:
    """Memory limit of this container in bytes; None without a limit."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < 1 << 60:  # in cgroup v1 an enormous number means no limit
            return int(text)
    return None


def resident() -> int:
    """Bytes of memory that are resident; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def most_resident() -> int:
    """The most that ever were, since the program's file was executed."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return 0


def memory_left() -> int | None:
    """Bytes that this container may use beyond what can't be given back; None without a limit."""
    limit = _memory_limit()
    for folder, usage, cache in (
        ("/sys/fs/cgroup", "memory.current", "inactive_file"),
        ("/sys/fs/cgroup/memory", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            with open(f"{folder}/{usage}") as file:
                used = int(file.read())
            with open(f"{folder}/memory.stat") as file:
                found = dict(line.split() for line in file)
        except (OSError, ValueError):
            continue
        return None if limit is None else limit - used + int(found.get(cache, 0))
    return None
