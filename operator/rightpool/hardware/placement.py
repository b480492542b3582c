"""A placement: where a job runs and how big it is."""

from dataclasses import dataclass
from enum import StrEnum

from rightpool.hardware.pool import Pool


class CapacityType(StrEnum):
    """How chips are bought."""

    ON_DEMAND = "OnDemand"
    SPOT = "Spot"


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """`chips` chips of `pool` over `replicas` pods. chips is a multiple of replicas."""

    pool: str
    chips: int
    replicas: int
    capacity: CapacityType = CapacityType.ON_DEMAND

    @property
    def chips_per_replica(self) -> int:
        """Chips that each pod asks for."""
        return self.chips // self.replicas


def hourly_cost(placement: Placement, pool: Pool) -> float | None:
    """Dollars an hour of a placement on its pool; None where the pool's price is unknown."""
    per_chip = pool.price.spot if placement.capacity is CapacityType.SPOT else pool.price.on_demand
    return None if per_chip is None else per_chip * placement.chips
