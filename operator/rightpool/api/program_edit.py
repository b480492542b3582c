"""What a job did before its user edited what it runs, and how it compares with that since."""

from __future__ import annotations

from enum import StrEnum
from operator import not_
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.record import Record
from rightpool.api.units import WORD, Figure, Quantity
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples

MAX_RATES: Final = 8
"""Windows before an edit that a status keeps."""
MAX_IMAGE: Final = 63
"""Characters that a status keeps of an image's name."""


class EditVerdict(StrEnum):
    """How an edited program compares with the one before."""

    IMPROVED = "Improved"  # surely faster
    NO_WORSE = "NoWorse"  # hardly slower by more than is tolerated
    REGRESSED = "Regressed"  # surely slower by more than is tolerated, or it does nothing
    UNKNOWN = "Unknown"  # it varies too much, or what is counted does not compare


def _is_unknown(verdict: EditVerdict) -> bool:
    return verdict is EditVerdict.UNKNOWN


@value_object
class ProgramEdit(Record):
    """The last edit of the program of a job that stayed where it was. It ends where the job leaves."""

    workload_hash: Annotated[str, Field(alias="from")]
    """Hash of the workload before."""

    image: Annotated[str | None, Field(max_length=MAX_IMAGE)] = None
    """Image of the container with the chips before, as messages name it. Absent: not known."""

    rates: Annotated[tuple[Quantity, ...], Field(max_length=MAX_RATES, exclude_if=not_)] = ()
    """Throughput before, in the newest windows, units a second, the newest last. Of a server batches a second of one
    replica, or tokens a second of one request. Absent: it is judged."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What that counts. Absent: Samples."""

    shares: Annotated[tuple[Figure | None, ...], Field(max_length=5, exclude_if=not_)] = ()
    """Of the step before, in which the chips waited for input, for a save, for the host and for each other, and worked.
    Absent: not known."""

    precision: str | None = None
    """Arithmetic of the matrix multiplications before. Absent: not known."""

    batch: int | None = None
    """Samples of a step before. Absent: not known."""

    loads: Annotated[tuple[Quantity, ...], Field(max_length=MAX_RATES, exclude_if=not_)] = ()
    """Of a server: requests of a batch, or those that share a token's step, in the same windows. Absent: it is none."""

    answered: Annotated[tuple[Quantity, ...], Field(max_length=2, exclude_if=not_)] = ()
    """Of a server: requests in these windows, and how many of them failed. Absent: it is none."""

    judged: Annotated[str, Field(exclude_if=not_)] = ""
    """Hash of the workload that was judged. Absent: none was yet."""

    verdict: Annotated[EditVerdict, WORD, Field(exclude_if=_is_unknown)] = EditVerdict.UNKNOWN
    """How that compares. Absent: Unknown."""

    ratio: Quantity | None = None
    """Its rate ÷ that before. Absent: Unknown, or not judged."""

    message: Annotated[str, Field(exclude_if=not_)] = ""
    """The same in a sentence."""
