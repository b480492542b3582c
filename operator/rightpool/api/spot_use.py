"""What is known of how often spot capacity of a pool is taken away, kept with the pool."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from rightpool.api.record import Record
from rightpool.api.units import Quantity, UnixTime
from rightpool.api.value_object import value_object

MAX_SPOT_USES: Final = 16


@value_object
class SpotUse(Record):
    """What jobs of one namespace have met on the pool's spot capacity. What is a week old counts half."""

    tenant: Annotated[str, Field(max_length=16)]
    """Hash of the namespace."""

    as_of: UnixTime
    """Until when it was counted."""

    interruptions: Quantity = 0.0
    """How often a job lost pods there."""

    hours: Quantity = 0.0
    """Hours that its jobs had chips there, all added up."""

    span: Quantity = 0.0
    """Hours in which any of them had."""
