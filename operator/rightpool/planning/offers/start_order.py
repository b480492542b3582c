"""The order in which placements are tried where nothing was measured: a first start, an edit, a pool that is left."""

from collections.abc import Iterable
from dataclasses import dataclass

from rightpool.api.choices import Objective
from rightpool.api.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.offers.enumerate import nearest, sizes
from rightpool.planning.offers.pool_gates import (
    bounds_gate,
    capacity_type_gate,
    home_vendor,
    no_size,
    parallel_gate,
    whole_pool_gate,
)
from rightpool.planning.offers.rejection import (
    Avoided,
    MemoryMayNotSuffice,
    MemoryShort,
    PriceUnknown,
    Rejection,
)
from rightpool.planning.offers.shape import Shape, Terms
from rightpool.prediction.transfer import nominal_rate

# A chip that is full to the last byte fails at the first longer sequence.
MEMORY_HEADROOM = 1.05


@dataclass(frozen=True, slots=True)
class Start:
    """What the order depends on. Jobs whose starts are equal share it."""

    shape: Shape
    """Where the spec lets the job be."""
    terms: Terms
    """What of it can be judged without measurements."""
    placed: Vendor | None
    """Whose chips the template of a job with a place is taken to run on."""
    wish: Placement | None = None
    """What comes before everything else: where an edited job is, at the size that it asks for now."""
    avoided: tuple[Avoided, ...] = ()
    """Where the job was tried and left."""
    barred: Rejection | None = None
    """Why it is not started anywhere."""


def start_order(start: Start, pools: list[Pool]) -> tuple[list[Placement], list[tuple[Placement, Rejection]]]:
    """Placements in the order in which they would be taken, and those that are ruled out.

    Every pool at the asked size, then smaller ones. Pools named in placement.pools.allow come in that order. Otherwise
    the objective ranks them by what a chip can do by its specifications for its price; pools without a price come last.
    """
    vendor = home_vendor(start.shape, pools, start.placed)
    possible: list[tuple[Placement, Pool]] = []
    rejected: list[tuple[Placement, Rejection]] = []
    for pool in pools:
        offered = sizes(start.shape, pool)
        barred = whole_pool_gate(start.shape, pool, vendor)
        for placement in _placements(start, pool, offered):
            rejection = (
                barred
                or capacity_type_gate(start.shape, pool, placement.capacity)
                or (None if offered else no_size(start.shape, pool))
                or bounds_gate(start.shape, placement.chips)
                or parallel_gate(start.shape, pool, placement)
                or _terms_gate(start, pool, placement)
            )
            if rejection is None:
                possible.append((placement, pool))
            else:
                rejected.append((placement, rejection))
    return _ranked(start, possible), rejected


def _placements(start: Start, pool: Pool, offered: list[tuple[int, int]]) -> list[Placement]:
    """The nearest size to the asked one and all smaller ones; one that stands for the pool where it offers none."""
    asked, wish = nearest(start.shape, pool, offered), start.wish
    if not offered:
        return [asked]
    placements = [
        Placement(pool.name, count, pods, capacity)
        for capacity in start.shape.capacity_types
        for count, pods in offered
        if count <= asked.chips
    ]
    if wish is not None and wish.pool == pool.name and wish not in placements:
        placements.append(wish)
    return placements


def _terms_gate(start: Start, pool: Pool, placement: Placement) -> Rejection | None:
    """Whether memory, price or a target stands in the way. A missing price does only for a target in dollars."""
    terms, size = start.terms, pool.accelerator.memory_bytes
    if terms.memory is not None:
        if terms.memory * MEMORY_HEADROOM > size:
            return MemoryShort(pool.name, size, terms.memory, measured=False)
        asked, count = start.shape.chips, placement.chips
        worst = terms.memory * asked / count
        if terms.sharded and count < asked and worst * MEMORY_HEADROOM > size:
            return MemoryMayNotSuffice(pool.name, size, count, asked, worst)
    hourly = pool.price.hourly(placement)
    if hourly is None:
        if terms.priced is not None:
            return PriceUnknown(pool.name, terms.priced, terms.objective)
    else:
        missed = (target.before_start(limit, hourly) for target, limit in terms.limits)
        found = next((rejection for rejection in missed if rejection is not None), None)
        if found is not None:
            return found
    avoided = (entry for entry in start.avoided if (entry.pool, entry.chips) == (placement.pool, placement.chips))
    return next(avoided, None) or start.barred


def _ranked(start: Start, possible: Iterable[tuple[Placement, Pool]]) -> list[Placement]:
    """The wish first, then the asked size on every pool in order of preference, then smaller sizes the same way."""
    found, wish = list(possible), start.wish
    order = {name: index for index, name in enumerate(start.shape.allow)}
    with_power = all(pool.accelerator.power_watts for _, pool in found)
    asked = wish.chips if wish is not None else start.shape.chips
    home = wish.pool if wish is not None else None

    def rank(item: tuple[Placement, Pool]) -> tuple[bool, int, bool, int, bool, float, str, Placement]:
        placement, pool = item
        worth = _worth(start.terms.objective, placement, pool, with_power)
        return (
            placement != wish,
            abs(placement.chips - asked),
            pool.name != home,
            order.get(pool.name, len(order)),
            worth is None,
            worth if worth is not None else 0.0,
            pool.name,
            placement,
        )

    return [placement for placement, _ in sorted(found, key=rank)]


def _worth(objective: Objective, placement: Placement, pool: Pool, with_power: bool) -> float | None:
    """What the objective minimises, per chip and in arbitrary units, by specifications and price alone."""
    rate = nominal_rate(pool.accelerator, with_power)
    if rate is None:
        return None
    if objective is Objective.MINIMIZE_TIME:
        return 1.0 / rate
    hourly = pool.price.hourly(placement)
    if hourly is None:
        return None
    price = hourly / placement.chips
    return price / rate if objective is Objective.MINIMIZE_COST else price / (rate * rate)
