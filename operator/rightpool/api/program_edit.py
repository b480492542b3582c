"""What a job did before its user edited what it runs, and how it compares with that since."""

from __future__ import annotations

from enum import StrEnum
from operator import not_
from typing import Annotated

from pydantic import Field

from rightpool.api.migration import MAX_BASELINE_RATES
from rightpool.api.record import Record
from rightpool.api.revision import Revision
from rightpool.api.traits import UNKNOWN_TRAITS, ModelTraits
from rightpool.api.units import WORD, Figure, Quantity
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples


class EditVerdict(StrEnum):
    """How an edited program compares with the one before."""

    IMPROVED = "Improved"  # surely faster
    NO_WORSE = "NoWorse"  # hardly slower by more than is tolerated
    REGRESSED = "Regressed"  # surely slower by more than is tolerated, or it does nothing
    UNKNOWN = "Unknown"  # it varies too much, or what is counted does not compare


@value_object
class PartShares(Record):
    """Shares of a step, by what the chips do in it. Absent: not known."""

    input: Figure | None = None
    """They wait for input."""

    saving: Figure | None = None
    """They wait for a save."""

    host: Figure | None = None
    """They wait for the host for another reason."""

    communication: Figure | None = None
    """They wait for each other."""

    chip: Figure | None = None
    """They work."""


@value_object
class ProgramEdit(Record):
    """The last edit of the program of a job that stayed where it was."""

    before: Revision
    """What ran before."""

    rates: Annotated[tuple[Quantity, ...], Field(max_length=MAX_BASELINE_RATES, exclude_if=not_)] = ()
    """Its throughput in its newest windows, units a second, the newest last. Absent: it is judged."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What that counts. Absent: Samples."""

    shares: PartShares = PartShares()
    """Of its step."""

    model: ModelTraits = UNKNOWN_TRAITS
    """What it said of its model."""

    judged: Annotated[str, Field(exclude_if=not_)] = ""
    """Hash of the workload that was judged. Absent: none was yet."""

    verdict: Annotated[EditVerdict, WORD] = EditVerdict.UNKNOWN
    """How that compares."""

    ratio: Quantity | None = None
    """Its rate ÷ that before. Absent: Unknown, or not judged."""

    message: Annotated[str, Field(exclude_if=not_)] = ""
    """The same in a sentence."""
