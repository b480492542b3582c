"""What a placement costs on its pool."""

from rightpool.api.placement import CapacityType, Placement
from rightpool.hardware.accelerator import Price


def hourly_cost(placement: Placement, price: Price) -> float | None:
    """Dollars an hour of a placement; None where the price of its capacity type is unknown. price: of its pool."""
    per_chip = price.spot if placement.capacity is CapacityType.SPOT else price.on_demand
    return None if per_chip is None else per_chip * placement.chips
