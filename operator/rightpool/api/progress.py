"""Progress: what a job has done, over all its Revisions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rightpool.api.record import Record
from rightpool.api.units import WORD, Quantity, Seconds, Total, UnixTime
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples


@value_object
class JobProgress(Record):
    """Work that the job has done. What a restart repeats counts once."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What is counted: Samples or Steps. Absent: Samples."""

    done: Total = 0
    """Units done."""

    since: Annotated[UnixTime | None, Field(alias="asOf")] = None
    """Until when they are counted."""

    revision: int | None = None
    """The Revision that counts on."""

    counter: Total | None = None
    """What that Revision's counter read then."""

    rate: Annotated[Quantity | None, Field(alias="throughput")] = None
    """Units a second of that Revision, by its last complete Profile."""

    useful_seconds: Annotated[Seconds, Field(alias="usefulChipSeconds")] = 0.0
    """Chip-seconds that the units done would have taken without any loading, waiting and repeating."""

    rated: Total = 0
    """Units of which usefulChipSeconds tells. The others were done before a rate was known."""
