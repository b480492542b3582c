"""The sizes that a pool can give: whole nodes above one node, or whole slices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rightpool.hardware.pool import Pool


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
