"""A pool: interchangeable nodes with the same chips, links and price."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rightpool.hardware.accelerator import Accelerator, Link, Price


@dataclass(frozen=True, slots=True)
class Slice:
    """A TPU slice: the smallest thing that can be asked for. `chips` of `topology` (2x4), over `hosts` machines."""

    topology: str
    chips: int
    hosts: int


@dataclass(frozen=True, slots=True)
class Pool:
    """An AcceleratorPool as planning sees it.

    total, free: chips there now; free counts what no pod asks for. growable: chips that an autoscaler would add on
    demand (0 where the pool is what it is). node_selector and tolerations go onto every pod placed here. node_labels:
    the sets of labels that its nodes have, at the keys that jobs select nodes by, each with what is free of these
    nodes; empty where they are not known.
    """

    name: str
    accelerator: Accelerator
    chips_per_node: int
    resource_name: str
    node_selector: Mapping[str, str]
    intra_link: Link
    inter_link: Link
    price: Price
    total: int
    free: int
    growable: int = 0
    nodes: int = 0
    slice: Slice | None = None
    tolerations: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    discovered: bool = False
    node_labels: Mapping[frozenset[tuple[str, str]], int] = field(default_factory=dict)

    @property
    def reach(self) -> int:
        """Chips that the pool can ever give: there now, or brought by an autoscaler."""
        return self.total + self.growable

    def free_on(self, labels: Mapping[str, str]) -> int:
        """What is free now on nodes that have all of these labels, as far as labels are known."""
        if not labels or not self.node_labels:
            return self.free
        asked = labels.items()
        return sum(free for there, free in self.node_labels.items() if asked <= there)
