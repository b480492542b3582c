"""Gates of pools and sizes: what rules a placement out by the spec alone, whatever the job does.

They are asked once for all jobs of equal shape. Each says by its type what would have to change.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rightpool.api.placement import CapacityType, Placement
from rightpool.api.revision import Revision
from rightpool.hardware.clouds import SPOT_LABELS
from rightpool.hardware.node_needs import NodeNeeds, meets
from rightpool.hardware.pool import Pool, keeps_together
from rightpool.hardware.vendors.registry import DEFAULT_VENDOR, vendor_named
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.offers.pool_rejection import (
    AffinityUnmatched,
    CapacityNotSelectable,
    CapacityNotWanted,
    NodesShort,
    NodesTainted,
    NoSize,
    NoSpot,
    NotKeptApart,
    ObjectUnchangeable,
    OtherVendor,
    PoolDenied,
    PoolNotAllowed,
    PoolNotSelected,
    SelectorContradicted,
    SelectorUnmatched,
    SizeKept,
    SizeNotListed,
    SizeNotMultiple,
    SizeOutOfBounds,
    SlicesApart,
    TensorSplit,
    VariantRefused,
    VolumeElsewhere,
)
from rightpool.planning.offers.rejection import NoRoom, Rejection
from rightpool.planning.offers.shape import Shape


def home_vendor(shape: Shape, pools: Iterable[Pool], placed: Vendor | None) -> Vendor:
    """Whose chips the pod template itself, without a variant, is taken to run on.

    placed: what it is taken to of a job that has a place. Before its first start that is the only vendor of the pools
    that the user lets the job onto which has no variant, and the default where there are several or none.
    """
    if placed is not None:
        return placed
    vendors = {pool.accelerator.vendor for pool in pools if selected(shape, pool)}
    without = {vendor for vendor in vendors if shape.variant(vendor.name) is None}
    return without.pop() if len(without) == 1 else DEFAULT_VENDOR


def placed_vendor(ref: Revision | None, pool: Pool | None) -> Vendor | None:
    """Whose chips the pod template of a job with this Revision is taken to run on: those that it runs on now, unless it
    runs there by a variant. pool: that of the Revision; None where it is not there any more."""
    if ref is None:
        return None
    if pool is not None and ref.template_vendor is None:
        return pool.accelerator.vendor
    return vendor_named(ref.template_vendor or ref.vendor)


def selected(shape: Shape, pool: Pool) -> bool:
    """Whether the user lets the job onto this pool, its vendor aside."""
    if pool.name in shape.deny or (shape.allow and pool.name not in shape.allow):
        return False
    return all(pool.labels.get(key) == value for key, value in shape.labels)


def pool_gate(shape: Shape, pool: Pool, vendor: Vendor) -> Rejection | None:
    """Whether the user lets the job onto this pool at all. vendor: whose chips the template is known to run on."""
    if pool.name in shape.deny:
        return PoolDenied(pool.name)
    if shape.allow and pool.name not in shape.allow:
        return PoolNotAllowed(pool.name, shape.allow)
    if not selected(shape, pool):
        return PoolNotSelected(pool.name, shape.labels)
    there = pool.accelerator.vendor
    if there != vendor and pool.name not in shape.allow and shape.variant(there.name) is None:
        return OtherVendor(pool.name, there, vendor)
    return None


def whole_pool_gate(shape: Shape, pool: Pool, vendor: Vendor) -> Rejection | None:
    """What rules the pool out for the job, at any size."""
    return (
        pool_gate(shape, pool, vendor)
        or variant_gate(shape, pool)
        or tensor_gate(shape, pool)
        or node_gate(shape, pool)
        or selectable_gate(shape, pool)
    )


def selectable_gate(shape: Shape, pool: Pool) -> Rejection | None:
    """Whether an adopted object can be changed, and its pods kept on nodes that are bought as wanted. Not asked of
    where it is."""
    if shape.able is not None and shape.able.unable:
        return ObjectUnchangeable(shape.able.unable)
    if shape.able is None or shape.able.affinity or SPOT_LABELS.keys() & pool.node_selector.keys():
        return None
    mixed = pool.price.spot is not None or CapacityType.ON_DEMAND not in shape.capacity_types
    return CapacityNotSelectable(pool.name, shape.able.kind) if mixed else None


def tensor_gate(shape: Shape, pool: Pool) -> Rejection | None:
    """Whether chips that share the matrices of a layer can be on one fast link: in one pod, or in one slice."""
    if shape.tensor == 1:
        return None
    largest = 1 if pool.accelerator.part is not None else pool.chips_per_node
    each = shape.chips_per_replica if shape.keeps_pods else min(shape.tensor, largest)
    if keeps_together(pool, each, shape.tensor):
        return None
    return _tensor_split(shape, pool, each if shape.keeps_pods else largest)


def _tensor_split(shape: Shape, pool: Pool, each: int) -> TensorSplit:
    return TensorSplit(
        pool.name, each if pool.slice is None else pool.slice.chips, shape.tensor, pool.slice is not None
    )


def parallel_gate(shape: Shape, pool: Pool, placement: Placement) -> Rejection | None:
    """Whether this placement holds the model in whole groups, each on fast links where it must be."""
    if placement.chips % shape.multiple:
        return SizeNotMultiple(placement.chips, shape.tensor, shape.pipeline)
    each = placement.chips_per_replica
    return None if keeps_together(pool, each, shape.tensor) else _tensor_split(shape, pool, each)


def variant_gate(shape: Shape, pool: Pool) -> Rejection | None:
    """Whether the API server would take pods with the variant for the pool's chips. Not asked of where a job is: what
    runs is not ended for a variant that is edited."""
    vendor = pool.accelerator.vendor
    variant = shape.variant(vendor.name)
    if variant is None or variant.refusal is None:
        return None
    return VariantRefused(pool.name, vendor, variant.refusal)


def node_gate(shape: Shape, pool: Pool) -> Rejection | None:
    """Whether the pool has nodes that the scheduler could ever put the job's pods on, as what the template asks for
    itself goes. Nodes that an autoscaler would add may have any labels but those that tell the pool, and are as large
    as those that are there."""
    needs = shape.needs_on(pool.accelerator.vendor.name)
    for key, value in needs.labels:
        given = pool.node_selector.get(key, value)
        if given != value:
            return SelectorContradicted(pool.name, key, given, value)
    elsewhere = _elsewhere(needs, pool, (pool.node_selector,), others=True)
    if elsewhere is not None:
        return elsewhere
    shapes = list(pool.shapes)
    if not shapes or any(needs.fit(node) for node in shapes):
        return None
    if not pool.growable:
        selected = [node for node in shapes if not needs.unselected(node.labels)]
        if not selected:
            there: frozenset[tuple[str, str]] = frozenset().union(*(node.labels for node in shapes))
            return SelectorUnmatched(pool.name, tuple(sorted(set(needs.labels) - there)) or needs.labels)
        elsewhere = _elsewhere(needs, pool, [dict(node.labels) for node in selected])
        if elsewhere is not None:
            return elsewhere
        shapes = [node for node in selected if needs.drawn(node.labels)]
        if not shapes:  # each holds somewhere, and nowhere all
            return VolumeElsewhere(pool.name, needs.volumes[0])
        repelled = [taint for node in shapes if needs.short_of(node) is None and (taint := needs.repelled(node))]
        if repelled:
            return NodesTainted(pool.name, repelled[0])
    short = [needs.short_of(node) for node in shapes]
    lacking = [one for one in short if one is not None]
    if len(lacking) < len(short):
        return None
    name, asked, most = max(lacking, key=lambda one: one[2])
    return NodesShort(pool.name, name, asked, most)


def _elsewhere(
    needs: NodeNeeds, pool: Pool, nodes: Iterable[Mapping[str, str]], *, others: bool = False
) -> Rejection | None:
    """What of affinity and volumes holds on none of the nodes with these labels. others: they may have more."""
    there = tuple(nodes)
    if needs.terms and not any(meets(needs.terms, labels, others=others) for labels in there):
        return AffinityUnmatched(pool.name, needs.terms)
    for terms in needs.volumes:
        if not any(meets(terms, labels, others=others) for labels in there):
            return VolumeElsewhere(pool.name, terms)
    if needs.apart and not others and not any(needs.apart in labels for labels in there):
        return NotKeptApart(pool.name, needs.apart)
    return None


def open_to(shape: Shape, pool: Pool) -> Pool:
    """The pool with the nodes whose taints the template tolerates and the pool does not."""
    if not pool.dedicated:
        return pool
    needs = shape.needs_on(pool.accelerator.vendor.name)
    more = sum(chips for node, chips in pool.dedicated.items() if needs.fit(node))
    return replace(pool, total=pool.total + more) if more else pool


def capacity_type_gate(shape: Shape, pool: Pool, capacity: CapacityType) -> Rejection | None:
    """Whether the pool sells chips the way the user buys them."""
    if capacity not in shape.capacity_types:
        return CapacityNotWanted(shape.capacity, capacity)
    if capacity is CapacityType.SPOT and pool.price.spot is None and pool.price.on_demand is not None:
        return NoSpot(pool.name)
    return None


def bounds_gate(shape: Shape, count: int) -> Rejection | None:
    """Whether the program can run on so many chips, by the user's word."""
    if shape.counts is not None and count not in shape.counts:
        return SizeNotListed(count, shape.counts)
    if not shape.low <= count <= shape.high:
        return SizeOutOfBounds(count, shape.low, shape.high)
    return None


def within_slice(shape: Shape, pool: Pool) -> Pool:
    """The pool with no more chips than the job may have of it: of hosts that must be numbered within their slice, those
    of one, unless it has units that each keep to a slice."""
    vendor = pool.accelerator.vendor
    if pool.hosts_per_slice == 1 or pool.slice is None or vendor.slice_variables is None:
        return pool
    if shape.needs_on(vendor.name).apart == vendor.slice_label:
        return pool
    there = min(pool.total, pool.slice.chips)
    return replace(pool, total=there, growable=min(pool.growable, pool.slice.chips - there))


def no_size(shape: Shape, pool: Pool) -> Rejection:
    """The pool can't give any size that the job can use."""
    pool = open_to(shape, pool)
    if pool.slice is not None and shape.low > pool.slice.chips and within_slice(shape, pool) is not pool:
        return SlicesApart(pool.name, pool.hosts_per_slice, pool.slice.chips, pool.accelerator.vendor.slice_label)
    unit = pool.chips_per_node if pool.slice is None else pool.slice.chips
    kept = size_kept(shape)
    if kept is not None and not shape.fixed:
        return kept
    asked = (shape.replicas, shape.chips_per_replica) if shape.fixed else None
    parts = pool.accelerator.part is not None
    return NoSize(
        pool.name, pool.slice is not None, unit, pool.reach, shape.low, shape.high, asked, parts, shape.multiple
    )


def size_kept(shape: Shape) -> SizeKept | None:
    """What rules other sizes out than the one that the adopted object has; None where it can be resized."""
    if shape.able is None or shape.able.resize:
        return None
    return SizeKept(shape.able.kind, shape.replicas, shape.chips_per_replica, shape.able.anew)


def current_gate(shape: Shape, pool: Pool, placement: Placement, vendor: Vendor) -> Rejection | None:
    """Why the user no longer allows the current placement; None where it is fine."""
    return (
        pool_gate(shape, pool, vendor)
        or capacity_type_gate(shape, pool, placement.capacity)
        or bounds_gate(shape, placement.chips)
        or parallel_gate(shape, pool, placement)
    )


def no_room(shape: Shape, placement: Placement, pool: Pool) -> NoRoom:
    """The pool can't give the chips now."""
    needs, pool = shape.needs_on(pool.accelerator.vendor.name), open_to(shape, pool)
    on_selected = bool(pool.shapes and (needs.labels or needs.terms or needs.volumes))
    return NoRoom(pool.name, placement.chips, pool.total, pool.growable, on_selected)
