"""The base of every API model: camelCase on the wire, snake_case in code, frozen, docs as attribute docstrings."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict
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
        defer_build=True,  # a command reads a few kinds of objects, and only of those a reader is made
    )

    def to_dict(self) -> dict[str, Any]:
        """The wire form. What is None is absent: a field that was not measured must not read as 0 or null."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
