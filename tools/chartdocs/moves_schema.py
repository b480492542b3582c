"""The JSON schema of what `rightpool recommend` prints, with and without `--fleet`."""

from __future__ import annotations

from typing import Final

from tools.chartdocs.json_schema import Schema, list_of, object_of, or_null

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}


def recommendations(place: Schema, reason: Schema) -> dict[str, Schema]:
    """The properties beside time and notes. place: of a placement; reason: of a word."""
    item = {"namespace": _TEXT, "name": _TEXT, "id": _TEXT, "from": place, "to": place, "savings": or_null(_NUMBER)}
    item |= {"costPerHour": or_null(_NUMBER), "potentialSavingsPerHour": or_null(_NUMBER)}
    item |= {"heldBy": or_null(reason), "reason": reason, "message": or_null(_TEXT)}
    return {"items": list_of(object_of(**item)), "potentialSavingsPerHour": _NUMBER}


def fleet_moves(place: Schema) -> dict[str, Schema]:
    """The same of the whole fleet's."""
    ends = {"namespace": _TEXT, "name": _TEXT, "from": or_null(place), "to": place}
    move = ends | {"id": or_null(_TEXT)}
    move |= {"potentialSavingsPerHour": or_null(_NUMBER), "totalPerHour": _NUMBER, "needsApproval": {"type": "boolean"}}
    move |= {"after": list_of(object_of(namespace=_TEXT, name=_TEXT))}
    return {
        "underWay": list_of(object_of(**ends)),
        "waves": list_of(list_of(object_of(**move))),
        "leftOut": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
        "potentialSavingsPerHour": _NUMBER,
    }
