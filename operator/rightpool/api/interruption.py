"""An interruption: the time from the end of one Revision until the steps of the next one have caught up, that in which
a program hangs after a move, and that from when Kubernetes takes pods away, or the program fails, until its steps have
caught up."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from rightpool.api.counterfactual import Counterfactual
from rightpool.api.record import Record
from rightpool.api.units import WORD, Dollars, Total, UnixTime
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples

TAKEN: Final = "taken"
FAILED_PROGRAM: Final = "failed"


@value_object
class Interruption(Record):
    """Time without progress. What is paid in it is the cost of the decision that brought it about, if one did."""

    id: str
    """Decision id; taken where Kubernetes took pods away, failed where the program failed and is started again."""

    since: Annotated[UnixTime, Field(alias="startedAt")]
    """When the old Revision or the first of its pods was gone, or since when the program hangs or has failed."""

    spent_before: Dollars = 0.0
    """Dollars spent until then."""

    repeats: Total = 0
    """Units of work that are to be done again, because no save held them."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What repeats counts: Samples or Steps. Absent: Samples."""

    demanded: bool = False
    """Whether the user asked for it. Then what is saved is not reduced by it."""

    counterfactual: Counterfactual | None = None
    """Where the job would be without its moves, from the end of this on. Absent: where it is, and where no decision
    brought it about."""

    @property
    def unplanned(self) -> bool:
        """Whether no decision brought it about."""
        return self.id in (TAKEN, FAILED_PROGRAM)
