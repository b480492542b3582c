"""Closed pools: those whose chips no job of the fleet may have, whatever is free and whatever they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.enumerate import options
from rightpool.planning.offers.pool_gates import home_vendor, placed_vendor
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.shape import Shape


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
