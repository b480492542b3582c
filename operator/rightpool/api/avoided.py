"""Where a job is not placed again for now."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.record import Record
from rightpool.api.units import Size, UnixTime
from rightpool.api.value_object import value_object

MAX_AVOIDED: Final = 64


@value_object
class AvoidedPlacement(Record):
    """A place where a move of this job had to be rolled back, or where it did not start."""

    pool: str
    """AcceleratorPool."""

    chips: Size
    """Chips of all replicas."""

    reason: str
    """Why, in one CamelCase word."""

    message: Annotated[str, Field(exclude_if=not_)] = ""
    """Why, where no move of the ledger says it. Absent of all but the newest two."""

    until: UnixTime | None = None
    """When it may be tried again. Absent: when the spec is changed."""

    decision: Annotated[str, Field(exclude_if=not_)] = ""
    """Decision id of the move that found it: the ledger has its evidence. Absent: message says why."""
