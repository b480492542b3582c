"""What a trial has measured: a job's own program, run elsewhere for some minutes while the job itself went on."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.placement import Placement
from rightpool.api.record import Record
from rightpool.api.units import Dollars, Quantity, UnixTime
from rightpool.api.value_object import value_object

MAX_TRIED: Final = 8


@value_object
class Tried(Record):
    """One trial that is over."""

    here: Placement
    """Where the job ran meanwhile."""

    there: Placement
    """Where its program was tried."""

    ratio: Quantity | None = None
    """Its rate there ÷ its rate here. Absent where it took no step there."""

    doubt: Quantity = 0.0
    """Standard deviation of the logarithm of the ratio, by how much such spans of the job differ."""

    at: UnixTime = 0.0
    """When it was over."""

    workload_hash: str = ""
    """Of what was tried: an edit ends what it says."""

    here_chip: str | None = None
    """Key of the chips here, in the catalog of then. Absent: not known."""

    there_chip: str | None = None
    """Key of the chips there."""

    cost: Dollars = 0.0
    """Dollars for its chips."""

    why: Annotated[str, Field(exclude_if=not_)] = ""
    """Why it took no step there."""
