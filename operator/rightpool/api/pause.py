"""A pause: a job is stopped because its user wishes so, or because its budget is spent, after its program has saved."""

from __future__ import annotations

from typing import Annotated

from rightpool.api.conditions import Reason
from rightpool.api.record import Record
from rightpool.api.units import WORD, UnixTime, UnixTimeUp
from rightpool.api.value_object import value_object


@value_object
class Pause(Record):
    """Why and how far. Written before anything is stopped, so that it can be continued after a crash."""

    reason: Annotated[Reason, WORD]
    """Suspended or BudgetExceeded."""

    since: UnixTime
    """When the save was asked for."""

    saved_before: UnixTimeUp | None = None
    """The last save that was known then."""

    saved_at: UnixTime | None = None
    """The save that the job goes on from. Absent where none came in time, or nothing was to be saved."""

    unsaved: Annotated[Reason | None, WORD] = None
    """Why it is stopped without the save that was asked for: SaveFailed or CheckpointTimeout. Absent: it is not."""

    stopping: bool = False
    """Whether the pods are to end now."""
