"""What an Estimate was derived from, typed: kinds with the names and the number that each speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from rightpool.api.model import ATOMIC
from rightpool.api.record import Record
from rightpool.api.units import Quantity
from rightpool.api.value_object import value_object


class PremiseKind(StrEnum):
    """What a prediction rests on. Part of the API: never renamed."""

    MEASURED_NOW = "MeasuredNow"
    MEASURED_BEFORE = "MeasuredBefore"  # on that placement
    CHIP_ACTIVITY = "ChipActivity"  # it was measured how long chips wait
    CHIP_ACTIVITY_UNKNOWN = "ChipActivityUnknown"
    COMMUNICATION = "Communication"  # measured
    USUAL_COMMUNICATION = "UsualCommunication"  # not measured: as of other jobs
    DEMAND = "Demand"  # counters; number: the share of it that is memory traffic
    ARITHMETIC_AND_MEMORY = "ArithmeticAndMemory"  # matrix and memory activity alone
    BOUNDARY = "Boundary"  # names: the kinds of links before and after
    SIZES_SEEN = "SizesSeen"  # number: how many, the present one included
    SAME_CHIP = "SameChip"  # names: the chip
    SPECIFICATIONS = "Specifications"  # names: the chips
    PUBLISHED_THROUGHPUT = "PublishedThroughput"  # names: the chips that it is of
    CHIPS_SEEN = "ChipsSeen"  # number: kinds of chips that the job was measured on
    PRECISION_UNKNOWN = "PrecisionUnknown"
    FLEET = "Fleet"  # number: comparisons of this fleet
    OTHER_PROGRAM = "OtherProgram"  # another one runs there
    THROTTLED = "Throttled"  # number: clocks here, as a share of healthy ones
    OTHER_HOST = "OtherHost"


@value_object
class Premise(Record):
    """One thing that an Estimate rests on."""

    kind: PremiseKind
    """What it is."""

    names: Annotated[tuple[str, ...], Field(json_schema_extra=ATOMIC)] | None = None
    """Chips or kinds of links that it is of."""

    number: Quantity | None = None
    """A count or a share, by kind."""


_KNOWN: Final = frozenset(PremiseKind)


def _of_known_kinds(body: Any) -> Any:
    """A newer operator may know more kinds, and they only explain: the Estimate is whole without them."""
    if not isinstance(body, Sequence) or isinstance(body, str):
        return body
    return tuple(
        one for one in body if isinstance(one, Premise) or (isinstance(one, Mapping) and one.get("kind") in _KNOWN)
    )


Premises = Annotated[tuple[Premise, ...], BeforeValidator(_of_known_kinds)]
"""All that an Estimate rests on."""
