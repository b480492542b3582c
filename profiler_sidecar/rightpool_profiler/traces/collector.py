"""Picks up the traces that agents leave in the shared directory, and throws them away when read.

The directory belongs to the tenant as much as to the sidecar: names, sizes and contents are checked, links are not
followed, and what does not look right is deleted. A file may change while it is read, so it is read and never mapped:
of a mapped one that shrinks the kernel ends the reader by a signal.
"""

import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rightpool_profiler.traces import kineto, xspace
from rightpool_profiler.traces.shares import shares
from rightpool_profiler.traces.xspace import Plane

MAX_BYTES: Final = {"xplane.pb": 4 << 20, "kineto.json": 64 << 20}  # the first is held in memory, the second is not
_NAME: Final = re.compile(r"(\d{1,10})(?:\.(\d{1,6}))?\.(xplane\.pb|kineto\.json)")  # process, steps, kind
_MAX_ENTRIES: Final = 512
_CHUNK: Final = 256 * 1024
_STALE: Final = 600.0  # seconds after which an unfinished file is a leftover


class Traced(NamedTuple):
    """What a trace says of a step."""

    shares: dict[str, float]
    """Of its time, by part."""
    step: float | None
    """Seconds that one took while it was traced; None where the trace does not say how many there were."""


def collect(directory: Path) -> list[tuple[int, Traced]]:
    """The process of each finished trace, and what it says. Blocks: run it in a thread."""
    try:
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return []
    try:
        return _collect(folder)
    except OSError:
        return []
    finally:
        os.close(folder)


def _collect(folder: int) -> list[tuple[int, Traced]]:
    found = []
    with os.scandir(folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False)]
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            _sweep(folder, name)
            continue
        try:
            result = _analyse(folder, name, match[3], int(match[2] or 0))
        except (OSError, ValueError):
            result = None
        finally:
            _remove(folder, name)
        if result is not None:
            found.append((int(match[1]), result))
    return found


def _analyse(folder: int, name: str, kind: str, steps: int) -> Traced | None:
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= MAX_BYTES[kind]:
            return None
        chunks = _chunks(handle, MAX_BYTES[kind])
        planes = xspace.read(b"".join(chunks)) if kind == "xplane.pb" else kineto.read(chunks)
        found = shares(planes)
        return None if found is None else Traced(found, _extent(planes) / steps if steps else None)
    finally:
        os.close(handle)


def _extent(planes: list[Plane]) -> float:
    """Seconds of the longest device, from its first to its last moment of work; times are nanoseconds."""
    devices = [[event for line in plane.lines for event in line.events] for plane in planes]
    return max(max(one.end for one in events) - min(one.start for one in events) for events in devices if events) / 1e9


def _chunks(handle: int, most: int) -> Iterator[bytes]:
    """The file, which may have become shorter or longer. Raises ValueError beyond `most` bytes."""
    while chunk := os.read(handle, _CHUNK):
        most -= len(chunk)
        if most < 0:
            raise ValueError("the trace is too large")
        yield chunk


def _sweep(folder: int, name: str) -> None:
    try:
        if time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > _STALE:
            os.unlink(name, dir_fd=folder)
    except OSError:
        pass


def _remove(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        pass
