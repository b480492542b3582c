"""The JSON schema of what `rightpool compare` prints."""

from __future__ import annotations

from typing import Final

from rightpool.api.work_unit import WorkUnit
from tools.chartdocs.json_schema import Schema, list_of, object_of, one_of, or_null

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}
_YES: Final[Schema] = {"type": "boolean"}
_SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
_SOURCED: Final = or_null(object_of(value=_NUMBER, source=_TEXT))

COMPARISON: Final[dict[str, Schema]] = {
    "subject": _TEXT,
    "weights": object_of(performance=_NUMBER, cost=_NUMBER, energy=_NUMBER),
    "rows": list_of(
        object_of(
            name=_TEXT,
            accelerator=_TEXT,
            chips={"type": "integer", "minimum": 1},
            rate=or_null(object_of(median=_NUMBER, low=_NUMBER, high=_NUMBER)),
            unit=one_of(WorkUnit),
            origin=or_null(_TEXT),
            checks=list_of(object_of(gate=_TEXT, passed=or_null(_YES), evidence=_TEXT)),
            passes=_YES,
            dollarsPerMillion=or_null(_NUMBER),
            kwhPerMillion=or_null(_NUMBER),
            kgCo2PerMillion=or_null(_NUMBER),
            score=or_null(_NUMBER),
            costs=object_of(
                dollarsPerChipHour=or_null(_NUMBER),
                bought=_SOURCED,
                rented=_SOURCED,
                watts=_SOURCED,
                load=object_of(share=_SHARE, source=_TEXT),
                porting=or_null(_NUMBER),
            ),
        )
    ),
    "changes": list_of(object_of(figure=_TEXT, now=_NUMBER, at=_NUMBER, instead=_TEXT, message=_TEXT)),
    "notes": list_of(_TEXT),
}
"""Of the keys beside apiVersion and kind."""
