"""Outcomes of moves to a pool, kept with the pool: they outlive the jobs."""

from __future__ import annotations

from enum import StrEnum
from operator import not_
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.placement import Placement
from rightpool.api.record import Record
from rightpool.api.units import WORD, Count, Figure, UnixTime
from rightpool.api.value_object import value_object

MAX_OUTCOMES: Final = 32
_HASH: Final = Field(max_length=16)


class JobSize(StrEnum):
    """Classes of jobs by what they use of a pool: its chips, the links within a node, and those between nodes."""

    ONE_CHIP = "OneChip"
    ONE_POD = "OnePod"
    SEVERAL_PODS = "SeveralPods"

    @classmethod
    def of(cls, placement: Placement) -> JobSize:
        """Of one placement."""
        if placement.replicas > 1:
            return cls.SEVERAL_PODS
        return cls.ONE_CHIP if placement.chips == 1 else cls.ONE_POD


@value_object
class MoveOutcome(Record):
    """How a move to the pool ended."""

    move: Annotated[str, _HASH]
    """Hash of the job's uid and the decision id: the pool tells no names of jobs."""

    tenant: Annotated[str, _HASH]
    """Hash of the job's namespace."""

    started_at: UnixTime
    """When it was decided on: what failed before that was known then."""

    finished_at: UnixTime
    """When it was over."""

    size: Annotated[JobSize, WORD]
    """Class of the job by what it uses of the pool: OneChip, OnePod or SeveralPods."""

    undone: bool
    """Whether it had to be undone, or should have been: it was worse, or did not start."""

    ratio: Figure | None = None
    """Rate at its verdict ÷ rate before. Absent: it was undone, or came from other chips, or from more or fewer."""

    doubt: Figure | None = None
    """Standard deviation of the logarithm of ratio."""

    in_use: Annotated[Count, Field(exclude_if=not_)] = 0
    """Chips of the pool that were in use then. Absent: none, or not known."""
