"""Enumeration: everywhere jobs of one shape could be, with what rules a placement out by the spec alone; and the
pools that no job of the fleet may use, whatever is free and whatever they cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rightpool.api.placement import CapacityType, Placement
from rightpool.hardware.pool import Pool, gives, keeps_together, replicas, shapes, why_not
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.pool_gates import (
    capacity_type_gate,
    home_vendor,
    no_size,
    open_to,
    placed_vendor,
    size_kept,
    whole_pool_gate,
    within_slice,
)
from rightpool.planning.offers.rejection import Rejection, RejectionReason
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
    capacity, asked = capacity or shape.capacity_types[0], shape.chips
    if not offered:
        return Placement(pool.name, asked, shape.replicas, capacity)
    count, pods = min(offered, key=lambda size: (abs(size[0] - asked), size[0]))
    return Placement(pool.name, count, pods, capacity)


def closed_pools(jobs: Iterable[Job], pools: Mapping[str, Pool]) -> dict[str, tuple[RejectionReason, ...]] | None:
    """The pools that have chips and that the spec of every job rules out, with what rules them out; None where there is
    no job whose spec can be read. jobs: those that have not ended.

    A job may use a pool where one of the pool's sizes passes the gates that know the spec alone: allow, deny, selector,
    the template's nodeSelector, the vendor, spot or on demand, and the sizes. Jobs of equal shape are asked once, and
    none is asked about a pool that another one may use.
    """
    left = {name: pool for name, pool in pools.items() if pool.total > 0}
    why: dict[str, set[RejectionReason]] = {name: set() for name in left}
    asked: set[tuple[object, ...]] = set()
    for job in jobs:
        if not left:
            break
        if job.invalid is not None:
            continue
        shape, revision = Shape.of(job), job.state.revision
        current = None if revision is None else pools.get(revision.placement.pool)
        placed = placed_vendor(revision, current)
        key = (shape, placed)
        if key in asked:
            continue
        asked.add(key)
        vendor = home_vendor(shape, pools.values(), placed)
        for option in options(shape, left.values(), vendor):
            if option.rejection is None:
                left.pop(option.placement.pool, None)
            else:
                why[option.placement.pool].add(option.rejection.reason)
    if not asked and left:
        return None
    return {name: tuple(sorted(why[name])) for name in left}
