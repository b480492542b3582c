"""Picks up the traces that agents leave in the shared directory, and throws them away when read.

The directory belongs to the tenant as much as to the sidecar: names, sizes and contents are checked, links are not
followed, and what does not look right is deleted.
"""

import mmap
import os
import re
import stat
import time
from pathlib import Path
from typing import Final

from rightpool_profiler.traces import kineto, xspace
from rightpool_profiler.traces.shares import shares

MAX_BYTES: Final = {"xplane.pb": 4 << 20, "kineto.json": 64 << 20}  # the first is held in memory, the second is not
_NAME: Final = re.compile(r"(\d{1,10})\.(xplane\.pb|kineto\.json)")
_MAX_ENTRIES: Final = 512
_STALE: Final = 600.0  # seconds after which an unfinished file is a leftover


def collect(directory: Path) -> list[tuple[int, dict[str, float]]]:
    """(pid, shares of a step) of each finished trace. Blocks: run it in a thread."""
    found = []
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False)]
    except OSError:
        return []
    for name in names:
        path = directory / name
        match = _NAME.fullmatch(name)
        if match is None:
            _sweep(path)
            continue
        try:
            result = _analyse(path, match[2])
        except (OSError, ValueError):
            result = None
        finally:
            _remove(path)
        if result is not None:
            found.append((int(match[1]), result))
    return found


def _analyse(path: Path, kind: str) -> dict[str, float] | None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= MAX_BYTES[kind]:
            return None
        with mmap.mmap(handle, status.st_size, access=mmap.ACCESS_READ) as data:
            return shares(xspace.read(bytes(data)) if kind == "xplane.pb" else kineto.read(data))
    finally:
        os.close(handle)


def _sweep(path: Path) -> None:
    try:
        if time.time() - path.lstat().st_mtime > _STALE:
            path.unlink()
    except OSError:
        pass


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass
