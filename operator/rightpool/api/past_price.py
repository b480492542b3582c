"""What a pool has cost so far, kept with the pool."""

from __future__ import annotations

from typing import Final

from rightpool.api.record import Record
from rightpool.api.units import Dollars, UnixTime
from rightpool.api.value_object import value_object

MAX_PRICES: Final = 12


@value_object
class PastPrice(Record):
    """What a chip-hour costs from some time on."""

    since: UnixTime
    """From when on."""

    per_chip_hour: Dollars | None = None
    """Dollars on demand. Absent where it was not known."""

    spot_per_chip_hour: Dollars | None = None
    """Dollars of spot capacity. Absent where it was not known."""
