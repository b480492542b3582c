"""A pool: interchangeable nodes with the same chips, links and price; and the sizes that it can give, whole nodes above
one node, or whole slices."""

from collections.abc import Iterable, Mapping, Sequence
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


def why_not(pool: Pool, chips: int) -> str | None:
    """Why the pool can't ever give this many chips, for a human; None where it can. What is free now is not asked."""
    if chips < 1:
        return f"{chips} chips: at least 1 is required"
    if pool.accelerator.part is not None and chips > 1:
        return f"{pool.name} gives MIG slices, between which programs can't communicate: 1 chip at most"
    if pool.slice is not None:
        if chips % pool.slice.chips:
            return (
                f"{pool.name} gives whole {pool.slice.topology} slices of {pool.slice.chips} chips, "
                f"and {chips} is not a multiple"
            )
    elif chips > pool.chips_per_node and chips % pool.chips_per_node:
        return (
            f"{pool.name} gives whole nodes of {pool.chips_per_node} chips above one node, "
            f"and {chips} is not a multiple"
        )
    if chips > pool.reach:
        return f"{pool.name} has {pool.reach} chips at most, and {chips} are required"
    return None


def gives(pool: Pool, pods: int, each: int) -> bool:
    """Whether the pool can ever give these very pods. What is free now is not asked."""
    if pool.accelerator.part is not None and pods * each > 1:
        return False
    if pool.slice is not None:
        chips = pods * each
        return each == pool.chips_per_node and chips % pool.slice.chips == 0 and chips <= pool.reach
    return each <= pool.chips_per_node and -(-pods // (pool.chips_per_node // each)) * each <= pool.reach


def keeps_together(pool: Pool, each: int, together: int) -> bool:
    """Whether groups of so many chips stay on one fast link, in pods of `each` chips: within a pod, or within a slice.
    Pods talk over the network even on one node."""
    return (each if pool.slice is None else pool.slice.chips) % together == 0


def replicas(pool: Pool, chips: int, chips_per_replica: int | None = None, together: int = 1) -> int:
    """Pods that hold `chips` chips of the pool, which must be a size that it can give.

    In slices one pod a host, with all its chips. Elsewhere chips_per_replica is kept where it divides the chips and its
    pods fill the nodes without a rest; otherwise pods are as large as a node allows. together: chips that are to be in
    one pod, of which a pod that is kept has a multiple.
    """
    if pool.slice is not None:
        return chips // pool.slice.chips * pool.hosts_per_slice
    largest = min(chips, pool.chips_per_node)
    each = largest if chips_per_replica is None else chips_per_replica
    if not 1 <= each <= largest or chips % each or each % together:
        each = largest
    # Above one node the pods of a node must use it up, or the job would need more nodes than it pays for.
    if chips > pool.chips_per_node and pool.chips_per_node % each:
        each = largest
    return chips // each


def default_sizes(pool: Pool, largest: int) -> list[int]:
    """Sizes offered where the user names none, up to `largest`.

    Powers of two inside a node, then nodes in powers of two: a node of 6 chips gives 1, 2, 4, 6, 12, 24 … In
    slices: slices in powers of two.
    """
    unit = pool.chips_per_node if pool.slice is None else pool.slice.chips
    sizes: list[int] = []
    if pool.slice is None:
        size = 1
        while size < unit:
            sizes.append(size)
            size *= 2
    size = unit
    while size <= largest:
        sizes.append(size)
        size *= 2
    return [size for size in sizes if size <= largest]


def shapes(
    pool: Pool,
    min_chips: int,
    max_chips: int,
    chip_counts: Iterable[int] | None = None,
    chips_per_replica: int | None = None,
    together: int = 1,
    multiple: int = 1,
) -> list[tuple[int, int]]:
    """Every (chips, replicas) between the bounds that the pool can give, smallest first.

    chip_counts: the user's own list, None for the default sizes. chips_per_replica: as the user asked, see `replicas`.
    together: chips that must share a fast link, see `keeps_together`. multiple: what sizes are multiples of.
    """
    wanted: Sequence[int]
    if chip_counts is None:
        wanted = default_sizes(pool, min(max_chips, pool.reach))
    else:
        wanted = sorted(set(chip_counts))
    found = [
        (chips, replicas(pool, chips, chips_per_replica, together))
        for chips in wanted
        if min_chips <= chips <= max_chips and chips % multiple == 0 and why_not(pool, chips) is None
    ]
    return [(chips, pods) for chips, pods in found if keeps_together(pool, chips // pods, together)]
