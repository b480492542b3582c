"""The record of a job that has ended: what came, when, what it did where, how fast, and what that cost.

It is the form in which the operator keeps them, one JSON object a line, and the one that `rightpool simulate --history`
reads. Whatever is not known is absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field
from operator import not_
from typing import Annotated, Any, Final, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from rightpool.api.placement import Placement
from rightpool.api.record import INLINE, Record
from rightpool.api.status import ProfileStatus
from rightpool.api.units import WORD, Count, Dollars, Quantity, Seconds, Size, Total, UnixTime
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples

MAX_STAYS: Final = 16
MAX_LINE: Final = 1_000_000
"""Characters of a line: what is longer is no record."""


@value_object
class Stay(Record):
    """A time that the job was at one place."""

    placement: Annotated[Placement, INLINE]
    """Where it was and how big."""

    begin: Annotated[UnixTime, Field(alias="from")]
    """When it was placed there."""

    end: Annotated[UnixTime, Field(alias="to")]
    """When it left, or ended."""

    chip: str | None = None
    """Key of its chips in the catalog. Absent: those of the pool."""

    rate: Quantity | None = None
    """Units of work a second there. Absent where it was not measured."""

    lost: Annotated[Seconds, Field(alias="lostSeconds", exclude_if=not_)] = 0.0
    """Of this time, without progress: starting, loading and what was repeated."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.end < self.begin:
            raise ValueError("to is before from: swap them")
        return self

    @property
    def seconds(self) -> float:
        """From the first moment to the last."""
        return self.end - self.begin


@value_object
class EndedJob(Record):
    """A job that has ended."""

    job: Annotated[str, Field(pattern=r"^[^/\s]+/[^/\s]+$", max_length=400)]
    """NAMESPACE/NAME."""

    arrived: UnixTime
    """When it was created."""

    stays: Annotated[tuple[Stay, ...], Field(min_length=1, max_length=MAX_STAYS)]
    """Where it was, the first place first."""

    uid: str = ""
    """Of the object. Absent of what was not on this cluster."""

    result: str = "Completed"
    """Completed or Failed."""

    replicas: Size | None = None
    """Pods that it asked for. Absent: those of the first place."""

    chips: Size | None = None
    """Chips of all pods that it asked for. Absent: those of the first place."""

    work: Total | None = None
    """Units done. Absent: as many as its rates make of its stays."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What is counted: Samples or Steps. Absent: Samples."""

    restart: Annotated[Seconds | None, Field(alias="restartSeconds")] = None
    """What a move costs it, seconds without progress, by its own moves or its start."""

    spent: Dollars | None = None
    """Dollars."""

    chip_seconds: Seconds | None = None
    """Seconds for which chips were held, added up over chips."""

    moves: Count = 0
    """Moves that were carried out."""

    profile: ProfileStatus | None = None
    """What it did to its chips at the last place that was measured."""

    spec: Annotated[dict[str, Any], Field(exclude_if=not_)] = field(default_factory=dict)
    """elasticity, placement, targets, progress, checkpoint and adaptation of its spec, without defaults."""

    @model_validator(mode="after")
    def _check_stays(self) -> Self:
        before = self.arrived
        for stay in self.stays:
            if stay.begin < before:
                what = "arrived" if before == self.arrived else "the place before was left"
                raise ValueError(f"a stay begins before {what}: correct its from")
            before = stay.end
        return self

    @property
    def waited(self) -> float:
        """Seconds until it had its first place."""
        return self.stays[0].begin - self.arrived

    @property
    def ended(self) -> float:
        """Unix seconds of its end."""
        return self.stays[-1].end

    @property
    def line(self) -> str:
        """As it is stored."""
        return json.dumps(self.to_dict(), separators=(",", ":"))


class BadLine(NamedTuple):
    """A line that is no record."""

    number: int
    """From 1."""
    why: str
    """What is wrong, with the field."""


def read_ended_jobs(lines: Iterable[str]) -> tuple[list[EndedJob], list[BadLine]]:
    """The records, one a line, and the lines that are none. Empty lines are nothing."""
    found: list[EndedJob] = []
    bad: list[BadLine] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            if len(line) > MAX_LINE:
                raise ValueError("longer than a record can be")
            found.append(EndedJob.from_dict(json.loads(line)))
        except (ValueError, RecursionError, OverflowError) as error:
            bad.append(BadLine(number, why(error)))
    return found, bad


def why(error: Exception) -> str:
    """What is wrong with a line, in a few words."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        text = first["msg"].removeprefix("Value error, ")
        return f"{place}: {text}" if place else text
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON: {error.msg} at column {error.colno}"
    return str(error) or type(error).__name__
