"""Where an adopted object is: by the nodes that its pods are on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf

from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration
from rightpool.api.placement import CapacityType, Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.adopted import Adopted, AwaitedChips
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
    pods = [pod for pod in pods if not pod.done]
    alive = [pod for pod in pods if pod.node is not None]
    pools, about = _pools(alive, inventory), child.adopted
    resources = {pool.resource_name for pool in inventory.inventory.pools.values()}
    awaits = awaited_chips(job, child, pods, resources, pools)
    assert about is not None
    before = None if about.original is None or about.edited else about.original.placement
    members = "=".join(about.members)
    profiled = bool(alive) and all(pod.profiled for pod in alive)
    seen = Adopted(
        child.uid, child.revision, None, before, about.note, members, profiled=profiled, admits=admits, awaits=awaits
    )
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


def awaited_chips(
    job: Job, child: ChildFacts, pods: Collection[PodFacts], resources: Collection[str], there: Collection[str] = ()
) -> AwaitedChips | None:
    """The chips that Kubernetes finds nowhere for its pods. pods: those that have not ended. resources: of the pools.
    there: pools that some of its pods are in."""
    here = job.state.revision
    about, pending = child.adopted, [pod for pod in pods if pod.node is None and not pod.deleting]
    moments = [pod.unschedulable_since for pod in pending if pod.unschedulable_since is not None]
    if about is None or about.size is None or not job.spec.seen or not moments:
        return None
    if about.original is not None and here is None:
        return None  # where it was to go is not known any more
    homeless = any(pod.node is not None for pod in pods) and not there
    if homeless or len(there) > 1 or any(pod.own_block for pod in pending):
        return None  # it is in no one pool, or no chips would help it
    chips = [(resource, count) for pod in pending for resource, count in pod.chips if count and resource in resources]
    asked, waiting = {resource for resource, _ in chips}, len(chips)
    if len(asked) != 1 or len({count for _, count in chips}) != 1:
        return None
    since = min(moments)
    if here is None:  # pods that are made anew have waited before
        since = max(job.created_at, child.state.started_at or since)
    kept = here is not None and not job.spec.only_watched
    pool = next(iter(there), here.placement.pool if here is not None and kept else None)
    return AwaitedChips(sum(count for _, count in chips), waiting, asked.pop(), since, pool)


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
