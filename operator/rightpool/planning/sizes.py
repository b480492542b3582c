"""Sizes: how many chips, in how many pods, a job can use and a pool can give."""

from rightpool.hardware.placement import CapacityType, Placement
from rightpool.hardware.pool import Pool
from rightpool.hardware.shape import replicas, shapes, why_not
from rightpool.planning import gates
from rightpool.planning.snapshot import JobState


def sizes(job: JobState, pool: Pool) -> list[tuple[int, int]]:
    """(chips, replicas) that the job can use and the pool can give, smallest first, the asked size among them."""
    spec = job.spec
    elasticity, workload = spec.elasticity, spec.workload.job
    offered = shapes(pool, elasticity.min_chips, spec.max_chips, elasticity.chip_counts, workload.chips_per_replica)
    asked = workload.chips
    if (
        elasticity.chip_counts is None
        and all(count != asked for count, _ in offered)
        and elasticity.min_chips <= asked <= spec.max_chips
        and why_not(pool, asked) is None
    ):
        offered = sorted([*offered, (asked, replicas(pool, asked, workload.chips_per_replica))])
    return offered


def nearest(job: JobState, pool: Pool, capacity: CapacityType | None = None) -> Placement:
    """What stands for a pool that is ruled out as a whole: the size nearest to the asked one."""
    workload = job.spec.workload.job
    capacity = capacity or gates.capacity_types(job.spec)[0]
    offered = sizes(job, pool)
    if not offered:
        return Placement(pool.name, workload.chips, workload.replicas, capacity)
    count, pods = min(offered, key=lambda size: (abs(size[0] - workload.chips), size[0]))
    return Placement(pool.name, count, pods, capacity)
