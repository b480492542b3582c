"""The JSON schema of what `rightpool recommend --fleet` prints."""

from __future__ import annotations

from typing import Final

from tools.chartdocs.json_schema import Schema, list_of, object_of, or_null

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}


def fleet_moves(place: Schema) -> dict[str, Schema]:
    """The properties beside time and notes. place: of a placement."""
    move = {"namespace": _TEXT, "name": _TEXT, "id": or_null(_TEXT), "from": or_null(place), "to": place}
    move |= {"potentialSavingsPerHour": or_null(_NUMBER), "totalPerHour": _NUMBER, "needsApproval": {"type": "boolean"}}
    move |= {"after": list_of(object_of(namespace=_TEXT, name=_TEXT))}
    return {
        "waves": list_of(list_of(object_of(**move))),
        "leftOut": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
        "potentialSavingsPerHour": _NUMBER,
    }
