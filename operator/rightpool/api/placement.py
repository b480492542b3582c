"""A placement: where a job runs and how big it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from rightpool.api.record import Record
from rightpool.api.units import WORD, Size

MAX_CHIPS_PER_REPLICA: Final = 256
MAX_REPLICAS: Final = 10_000  # an index has at most 4 digits, which the bound on names counts on


class CapacityType(StrEnum):
    """How chips are bought."""

    ON_DEMAND = "OnDemand"
    SPOT = "Spot"


def _usual(capacity: CapacityType) -> bool:
    return capacity is CapacityType.ON_DEMAND


@dataclass(frozen=True, slots=True, order=True)
class Placement(Record):
    """Where a job runs and how big it is."""

    pool: str
    """AcceleratorPool."""

    chips: Size
    """Chips of all replicas, as many in each."""

    replicas: Size
    """Pods."""

    capacity: Annotated[CapacityType, WORD, Field(exclude_if=_usual)] = CapacityType.ON_DEMAND
    """OnDemand or Spot. Absent: OnDemand."""

    @property
    def chips_per_replica(self) -> int:
        """Chips that each pod asks for."""
        return self.chips // self.replicas

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.replicas > MAX_REPLICAS:
            raise ValueError(f"{self.replicas} pods are more than the {MAX_REPLICAS} that a placement can have")
        if self.chips % self.replicas:
            raise ValueError(f"{self.chips} chips in {self.replicas} pods are not as many in each")
        return self
