"""Reads XLA's profile (`XSpace`, a protocol buffer) without a protobuf library.

Only what the shares need: planes, lines, events with their names, and the few statistics that say which operation of
which run an event is. The file comes from the tenant's side of the pod, so every length is checked and every error is
a ValueError.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

# Statistics worth decoding; the rest is skipped unread.
_KEPT: Final = frozenset({"hlo_op", "hlo_module", "run_id", "device_ordinal", "_p", "_c"})
_MAX_EVENTS: Final = 2_000_000

Value = int | str


@dataclass(frozen=True, slots=True)
class Event:
    """One span on a line. Times are picoseconds since the line's start epoch, made absolute."""

    name: str
    start: int
    end: int
    stats: Mapping[str, Value]


_NO_STATS: Final[Mapping[str, Value]] = {}


@dataclass(slots=True)
class Line:
    """One thread of the host, or one stream or unit of a device."""

    name: str
    events: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class Plane:
    """The host, or one device."""

    name: str
    lines: list[Line] = field(default_factory=list)


def read(data: bytes | memoryview) -> list[Plane]:
    """All planes of a serialized XSpace."""
    try:
        return [
            _plane(value) for number, value in _fields(memoryview(data)) if number == 1 and not isinstance(value, int)
        ]
    except (IndexError, KeyError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not an XSpace: {error!r}") from error


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
        if shift > 63:
            raise ValueError("varint longer than 64 bits")


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, integer or bytes) of one message. 32-bit fields do not occur and are passed as bytes."""
    at, size = 0, len(data)
    while at < size:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind == 1:
            length = 8
        elif kind == 5:
            length = 4
        else:
            raise ValueError(f"wire type {kind}")
        if at + length > size:
            raise ValueError("field longer than its message")
        yield key >> 3, data[at : at + length]
        at += length


def _text(value: int | memoryview) -> str:
    return "" if isinstance(value, int) else bytes(value).decode("utf-8", "replace")


def _plane(data: memoryview) -> Plane:
    name = ""
    lines: list[memoryview] = []
    events: dict[int, str] = {}
    stats: dict[int, str] = {}
    for number, value in _fields(data):
        if number == 2:
            name = _text(value)
        elif isinstance(value, int):
            continue
        elif number == 3:
            lines.append(value)
        elif number == 4:
            _metadata(value, events)
        elif number == 5:
            _metadata(value, stats)
    plane = Plane(name)
    kept = {identity: text for identity, text in stats.items() if text in _KEPT}
    for line in lines:
        plane.lines.append(_line(line, events, kept, stats))
    return plane


def _metadata(entry: memoryview, names: dict[int, str]) -> None:
    """One entry of a map from id to a message whose field 2 is the name."""
    identity, name = 0, ""
    for number, value in _fields(entry):
        if number == 1 and isinstance(value, int):
            identity = value
        elif number == 2 and not isinstance(value, int):
            for inner, text in _fields(value):
                if inner == 2:
                    name = _text(text)
    names[identity] = name


def _line(data: memoryview, names: dict[int, str], kept: dict[int, str], texts: dict[int, str]) -> Line:
    line = Line("")
    epoch = 0
    spans: list[memoryview] = []
    for number, value in _fields(data):
        if number == 2:
            line.name = _text(value)
        elif number == 3 and isinstance(value, int):
            epoch = value * 1000
        elif number == 4 and not isinstance(value, int):
            spans.append(value)
    if len(spans) > _MAX_EVENTS:
        raise ValueError(f"{len(spans)} events on one line")
    for span in spans:
        line.events.append(_event(span, epoch, names, kept, texts))
    return line


def _event(data: memoryview, epoch: int, names: dict[int, str], kept: dict[int, str], texts: dict[int, str]) -> Event:
    identity = offset = duration = 0
    stats: dict[str, Value] = {}
    for number, value in _fields(data):
        if isinstance(value, int):
            if number == 1:
                identity = value
            elif number == 2:
                offset = value
            elif number == 3:
                duration = value
        elif number == 4:
            _stat(value, stats, kept, texts)
    start = epoch + offset
    return Event(names.get(identity, ""), start, start + duration, stats or _NO_STATS)


def _stat(data: memoryview, stats: dict[str, Value], kept: dict[int, str], texts: dict[int, str]) -> None:
    name: str | None = None
    for number, value in _fields(data):
        if number == 1 and isinstance(value, int):
            name = kept.get(value)
            if name is None:
                return
        elif name is None:
            continue
        elif number == 7 and isinstance(value, int):
            stats[name] = texts.get(value, "")  # a reference to a shared string
        elif number in (3, 4) and isinstance(value, int):
            stats[name] = value
        elif number == 5:
            stats[name] = _text(value)
