"""What schemas of documents are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Schema = dict[str, Any]


def or_null(of: Schema) -> Schema:
    """What may be unknown."""
    return {"anyOf": [of, {"type": "null"}]}


def one_of(values: Iterable[str]) -> Schema:
    """A word of these."""
    return {"enum": [str(value) for value in values]}


def list_of(of: Schema) -> Schema:
    """Any number of them."""
    return {"type": "array", "items": of}


def object_of(**properties: Schema) -> Schema:
    """With all of these and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
