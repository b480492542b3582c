"""Enumeration: everywhere jobs of one shape could be, with what rules a placement out by the spec alone."""

from collections.abc import Iterable
from dataclasses import dataclass

from rightpool.api.placement import CapacityType, Placement
from rightpool.hardware.pool import Pool
from rightpool.hardware.shape import gives, keeps_together, replicas, shapes, why_not
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.offers.pool_gates import (
    capacity_type_gate,
    no_size,
    open_to,
    size_kept,
    whole_pool_gate,
    within_slice,
)
from rightpool.planning.offers.rejection import Rejection
from rightpool.planning.offers.shape import Shape


@dataclass(frozen=True, slots=True)
class Option:
    """One placement that jobs of a shape could have."""

    placement: Placement
    """For a pool that is ruled out as a whole: the size nearest to the asked one."""
    rejection: Rejection | None = None
    """What rules it out, and the whole pool with it; then nothing is predicted."""
    elsewhere: bool = False
    """It is nothing to jobs that are on this pool already."""


def options(shape: Shape, pools: Iterable[Pool], vendor: Vendor) -> tuple[Option, ...]:
    """For each pool one where it is ruled out as a whole, else one for each size and way to buy; by placement."""
    found = [option for pool in pools for option in _of_pool(shape, pool, vendor)]
    return tuple(sorted(found, key=lambda option: option.placement))


def _of_pool(shape: Shape, pool: Pool, vendor: Vendor) -> list[Option]:
    offered = sizes(shape, pool)
    denied = whole_pool_gate(shape, pool, vendor)
    if denied is None and not offered:
        denied = no_size(shape, pool)
    if denied is not None:
        return [Option(nearest(shape, pool, offered), denied, elsewhere=True)]
    found: list[Option] = []
    for capacity in shape.capacity_types:
        unsold = capacity_type_gate(shape, pool, capacity)
        if unsold is None:
            found += [Option(Placement(pool.name, count, pods, capacity)) for count, pods in offered]
        elif len(shape.capacity_types) == 1:
            found.append(Option(nearest(shape, pool, offered, capacity), unsold))
    kept = size_kept(shape)
    if kept is not None and not shape.fixed:
        others = [size for size in sizes(shape._replace(able=None), pool) if size not in offered]
        found += [Option(Placement(pool.name, *size, shape.capacity_types[0]), kept) for size in others]
    return found


def sizes(shape: Shape, pool: Pool) -> list[tuple[int, int]]:
    """(chips, replicas) that the job can use and the pool can give, smallest first, the asked size among them. A job of
    fixed size has the pods that it asks for, or none."""
    pool = within_slice(shape, open_to(shape, pool))
    if shape.keeps_pods:
        return [(shape.chips, shape.replicas)] if gives(pool, shape.replicas, shape.chips_per_replica) else []
    each, tensor, asked = shape.chips_per_replica, shape.tensor, shape.chips
    offered = shapes(pool, shape.low, shape.high, shape.counts, each, tensor, shape.multiple)
    if (
        shape.counts is None
        and all(count != asked for count, _ in offered)
        and shape.low <= asked <= shape.high
        and asked % shape.multiple == 0
        and why_not(pool, asked) is None
    ):
        pods = replicas(pool, asked, each, tensor)
        offered = sorted([*offered, (asked, pods)] if keeps_together(pool, asked // pods, tensor) else offered)
    return offered


def nearest(
    shape: Shape, pool: Pool, offered: list[tuple[int, int]], capacity: CapacityType | None = None
) -> Placement:
    """The offered size nearest to the asked one; the asked one itself where the pool offers none."""
    capacity = capacity or shape.capacity_types[0]
    if not offered:
        return Placement(pool.name, shape.chips, shape.replicas, capacity)
    count, pods = min(offered, key=lambda size: (abs(size[0] - shape.chips), size[0]))
    return Placement(pool.name, count, pods, capacity)
