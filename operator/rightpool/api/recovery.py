"""How long a job was without progress when its pods were last taken away."""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.api.record import Record
from rightpool.api.units import Quantity, UnixTime


@dataclass(frozen=True, slots=True)
class Recovery(Record):
    """Kubernetes took pods away, and others have caught up."""

    disrupted_at: UnixTime
    """When it last began to take any of them."""

    seconds: Quantity
    """How long chips were held from then on until what no save held was done again."""
