"""Where an adopted object is: by the nodes that its pods are on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf

from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration
from rightpool.api.placement import CapacityType, Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.adopted import Adopted
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal
from rightpool.runtime.observe.facts import ChildFacts, PodFacts
from rightpool.runtime.observe.pool_inventory import PoolInventory


def found_at(
    job: Job,
    child: ChildFacts,
    pods: Iterable[PodFacts],
    inventory: PoolInventory,
    shaped: Mapping[str, Pool],
    *,
    admits: bool,
) -> Job:
    """The job with what is seen of its object. pods: those that train. shaped: the pools with what jobs ask of their
    nodes. admits: whether new pods get the profiler."""
    alive = [pod for pod in pods if not pod.done and pod.node is not None]
    pools, about = _pools(alive, inventory), child.adopted
    assert about is not None
    before = None if about.original is None or about.edited else about.original.placement
    members = "=".join(about.members)
    profiled = bool(alive) and all(pod.profiled for pod in alive)
    seen = Adopted(child.uid, child.revision, None, before, about.note, members, profiled=profiled, admits=admits)
    migration = job.state.migration
    if migration is not None:  # of a kind that goes by group some pods are still where it was
        job = _without_left(job, migration, alive, inventory)
    elif len(pools) > 1:
        message = (
            f"pods of {job.spec.workload_ref} run in pools {' and '.join(sorted(pools))}, and one job is looked at in "
            "one pool: keep them to one by a nodeSelector"
        )
        refusal = ChildRefusal(child.revision, job.generation, Reason.SPANS_POOLS, message, inf)
        return altered(job, observed=job.observed._replace(adopted=seen, refusal=refusal))
    # What keeps it to its pool is where it is, and no wish of its own.
    if about.original is not None:
        job = altered(job, needs=job.needs.without(about.original.selector))
    if len(pools) != 1 or not job.spec.seen or about.size is None:
        return altered(job, observed=job.observed._replace(adopted=seen))
    pool = inventory.inventory.pools[pools.pop()]
    spot = any(pod.node in inventory.spot for pod in alive)
    capacity = CapacityType.SPOT if spot else CapacityType.ON_DEMAND
    seen = altered(seen, placement=Placement(pool.name, *about.size, capacity), chip=pool.accelerator.key)
    return altered(job.released(pool.name, shaped), observed=job.observed._replace(adopted=seen))


def _without_left(job: Job, migration: Migration, pods: Collection[PodFacts], inventory: PoolInventory) -> Job:
    """The job whose target does not run in those of these pods that are in the pool which it leaves."""
    left, there = migration.moving.placement.pool, migration.target
    state = job.observed.revisions.get(there.revision)
    if state is None or left == there.placement.pool:
        return job
    behind = sum(pod.ready and not pod.deleting and left in _pools([pod], inventory) for pod in pods)
    revisions = {**job.observed.revisions, there.revision: altered(state, running=max(0, state.running - behind))}
    return altered(job, observed=job.observed._replace(revisions=revisions)) if behind else job


def _pools(pods: Collection[PodFacts], inventory: PoolInventory) -> set[str]:
    owners, pools = inventory.inventory.owners, inventory.inventory.pools
    found = {owners.get((pod.node or "", resource)) for pod in pods for resource, chips in pod.chips if chips}
    return {name for name in found if name is not None and name in pools}
