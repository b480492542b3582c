"""Kueue's objects for one namespace, and what Kueue says of a child."""

from __future__ import annotations

from typing import Any

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, Conflict, NotFound
from rightpool.cluster.resources import WORKLOADS
from tests.integration.faults.fleet import NODE_LABEL

Body = dict[str, Any]
GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
FLAVORS = Resource(GROUP, VERSION, "ResourceFlavor", "resourceflavors", namespaced=False)
CLUSTER_QUEUES = Resource(GROUP, VERSION, "ClusterQueue", "clusterqueues", namespaced=False)
LOCAL_QUEUES = Resource(GROUP, VERSION, "LocalQueue", "localqueues")
PRIORITIES = Resource(GROUP, VERSION, "WorkloadPriorityClass", "workloadpriorityclasses", namespaced=False)
QUEUE = "research"
HIGH = "high"
CHIP = "nvidia.com/gpu"
PLENTY = {"cpu": "1000", "memory": "1000Gi"}  # the profiler asks for some, and a queue must know what it counts


class Queues:
    """A LocalQueue named `research`, and a ClusterQueue with a flavor for each pool."""

    def __init__(self, client: ClusterClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._made = False

    def quota(self, **chips: int) -> None:
        """How many chips the namespace may use of each pool, whose name has `_` for `-`."""
        named = {pool.replace("_", "-"): count for pool, count in chips.items()}
        for pool in named:
            self._put(FLAVORS, pool, {"nodeLabels": {NODE_LABEL: pool}})
        flavors = [
            {
                "name": pool,
                "resources": [{"name": name, "nominalQuota": amount} for name, amount in PLENTY.items()]
                + [{"name": CHIP, "nominalQuota": str(count)}],
            }
            for pool, count in named.items()
        ]
        spec = {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": [*PLENTY, CHIP], "flavors": flavors}],
        }
        self._put(CLUSTER_QUEUES, self._namespace, spec)
        if not self._made:
            about = {"name": QUEUE, "namespace": self._namespace}
            self._client.create(LOCAL_QUEUES, {"metadata": about, "spec": {"clusterQueue": self._namespace}})
            try:
                self._client.create(PRIORITIES, {"metadata": {"name": HIGH}, "value": 1000})
            except AlreadyExists:
                pass
        self._made = True

    def _put(self, resource: Resource, name: str, spec: Body) -> None:
        """Create it, or replace what is there."""
        while True:
            try:
                self._client.create(resource, {"metadata": {"name": name}, "spec": spec})
                return
            except AlreadyExists:
                pass
            try:
                self._client.replace(resource, {**self._client.get(resource, name), "spec": spec})
                return
            except Conflict:
                continue  # Kueue writes its status

    def used(self, pool: str) -> int:
        """Chips of a pool that are reserved for admitted workloads."""
        status = self._client.get(CLUSTER_QUEUES, self._namespace).get("status") or {}
        for flavor in status.get("flavorsReservation") or ():
            if flavor["name"] == pool:
                return sum(int(entry["total"]) for entry in flavor["resources"] if entry["name"] == CHIP)
        return 0

    def workload(self, child: Body) -> Body:
        """Kueue's Workload of a child; empty where there is none."""
        labels = f"{GROUP}/job-uid={child['metadata']['uid']}"
        return next(iter(self._client.list_all(WORKLOADS, self._namespace, labels=labels)), {})

    def remove(self) -> None:
        """Delete the ClusterQueue, which belongs to no namespace."""
        try:
            self._client.delete(CLUSTER_QUEUES, self._namespace)
        except NotFound:
            pass
