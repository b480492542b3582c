"""How long a job was without progress when its pods were last taken away, or its program failed."""

from __future__ import annotations

from rightpool.api.record import Record
from rightpool.api.units import Quantity, UnixTime
from rightpool.api.value_object import value_object


@value_object
class Recovery(Record):
    """Pods were taken away or failed, and others have caught up."""

    disrupted_at: UnixTime
    """When Kubernetes last began to take any of them, or the program last failed."""

    seconds: Quantity
    """How long chips were held from then on until what no save held was done again."""
