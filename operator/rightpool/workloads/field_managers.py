"""Field managers: who has written a field of an object last, by the managedFields of its metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rightpool.contract import FIELD_MANAGER


def manager_of(body: Mapping[str, Any], pointer: str) -> str:
    """Who but the operator has written the field at a JSON pointer last. Of a field that nobody has any more, who has
    written to the object last; empty where that is not known."""
    entries = [
        entry
        for entry in (body.get("metadata") or {}).get("managedFields") or ()
        if entry.get("manager") != FIELD_MANAGER and not entry.get("subresource")
    ]
    own = [entry for entry in entries if _has(entry.get("fieldsV1") or {}, body, pointer)]
    last = max(own or entries, key=lambda entry: str(entry.get("time") or ""), default=None)
    return "" if last is None else str(last.get("manager") or "")


def _has(fields: Mapping[str, Any], body: Any, pointer: str) -> bool:
    """Whether these fields are, or hold, the one at the pointer. body: the value that they are of."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(body, list):
            body = body[int(name)] if name.isdecimal() and int(name) < len(body) else None
            found = next((inner for key, inner in fields.items() if _names(key, name, body)), None)
        else:
            body = body.get(name) if isinstance(body, Mapping) else None
            found = fields.get(f"f:{name}")
        if found is None:
            return False
        if not found:
            return True  # it is owned as a whole
        fields = found
    return True


def _names(key: str, index: str, item: Any) -> bool:
    """Whether a key of managedFields means this item of a list: by its index, or by some of its fields."""
    kind, _, text = key.partition(":")
    if kind == "i":
        return text == index
    if kind != "k" or not isinstance(item, Mapping):
        return False
    return all(item.get(name) == value for name, value in json.loads(text).items())
