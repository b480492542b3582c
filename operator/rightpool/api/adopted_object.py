"""What a status keeps of an adopted object."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rightpool.api.record import Record
from rightpool.api.units import Count, UnixTime
from rightpool.api.value_object import value_object

MAX_MANAGER = 128
MAX_POINTER = 256
MAX_MANIFEST = 262_144


@value_object
class Undone(Record):
    """Somebody else has taken back what the operator has changed of an object, such as Argo CD or Flux."""

    manager: Annotated[str, Field(max_length=MAX_MANAGER)]
    """The field manager of the write; empty where that is not known."""

    field: Annotated[str, Field(max_length=MAX_POINTER)]
    """JSON pointer to the field that was changed back last."""

    times: Count
    """How often, since the spec of the ProfiledJob was edited, with less than a day between two."""

    at: UnixTime
    """When last."""

    generation: Count
    """Of the ProfiledJob's spec at that time."""

    revision: Count
    """Number of the Revision whose fields were changed back last."""


@value_object
class AdoptedObject(Record):
    """The object that `spec.workloadRef` names, as it was found."""

    uid: str
    """Tells it from a later one of the name, which is another workload."""

    original: str | None = None
    """What it was before the operator first changed it, as JSON. Absent: it was not changed, or its user has since."""

    undone: Undone | None = None
    """Who takes back what the operator changes. Absent where nobody has."""

    remade: Annotated[str | None, Field(max_length=MAX_MANIFEST)] = None
    """Its manifest as JSON, while it is deleted to be made anew: nothing else knows then what it was. Absent where it
    is not."""
