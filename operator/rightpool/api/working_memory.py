"""The working memory: what the operator must remember of a job and nobody reads, as one text in the job's status.

`kubectl describe` prints each number in a line of its own, and these are most of a status. A text that can't be read
costs what stands in it, and not the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from pydantic_core import from_json, to_json

from rightpool.api.record import HINTS, INLINE, PACKED, records_of, wire_name
from rightpool.api.status import ProfiledJobStatus

FIELD: Final = "workingMemory"

Body = Mapping[str, Any]
"""A status in wire form."""


def with_working_memory(body: Body) -> dict[str, Any]:
    """The status as it is stored: what is packed stands in the text alone."""
    rest = dict(body)
    memory: dict[str, Any] = {}
    for *owners, name in _paths():
        holder, kept = rest, memory
        for owner in owners:
            if not isinstance(holder.get(owner), Mapping):
                break
            holder[owner] = holder = dict(holder[owner])
            kept = kept.setdefault(owner, {})
        else:
            if name in holder:
                kept[name] = holder.pop(name)
    return {**rest, FIELD: to_json(memory).decode()} if memory else rest


def without_working_memory(stored: Body) -> Body:
    """The status with all its fields in their places."""
    text = stored.get(FIELD)
    if text is None:
        return stored
    try:
        memory = from_json(text)
    except (ValueError, TypeError):
        memory = None
    rest = {name: value for name, value in stored.items() if name != FIELD}
    return _merged(rest, memory) if isinstance(memory, Mapping) else rest


def _merged(body: Body, memory: Body) -> dict[str, Any]:
    merged = dict(body)
    for name, value in memory.items():
        known = merged.get(name)
        if not isinstance(known, Mapping):
            merged[name] = value
        elif isinstance(value, Mapping):
            merged[name] = _merged(known, value)
    return merged


@cache
def _paths() -> tuple[tuple[str, ...], ...]:
    """Names on the wire, from the status to each field that is packed."""
    return tuple(_packed(ProfiledJobStatus))


def _packed(kind: type[Any]) -> Iterator[tuple[str, ...]]:
    for name, hint in HINTS[kind].items():
        extras = getattr(hint, "__metadata__", ())
        wire = wire_name(name, hint)
        if any(extra is PACKED for extra in extras):
            yield (wire,)
            continue
        for nested in records_of(hint):
            own = () if any(extra is INLINE for extra in extras) else (wire,)
            yield from ((*own, *path) for path in _packed(nested))
