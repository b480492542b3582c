"""An interruption: the time from the end of one Revision until the steps of the next one have caught up, and that in
which a program hangs after a move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rightpool.api.counterfactual import Counterfactual
from rightpool.api.record import Record
from rightpool.api.units import WORD, Dollars, Total, UnixTime
from rightpool.api.work_unit import WorkUnit, counts_samples


@dataclass(frozen=True, slots=True)
class Interruption(Record):
    """Time without progress. What is paid in it is the cost of the decision that brought it about."""

    id: str
    """Decision id."""

    since: Annotated[UnixTime, Field(alias="startedAt")]
    """When the old Revision was gone, or since when the program hangs."""

    spent_before: Dollars = 0.0
    """Dollars spent until then."""

    repeats: Total = 0
    """Units of work that the new Revision has to do again, because no save held them."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What repeats counts: Samples or Steps. Absent: Samples."""

    demanded: bool = False
    """Whether the user asked for it. Then what is saved is not reduced by it."""

    counterfactual: Counterfactual | None = None
    """Where the job would be without its moves, from the end of this on. Absent: where it is."""
