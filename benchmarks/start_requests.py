"""The API requests of a job's start, counted in the operator's own loop from the first status write on.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m benchmarks.start_requests

Events, pools, the books of namespaces and statuses that only report progress are not counted.
"""

from typing import Any, Final

from benchmarks import bars
from benchmarks.cycle import INTERVAL, Cluster, planner_of
from benchmarks.synthetic_fleet import Body, nodes
from rightpool.api.kubernetes import Resource
from rightpool.cluster.errors import AlreadyExists, NotFound
from rightpool.cluster.resources import ACCELERATOR_POOLS, CONFIG_MAPS, EVENTS, NODES, PROFILED_JOBS
from rightpool.runtime.observe.store import Store

_NOT_COUNTED: Final = (EVENTS, ACCELERATOR_POOLS, CONFIG_MAPS)


class RecordingCluster(Cluster):
    """Keeps every object, and records each request."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []
        self._bodies: dict[tuple[Resource, str], Body] = {}

    def put(self, resource: Resource, body: Body) -> Body:
        """Store it as the API server would."""
        stored = super().put(resource, body)
        self._bodies[resource, stored["metadata"]["name"]] = stored
        return stored

    def stored(self, resource: Resource, namespace: str | None, name: str) -> Body:
        """An object as it was last written; empty before its first write."""
        return self._bodies.get((resource, name), {})

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Body:
        """Get one object."""
        self._record("GET", resource)
        if (resource, name) not in self._bodies:
            raise NotFound(name)
        return self._bodies[resource, name]

    def list_all(self, resource: Resource, namespace: str | None = None, **_: Any) -> list[Body]:
        """List every object of a resource."""
        self._record("LIST", resource)
        return [body for (found, _), body in self._bodies.items() if found == resource]

    def apply(self, resource: Resource, body: Body, *, subresource: str | None = None) -> Body:
        """Server-side apply."""
        self._record("PATCH", resource, subresource)
        old = self.stored(resource, None, body["metadata"]["name"])
        return self.put(resource, {**body, "spec": {**old.get("spec", {}), **body.get("spec", {})}})

    def create(self, resource: Resource, body: Body, *, dry_run: bool = False, strict: bool = False) -> Body:
        """Create an object."""
        self._record("POST", resource)
        if (resource, body["metadata"]["name"]) in self._bodies:
            raise AlreadyExists(body["metadata"]["name"])
        return dict(body) if dry_run else self.put(resource, dict(body))

    def _record(self, verb: str, resource: Resource, subresource: str | None = None) -> None:
        if resource not in _NOT_COUNTED:
            self.requests.append(f"{verb} {resource.plural}{f'/{subresource}' if subresource else ''}")


def start_requests(replicas: int, queue: str | None = None) -> tuple[list[str], list[str]]:
    """Requests of the cycle that starts the job, and of the next one, before its pods run."""
    cluster, store, clock = RecordingCluster(), Store(), {"now": 1_800_000_000.0}
    for node in nodes():
        store.observe(NODES, None, cluster.put(NODES, node))
    template = {"spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]}}
    workload = {"job": {"chipsPerReplica": 1, "replicas": replicas, "template": template}}
    spec = {"workload": workload} if queue is None else {"workload": workload, "queueName": queue}
    metadata = {"name": "bert", "namespace": "research", "creationTimestamp": "2026-11-21T10:00:00Z"}
    store.observe(PROFILED_JOBS, None, cluster.put(PROFILED_JOBS, {"metadata": metadata, "spec": spec}))
    planner = planner_of(cluster, store, clock)
    requests = []
    for _ in range(2):
        cluster.requests.clear()
        planner.cycle()
        clock["now"] += INTERVAL
        requests.append(list(cluster.requests))
    return requests[0], requests[1]


if __name__ == "__main__":
    counts: dict[tuple[int, str | None], int] = {}
    print("| pods | in a queue | requests | which |\n|---|---|---|---|")
    for pods in (1, 2):
        for name in (None, "research"):
            first, _ = start_requests(pods, name)
            counts[pods, name] = len(first)
            print(f"| {pods} | {'no' if name is None else 'yes'} | {len(first)} | {', '.join(first)} |")
    print(bars.against({bars.START: counts[1, None], bars.START_WITH_SERVICE: counts[2, None]}))
