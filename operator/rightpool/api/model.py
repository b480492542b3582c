"""The base of every API model: camelCase on the wire, snake_case in code, frozen, docs as attribute docstrings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

ATOMIC: Final[dict[str, Any]] = {"x-kubernetes-list-type": "atomic"}  # replaced as a whole by server-side apply
SET: Final[dict[str, Any]] = {"x-kubernetes-list-type": "set"}  # without repeats, merged by server-side apply


def keyed_by(field: str) -> dict[str, Any]:
    """Of a list in which no two objects have the same value in this field; server-side apply merges it by that."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]}


class ApiModel(BaseModel):
    """One object of the API.

    Unknown fields are ignored on reading: an object stored by a newer version must not stop an older operator.
    Rejecting them is the API server's work, which does it for the user's own `kubectl apply`.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
    )

    def to_dict(self) -> dict[str, Any]:
        """The wire form. What is None is absent: a field that was not measured must not read as 0 or null."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def _require_zone(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("needs a time zone, such as the Z of 2026-12-01T00:00:00Z")
    return moment.astimezone(UTC)


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC. Fractions of a second only where there are any, so that reading back gives the same instant."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


Time = Annotated[
    datetime,
    AfterValidator(_require_zone),
    PlainSerializer(format_time, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""An instant, always in UTC."""
