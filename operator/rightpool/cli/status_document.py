"""Parts of a status in documents for programs."""

from __future__ import annotations

from typing import Any

from rightpool.api.placement import CapacityType
from rightpool.api.record import PARTS, Record
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
    for named in PARTS[kind]:
        value = getattr(part, named.name)
        if isinstance(value, CapacityType | WorkUnit):
            found[named.wire] = value.value
        elif isinstance(value, Record):
            _complete(found.get(named.wire, found), value)  # what is inlined is beside its owner's fields
