"""A pool: interchangeable nodes with the same chips, links and price."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from rightpool.api.past_price import PastPrice
from rightpool.api.pool import Slice
from rightpool.api.spot_use import SpotUse
from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator, Link, Price
from rightpool.hardware.node_needs import NodeShape
from rightpool.hardware.price_history import suspected


@value_object
class OpenNode:
    """What is given out as one: a node with free chips, or a slice of which every host is free."""

    name: str
    """Of the node, or of the slice within its pool."""

    free: int
    """Chips that no pod requests."""

    shape: NodeShape | None = None
    """What jobs ask of it; None where that is not known."""


@value_object
class Pool:
    """An AcceleratorPool as planning sees it."""

    name: str
    """Name of the AcceleratorPool."""

    accelerator: Accelerator
    """The chips of all its nodes."""

    chips_per_node: int
    """Chips of one node."""

    resource_name: str
    """Extended resource that pods request."""

    node_selector: Mapping[str, str]
    """Labels that its nodes carry; every pod placed here asks for them."""

    intra_link: Link
    """Between chips of one node."""

    inter_link: Link
    """Between nodes."""

    price: Price
    """What a chip costs here."""

    total: int
    """Chips there now."""

    free: int
    """Chips there now that no pod requests."""

    growable: int = 0
    """Chips that an autoscaler would add on demand; 0 where the pool cannot grow."""

    nodes: int = 0
    """Nodes that count in `total`."""

    slice: Slice | None = None
    """The smallest unit that can be requested, where the pool is given out in slices of hosts."""

    tolerations: tuple[Mapping[str, Any], ...] = ()
    """Tolerations of every pod placed here."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the AcceleratorPool."""

    discovered: bool = False
    """Whether node labels describe it and nobody declared it."""

    shapes: Mapping[NodeShape, int] = field(default_factory=dict)
    """What jobs ask of its nodes, each shape with the free chips of its nodes; empty where that is not known."""

    dedicated: Mapping[NodeShape, int] = field(default_factory=dict)
    """Chips of nodes with taints that the pool does not tolerate, by shape. They count for jobs that do."""

    open_nodes: tuple[OpenNode, ...] = ()
    """Where the free chips are. Empty where that is not known: then they are taken to be on as few nodes as can be."""

    prices: tuple[PastPrice, ...] = ()
    """What a chip has cost so far, the newest last."""

    spot_uses: tuple[SpotUse, ...] = ()
    """What jobs have met on its spot capacity, by namespace."""

    def believed(self, now: float) -> "Pool":
        """The pool at the price that is decided and counted by: the last one, while the present one is suspected."""
        before = suspected(self.prices, self.price, now)
        if before is None:
            return self
        price = replace(self.price, on_demand=before.per_chip_hour, spot=before.spot_per_chip_hour)
        return replace(self, price=price, prices=tuple(past for past in self.prices if past.since <= before.since))

    @property
    def reach(self) -> int:
        """Chips that the pool can ever give: there now, or added by an autoscaler."""
        return self.total + self.growable

    @property
    def unit(self) -> int:
        """Chips of what is given out as one: a node, or a slice."""
        return self.chips_per_node if self.slice is None else self.slice.chips

    @property
    def hosts_per_slice(self) -> int:
        """Nodes of one slice; 1 where the pool has no slices."""
        return 1 if self.slice is None else self.slice.chips // self.chips_per_node
