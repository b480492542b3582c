"""Where a job is not placed again for now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rightpool.api.record import Record
from rightpool.api.units import Size, UnixTime

MAX_AVOIDED: Final = 64


@dataclass(frozen=True, slots=True)
class AvoidedPlacement(Record):
    """A place where a move of this job had to be rolled back, or where it did not start."""

    pool: str
    """AcceleratorPool."""

    chips: Size
    """Chips of all replicas."""

    reason: str
    """Why, in one CamelCase word."""

    message: str = ""
    """The evidence in numbers."""

    until: UnixTime | None = None
    """When it may be tried again. Absent: when the spec is changed."""
