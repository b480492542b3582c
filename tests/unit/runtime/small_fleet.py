"""A few jobs of the synthetic fleet, on few nodes."""

from benchmarks.cycle import Cluster, filled
from benchmarks.synthetic_fleet import nodes
from rightpool.runtime.observe.store import Store


def small_store(cluster: Cluster, jobs: int, now: float) -> Store:
    """With room for every job on each kind of node. To look through all 2,000 nodes takes longer than a few jobs."""
    return filled(cluster, jobs, now, nodes(20))
