"""Reads the GPU's work out of a Chrome trace that PyTorch's profiler has written.

The file is read event by event, because a whole one in memory would be larger than the sidecar. Kernels and copies
become the streams of a device, the form in which XLA's traces come too; everything of the host is passed over.
"""

import codecs
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rightpool_profiler.traces.xspace import Event, Line, Plane

_MARK: Final = b'"traceEvents": ['
_DEVICES: Final = '"deviceProperties":'
_CHUNK: Final = 256 * 1024  # bytes: files come in such pieces
_MAX_EVENT: Final = 64 * 1024  # bytes of one event
_MAX_HEAD: Final = 1 << 20  # bytes before the first event
_MAX_SPANS: Final = 200_000
_DEVICE_WORK: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_NAME_LENGTH: Final = 80  # a kernel's template arguments may fill a page, and say nothing here
_SPACE: Final = re.compile(r"[ \t\r\n,]*")


def read(chunks: Iterable[bytes]) -> list[Plane]:
    """One plane per device with the spans of its streams. Times are nanoseconds. Raises ValueError."""
    devices: dict[int, dict[int, Line]] = {}
    count = 0
    names: dict[str, str] = {}
    for event in events(chunks):
        category = event.get("cat")
        if event.get("ph") != "X" or not isinstance(category, str) or category not in _DEVICE_WORK:
            continue
        device, stream = event.get("pid"), event.get("tid")
        start, duration = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        if not isinstance(device, int) or not isinstance(stream, int) or start is None or duration is None:
            continue
        count += 1
        if count > _MAX_SPANS or len(devices) > 64:
            raise ValueError("more work than a short trace can hold")
        name = str(event.get("name"))[:_NAME_LENGTH]
        line = devices.setdefault(device, {}).setdefault(stream, Line(f"Stream #{stream}"))
        line.events.append(Event(names.setdefault(name, name), start, start + duration, {}))
    return [Plane(f"/device:GPU:{device}", list(streams.values())) for device, streams in devices.items()]


def nanoseconds(microseconds: Any) -> int | None:
    if isinstance(microseconds, bool) or not isinstance(microseconds, (int, float)):
        return None
    # Compared before anything is computed: JSON has numbers that no float holds.
    return round(microseconds * 1000) if 0 <= microseconds < 1e18 else None


def events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The events of a trace, one after the other. Raises ValueError where it is none, or ends before its last event."""
    _, rest = opened(chunks)
    yield from events_of(rest)


def opened(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """What stands before the events, and the rest from the first event on. Raises ValueError where there are none."""
    source = iter(chunks)
    head = b""
    while (at := head.find(_MARK)) < 0:
        chunk = next(source, b"")
        if not chunk or len(head) > _MAX_HEAD:
            raise ValueError("no events")
        head += chunk
    begun = head[at + len(_MARK) :]
    return head[:at], itertools.chain((begun,) if begun else (), source)


def device_memory(head: bytes) -> dict[int, int]:
    """Bytes of each GPU by its number, as the file says before its events."""
    _, found, text = head.decode("utf-8", "replace").partition(_DEVICES)
    try:
        devices, _ = json.JSONDecoder().raw_decode(text.lstrip()) if found else ([], 0)
    except (ValueError, RecursionError):
        devices = []
    known = {}
    for device in devices if isinstance(devices, list) else ():
        number, size = (device.get(name) for name in ("id", "totalGlobalMem")) if isinstance(device, dict) else (0, 0)
        if isinstance(number, int) and isinstance(size, int) and number >= 0 and 0 < size < 1 << 50:
            known[number] = size
    return known


def events_of(source: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """The same of the rest of a file. Raises ValueError where it ends before its last event."""
    decoder, text = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")("replace")
    pending = ""
    place = 0
    while True:
        between = _SPACE.match(pending, place)
        place = place if between is None else between.end()
        if pending.startswith("]", place):
            return
        try:
            event, place = decoder.raw_decode(pending, place)
        except (ValueError, RecursionError) as error:
            left = len(pending) - place
            chunk = next(source, b"") if left <= _MAX_EVENT + _CHUNK else b""
            if not chunk:
                raise ValueError(f"not an event: {pending[place : place + 40]!r}") from error
            pending, place = pending[place:] + text.decode(chunk), 0
            continue
        if isinstance(event, dict):
            yield event
