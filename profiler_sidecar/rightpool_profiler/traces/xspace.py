"""Reads XLA's profile (`XSpace`, a protocol buffer) without a protobuf library.

A file is read twice, since the names of events come after the events: first all that lies around them (`heads`), then
the events one after the other (`events`). Neither holds more than one event. The file comes from the tenant's side of
the pod, so every length is checked and every error is a ValueError.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

# Statistics that the shares need; the rest is skipped unread.
NEEDED: Final = frozenset(
    {"hlo_op", "hlo_module", "program_id", "run_id", "device_ordinal", "_p", "_c", "function", "steps", "calls"}
)
FLOPS: Final = "flops"
BYTES: Final = "bytes_accessed"
_COSTS: Final = frozenset({FLOPS, BYTES})  # of each execution of an operation, which XLA says once, with the name
_MAX_EVENTS: Final = 2_000_000  # where all of them are held
_MAX_LINES: Final = 100_000  # with planes
_MAX_NAMES: Final = 100_000  # of events and statistics, in all planes
_MAX_NUMBERS: Final = 200_000  # that belong to names, of a plane
_LONGEST_NUMBER: Final = 24  # bytes
_MAX_MESSAGE: Final = 1 << 20  # bytes of one event, or of one name with what belongs to it
_NAME_LENGTH: Final = 160  # on TPUs a name is the text of a whole operation

Value = int | float | str


@dataclass(frozen=True, slots=True)
class Event:
    """One span on a line. Times are picoseconds since the line's start epoch, made absolute."""

    name: str
    """Of the operation or step."""
    start: int
    """When it began."""
    end: int
    """When it was over."""
    stats: Mapping[str, Value]
    """What else the trace says of it, by name."""


_NO_STATS: Final[Mapping[str, Value]] = {}


@dataclass(slots=True)
class Line:
    """One thread of the host, or one stream or unit of a device."""

    name: str
    """Such as `XLA Ops` or that of a thread."""
    events: list[Event] = field(default_factory=list)
    """In the order of the file."""
    epoch: int = 0
    """Picoseconds: of this line's events."""


@dataclass(slots=True)
class Plane:
    """The host, or one device."""

    name: str
    """Such as `/device:GPU:0` or `/host:CPU`."""
    lines: list[Line] = field(default_factory=list)
    """In the order of the file."""


@dataclass(slots=True)
class Head:
    """A plane without its events."""

    plane: Plane
    """With its lines, of which none has events yet."""
    names: dict[int, str] = field(default_factory=dict)
    """Of events."""
    statistics: dict[int, str] = field(default_factory=dict)
    """Names of statistics, and texts that several events have."""
    costs: dict[int, dict[str, Value]] = field(default_factory=dict)
    """FLOPS and BYTES of each event of a name."""


def read(data: bytes) -> list[Plane]:
    """All planes of a serialized XSpace, with their events. Raises ValueError."""
    found = heads([data])
    for count, (plane, line, event) in enumerate(events([data], found)):
        if count >= _MAX_EVENTS:
            raise ValueError(f"more than {_MAX_EVENTS} events")
        found[plane].plane.lines[line].events.append(event)
    return [head.plane for head in found]


def heads(chunks: Iterable[bytes]) -> list[Head]:
    """The planes and lines of a file, and the names of their events. Raises ValueError."""
    source, found = _Source(chunks), list[Head]()
    left = [_MAX_NAMES, _MAX_LINES]
    for end in _planes(source):
        head, numbers = Head(Plane("")), list[tuple[int, bytes]]()
        left[1] -= 1
        for number, value, size in source.fields(end):
            if value is not None:
                continue
            if number == 2:
                head.plane.name = _text(source.take(size))
            elif number == 3:
                head.plane.lines.append(_line(source, source.at + size))
                left[1] -= 1
            elif number in (4, 5) and size <= _MAX_MESSAGE:
                identity, about = _name(source.take(size), head.names if number == 4 else head.statistics)
                if number == 4 and len(numbers) + len(about) <= _MAX_NUMBERS:
                    numbers.extend((identity, one) for one in about)
                left[0] -= 1
            else:
                source.skip(size)
            if min(left) < 0:
                raise ValueError("more names or lines than a short trace can have")
        if min(left) < 0:
            raise ValueError("more planes than a short trace can have")
        kept = {identity: text for identity, text in head.statistics.items() if text in _COSTS}
        for identity, one in numbers if kept else ():
            _statistic(one, head.costs.setdefault(identity, {}), kept, {})
        found.append(head)
    return found


def events(
    chunks: Iterable[bytes], found: list[Head], wanted: Callable[[str], bool] = NEEDED.__contains__
) -> Iterator[tuple[int, int, Event]]:
    """(plane, line, event) of each event of the same file; the first two are places in what `heads` has found.

    wanted: which statistics an event is to have. Raises ValueError.
    """
    source = _Source(chunks)
    for plane, end in enumerate(_planes(source)):
        if plane >= len(found):
            raise ValueError("the file has changed")
        head, line = found[plane], -1
        kept = {identity: text for identity, text in head.statistics.items() if wanted(text)}
        costs = head.costs if wanted(FLOPS) else {}
        for number, value, size in source.fields(end):
            if number != 3 or value is not None:
                source.skip(size)
                continue
            line += 1
            if line >= len(head.plane.lines):
                raise ValueError("the file has changed")
            epoch = head.plane.lines[line].epoch
            for inner, value, length in source.fields(source.at + size):
                if inner != 4 or value is not None:
                    source.skip(length)
                elif length > _MAX_MESSAGE:
                    raise ValueError(f"an event of {length} bytes")
                else:
                    yield plane, line, _event(source.take(length), epoch, head, kept, costs)


# --- parts of a file -------------------------------------------------------------------------------------------------


class _Source:
    """The bytes of a file, in pieces."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._data = b""
        self._place = 0
        self._before = 0  # bytes in front of `data`

    @property
    def at(self) -> int:
        """Bytes read so far."""
        return self._before + self._place

    def ended(self) -> bool:
        while self._place >= len(self._data):
            if not self._more():
                return True
        return False

    def varint(self) -> int:
        result = shift = 0
        while True:
            if self._place >= len(self._data) and self.ended():
                raise ValueError("the file ends within a number")
            byte = self._data[self._place]
            self._place += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7
            if shift > 63:
                raise ValueError("varint longer than 64 bits")

    def take(self, size: int) -> bytes:
        """At most _MAX_MESSAGE bytes."""
        if size > _MAX_MESSAGE:
            raise ValueError(f"a name of {size} bytes")
        while len(self._data) - self._place < size:
            left = self._data[self._place :]
            self._before, self._place = self.at, 0
            chunk = next(self._chunks, b"")
            if not chunk:
                raise ValueError("field longer than its message")
            self._data = left + chunk
        self._place += size
        return self._data[self._place - size : self._place]

    def skip(self, size: int) -> None:
        while size > len(self._data) - self._place:
            size -= len(self._data) - self._place
            self._place = len(self._data)
            if not self._more():
                raise ValueError("field longer than its message")
        self._place += size

    def fields(self, end: int | None) -> Iterator[tuple[int, int | None, int]]:
        """(field number, value, bytes that follow) of a message that ends there; None: with the file. The value is that
        of a number; of all else the caller reads the bytes, or passes over them."""
        while (self.at < end) if end is not None else not self.ended():
            key = self.varint()
            kind = key & 7
            if kind == 0:
                yield key >> 3, self.varint(), 0
                continue
            size = self.varint() if kind == 2 else 8 if kind == 1 else 4 if kind == 5 else -1
            if size < 0:
                raise ValueError(f"wire type {kind}")
            if end is not None and self.at + size > end:
                raise ValueError("field longer than its message")
            yield key >> 3, None, size
        if end is not None and self.at != end:
            raise ValueError("field longer than its message")

    def _more(self) -> bool:
        self._before += len(self._data)
        self._place = 0
        self._data = next(self._chunks, b"")
        return bool(self._data)


def _planes(source: _Source) -> Iterator[int]:
    """The end of each plane, whose fields are to be read."""
    for number, value, size in source.fields(None):
        if number == 1 and value is None:
            yield source.at + size
        else:
            source.skip(size)


def _line(source: _Source, end: int) -> Line:
    """A line without its events."""
    line = Line("")
    for number, value, size in source.fields(end):
        if number == 3 and value is not None:
            line.epoch = value * 1000
        elif number == 2 and value is None:
            line.name = _text(source.take(size))
        else:
            source.skip(size)
    return line


def _text(data: bytes) -> str:
    return data[:_NAME_LENGTH].decode("utf-8", "replace")


# --- small messages, which are at hand as a whole --------------------------------------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(field number, wire type, integer or bytes) of one message."""
    at, size = 0, len(data)
    while at < size:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, 0, value
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
        yield key >> 3, kind, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result, at
            shift += 7
            if shift > 63:
                raise ValueError("varint longer than 64 bits")
    except IndexError:
        raise ValueError("the message ends within a number") from None


def _name(entry: bytes, names: dict[int, str]) -> tuple[int, list[bytes]]:
    """One entry of a map from id to a message whose field 2 is the name. The id, and the statistics that are as short
    as a number."""
    identity, name, about = 0, "", list[bytes]()
    for number, _, value in _fields(entry):
        if number == 1 and isinstance(value, int):
            identity = value
        elif number == 2 and isinstance(value, bytes):
            for inner, _, text in _fields(value):
                if inner == 2 and isinstance(text, bytes):
                    name = _text(text)
                elif inner == 5 and isinstance(text, bytes) and len(text) <= _LONGEST_NUMBER:
                    about.append(text)
    names[identity] = name
    return identity, about


def _event(
    data: bytes, epoch: int, head: Head, kept: Mapping[int, str], costs: Mapping[int, dict[str, Value]]
) -> Event:
    identity = offset = duration = 0
    stats: dict[str, Value] | None = None
    for number, _, value in _fields(data):
        if isinstance(value, int):
            if number == 1:
                identity = value
            elif number == 2:
                offset = value
            elif number == 3:
                duration = value
        elif number == 4 and kept:
            if stats is None:
                stats = {}
            _statistic(value, stats, kept, head.statistics)
    if identity in costs:
        stats = {**costs[identity], **(stats or {})}
    start = epoch + offset
    return Event(head.names.get(identity, ""), start, start + duration, stats or _NO_STATS)


def _statistic(data: bytes, stats: dict[str, Value], kept: Mapping[int, str], texts: Mapping[int, str]) -> None:
    name: str | None = None
    for number, kind, value in _fields(data):
        if number == 1 and isinstance(value, int):
            name = kept.get(value)
            if name is None:
                return
        elif name is None:
            continue
        elif isinstance(value, int):
            if number == 7:
                stats[name] = texts.get(value, "")  # a reference to a shared string
            elif number in (3, 4):
                stats[name] = value if number == 3 or value < 1 << 63 else value - (1 << 64)
        elif number == 2 and kind == 1:
            stats[name] = float(struct.unpack("<d", value)[0])
        elif number == 5:
            stats[name] = _text(value)
