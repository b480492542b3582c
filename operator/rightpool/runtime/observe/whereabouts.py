"""Where an adopted object is: by the nodes that its pods are on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf

from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.placement import CapacityType, Placement
from rightpool.hardware.clouds import is_spot
from rightpool.planning.jobs.adopted import Adopted
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal
from rightpool.runtime.observe.facts import ChildFacts, PodFacts
from rightpool.runtime.observe.pool_inventory import PoolInventory


def found_at(job: Job, child: ChildFacts, pods: Iterable[PodFacts], inventory: PoolInventory) -> Job:
    """The job with what is seen of its object. pods: those that train."""
    alive = [pod for pod in pods if not pod.done and pod.node is not None]
    pools = _pools(alive, inventory)
    seen = Adopted(child.uid, child.revision, None, None if child.adopted is None else child.adopted.note)
    if len(pools) > 1:
        message = (
            f"pods of {job.spec.workload_ref} run in pools {' and '.join(sorted(pools))}, and one job is looked at in "
            "one pool: keep them to one by a nodeSelector"
        )
        refusal = ChildRefusal(child.revision, job.generation, Reason.SPANS_POOLS, message, inf)
        return altered(job, observed=job.observed._replace(adopted=seen, refusal=refusal))
    # What keeps it to its pool is where it is, and no wish of its own.
    original, size = (None, None) if child.adopted is None else (child.adopted.original, child.adopted.size)
    needs = job.needs if original is None else job.needs.without(original.selector)
    if not pools or not job.spec.seen or size is None:
        return altered(job, needs=needs, observed=job.observed._replace(adopted=seen))
    pool = inventory.inventory.pools[pools.pop()]
    names = {pod.node for pod in alive}
    spot = any(is_spot(node.labels) for node in inventory.nodes if node.name in names)
    capacity = CapacityType.SPOT if spot else CapacityType.ON_DEMAND
    place = Placement(pool.name, *size, capacity)
    needs = needs.without(pool.node_selector)
    seen = altered(seen, placement=place, chip=pool.accelerator.key)
    return altered(job, needs=needs, observed=job.observed._replace(adopted=seen))


def _pools(pods: Collection[PodFacts], inventory: PoolInventory) -> set[str]:
    owners, pools = inventory.inventory.owners, inventory.inventory.pools
    found = {owners.get((pod.node or "", resource)) for pod in pods for resource, chips in pod.chips if chips}
    return {name for name in found if name is not None and name in pools}
