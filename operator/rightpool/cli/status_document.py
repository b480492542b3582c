"""Parts of a status in documents for programs."""

from __future__ import annotations

from functools import cache
from typing import Any

from rightpool.api.placement import CapacityType
from rightpool.api.record import HINTS, Record, wire_name
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.documents import plain


def status_document(part: Record | None) -> dict[str, Any] | None:
    """As it is on the wire, with numbers. Capacity and unit are always there: the API leaves out OnDemand and Samples.
    None of None."""
    if part is None:
        return None
    found: dict[str, Any] = plain(part.to_dict())
    _complete(found, part)
    return found


def _complete(found: dict[str, Any], part: Record) -> None:
    kind: type = type(part)  # mypy takes the type of a protocol for one that can't be hashed
    for name, wire in _names(kind):
        value = getattr(part, name)
        if isinstance(value, CapacityType | WorkUnit):
            found[wire] = value.value
        elif isinstance(value, Record):
            _complete(found.get(wire, found), value)  # what is inlined is beside its owner's fields


@cache
def _names(kind: type) -> tuple[tuple[str, str], ...]:
    return tuple((name, wire_name(name, hint)) for name, hint in HINTS[kind].items())
