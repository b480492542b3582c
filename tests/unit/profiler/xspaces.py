"""Writes an XSpace, as XLA's profiler does: names after the events that have them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from rightpool_profiler.traces.xspace import Event

PICOSECONDS = 1_000_000  # of a microsecond


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def op(name: str, start: float, end: float, run: int = 0, **stats: Any) -> Event:
    """An operation of a program on the CPU. Times are microseconds."""
    about = {"hlo_op": name, "hlo_module": "jit_step", "run_id": run, "device_ordinal": 0, "program_id": 3, **stats}
    return span(name, start, end, **about)


def span(name: str, start: float, end: float, **stats: Any) -> Event:
    return Event(name, round(start * PICOSECONDS), round(end * PICOSECONDS), stats)


def xspace(
    planes: Mapping[str, Mapping[str, Sequence[Event]]], costs: Mapping[str, Mapping[str, int | float]] | None = None
) -> bytes:
    """Planes by name, with their lines. costs: statistics that belong to the names of events."""
    return b"".join(field(1, _plane(name, lines, costs or {})) for name, lines in planes.items())


def _plane(name: str, lines: Mapping[str, Sequence[Event]], costs: Mapping[str, Mapping[str, int | float]]) -> bytes:
    names: dict[str, int] = {}
    statistics: dict[str, int] = {}
    body = field(2, name.encode())
    for line, events in lines.items():
        content = field(2, line.encode()) + field(3, 0)
        for event in events:
            one = field(1, names.setdefault(event.name, len(names) + 1))
            one += field(2, event.start) + field(3, event.end - event.start)
            for key, value in event.stats.items():
                about = field(1, statistics.setdefault(key, len(statistics) + 1))
                one += field(4, about + (field(3, value) if isinstance(value, int) else field(5, str(value).encode())))
            content += field(4, one)
        body += field(3, content)
    for text, identity in names.items():
        about = b"".join(
            field(5, field(1, statistics.setdefault(key, len(statistics) + 1)) + _number(value))
            for key, value in costs.get(text, {}).items()
        )
        body += field(4, field(1, identity) + field(2, field(1, identity) + field(2, text.encode()) + about))
    for text, identity in statistics.items():
        body += field(5, field(1, identity) + field(2, field(1, identity) + field(2, text.encode())))
    return body


def _number(value: int | float) -> bytes:
    return field(3, value) if isinstance(value, int) else _varint(2 << 3 | 1) + struct.pack("<d", value)


def _varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return found + bytes((value,))
