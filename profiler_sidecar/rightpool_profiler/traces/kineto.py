"""Reads the GPU's work out of a Chrome trace that PyTorch's profiler has written.

The file is read event by event, because a whole one in memory would be larger than the sidecar. Kernels and copies
become the streams of a device, the form in which XLA's traces come too; everything of the host is passed over.
"""

import json
import math
import mmap
from collections.abc import Iterator
from typing import Any, Final

from rightpool_profiler.traces.xspace import Event, Line, Plane

_MARK: Final = b'"traceEvents": ['
_CHUNK: Final = 256 * 1024
_MAX_EVENT: Final = 64 * 1024  # bytes of one event
_MAX_SPANS: Final = 200_000
_DEVICE_WORK: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_NAME_LENGTH: Final = 80  # a kernel's template arguments may fill a page, and say nothing here
_SPACE: Final = " \t\r\n,"


def read(data: mmap.mmap | bytes) -> list[Plane]:
    """One plane per device with the spans of its streams. Times are nanoseconds. Raises ValueError."""
    devices: dict[int, dict[int, Line]] = {}
    count = 0
    names: dict[str, str] = {}
    for event in _events(data):
        category = event.get("cat")
        if event.get("ph") != "X" or not isinstance(category, str) or category not in _DEVICE_WORK:
            continue
        device, stream = event.get("pid"), event.get("tid")
        start, duration = _nanoseconds(event.get("ts")), _nanoseconds(event.get("dur"))
        if not isinstance(device, int) or not isinstance(stream, int) or start is None or duration is None:
            continue
        count += 1
        if count > _MAX_SPANS or len(devices) > 64:
            raise ValueError("more work than a short trace can hold")
        name = str(event.get("name"))[:_NAME_LENGTH]
        line = devices.setdefault(device, {}).setdefault(stream, Line(f"Stream #{stream}"))
        line.events.append(Event(names.setdefault(name, name), start, start + duration, {}))
    return [Plane(f"/device:GPU:{device}", list(streams.values())) for device, streams in devices.items()]


def _nanoseconds(microseconds: Any) -> int | None:
    if isinstance(microseconds, bool) or not isinstance(microseconds, (int, float)):
        return None
    return round(microseconds * 1000) if math.isfinite(microseconds) and 0 <= microseconds < 1e18 else None


def _events(data: mmap.mmap | bytes) -> Iterator[dict[str, Any]]:
    at = data.find(_MARK)
    if at < 0:
        raise ValueError("no events")
    at += len(_MARK)
    decoder = json.JSONDecoder()
    pending = ""
    while True:
        pending = pending.lstrip(_SPACE)
        if pending.startswith("]"):
            return
        try:
            event, end = decoder.raw_decode(pending)
        except (ValueError, RecursionError) as error:
            if len(pending) > _MAX_EVENT + _CHUNK or at >= len(data):
                raise ValueError(f"not an event: {pending[:40]!r}") from error
            pending += data[at : at + _CHUNK].decode("utf-8", "replace")
            at += _CHUNK
            continue
        if isinstance(event, dict):
            yield event
        pending = pending[end:]
