"""One tenant's namespace: jobs that go through everything within seconds, and what can be asked about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, Conflict
from rightpool.cluster.resources import JOBS, NODES, PODS, SERVICES, Resource
from rightpool.contract import LABEL_JOB
from tests.integration.runtime.harness import Fleet, eventually

Body = dict[str, Any]
SIMULATION = "simulation.rightpool.dev/"
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
START_DEADLINE = 20.0  # long enough for those that can start

NODE_LABEL = "faults.rightpool.dev/pool"

POOLS: dict[str, Body] = {
    "faults-a100": {"accelerator": "A100-SXM4-80GB", "chipsPerNode": 8, "price": {"perChipHour": "5.07"}},
    "faults-a10g": {"accelerator": "A10G-24GB", "chipsPerNode": 4, "price": {"perChipHour": "1.006"}},
}
for _name, _spec in POOLS.items():
    _spec.update(resourceName="nvidia.com/gpu", nodeSelector={NODE_LABEL: _name})
NODES_OF_EACH = 8
A100, A10G = POOLS
POLICY: Body = {
    "defaultAdaptationMode": "Auto",
    "maxConcurrentMigrations": 100,
    "maxMovesPerHour": 10_000,
    "minRunTime": "1s",
    "startDeadline": f"{START_DEADLINE:.0f}s",
    "circuitBreaker": {"window": 10, "maxRolledBackShare": "1.0"},
}


def nodes() -> list[Body]:
    """Simulated nodes that no pool but these tests' own may count."""
    made = []
    for pool, spec in POOLS.items():
        for index in range(NODES_OF_EACH):
            name, chips = f"{pool}-{index}", str(spec["chipsPerNode"])
            room = {"cpu": "512", "memory": "4Ti", "pods": "250", "nvidia.com/gpu": chips}
            labels = {"kubernetes.io/hostname": name, NODE_LABEL: pool, SIMULATION + "accelerator": spec["accelerator"]}
            about = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
            taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
            made.append(
                {"metadata": about, "spec": {"taints": [taint]}, "status": {"capacity": room, "allocatable": room}}
            )
    return made


def make_node(client: ClusterClient, body: Body) -> None:
    """A node that is there and Ready."""
    try:
        client.create(NODES, body)
    except AlreadyExists:
        pass

    def ready() -> bool:
        conditions = client.get(NODES, body["metadata"]["name"]).get("status", {}).get("conditions") or ()
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    eventually(ready)


class Tenant(Fleet):
    """Jobs here may move; see `Fleet` for what can be asked."""

    def train(self, name: str, *, replicas: int = 1, play: Body | None = None, **spec: Any) -> Body:
        """ResNet-50 on an A100, which is cheaper on an A10G. play: annotations for the simulation."""
        annotations = {
            "workload": "resnet50",
            "warm-up": "0s",
            "checkpoint-delay": "300ms",
            "start-delay": "200ms",
            "stop-delay": "200ms",
            **(play or {}),
        }
        template = {
            "metadata": {"annotations": {SIMULATION + key: value for key, value in annotations.items()}},
            "spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]},
        }
        return self.create(
            name,
            **{
                "template": template,
                "job": {"chipsPerReplica": 1, "replicas": replicas},
                "elasticity": {"minChips": replicas, "maxChips": replicas},
                "placement": {"pools": {"allow": [A100, A10G]}},
                "checkpoint": {"mode": "Signal", "timeout": "30s"},
                "profiling": {"interval": "1s", "window": "6s"},
                "adaptation": {"cooldown": "1h"},
                **spec,
            },
        )

    def edit(self, name: str, change: Callable[[Body], None]) -> None:
        """A user's edit, which meets with the operator's writes."""
        while True:
            try:
                return super().edit(name, change)
            except Conflict:
                continue

    def settled(self, name: str) -> bool:
        """Placed, and nothing under way."""
        status = self.status(name)
        return self.condition(name, "Placed").get("status") == "True" and not status.get("migration")

    def phase(self, name: str) -> str | None:
        migration = self.status(name).get("migration") or {}
        return migration.get("phase")

    def pool(self, name: str) -> str | None:
        placement = self.status(name).get("placement") or {}
        return placement.get("pool")

    def outcomes(self, name: str) -> list[str]:
        return [entry["outcome"] for entry in self.status(name).get("history") or ()]

    def running(self, name: str, child: str | None = None) -> bool:
        number = (self.status(name).get("placement") or {}).get("revision")
        return super().running(name, child or f"{name}-r{number}")

    def children(self, name: str) -> set[str]:
        """Names of Jobs and Services of a job."""
        found: set[str] = set()
        for resource in (JOBS, SERVICES):
            bodies = self.client.list_all(resource, self.namespace, labels=f"{LABEL_JOB}={name}")
            found |= {f"{resource.kind}/{body['metadata']['name']}" for body in bodies}
        return found

    def only_child(self, name: str) -> None:
        """Nothing is left of any Revision but the present one, and nothing else was made."""
        placement = self.status(name)["placement"]
        child = f"{name}-r{placement['revision']}"
        wanted = {f"Job/{child}"} | ({f"Service/{child}"} if placement["replicas"] > 1 else set())
        eventually(lambda: self.children(name) == wanted, what=f"only {wanted}")
        maps = {body["metadata"]["name"] for body in self.client.list_all(CONFIG_MAPS, self.namespace)}
        assert maps <= {"kube-root-ca.crt"}

    def uids(self, name: str) -> set[str]:
        """Of the living pods."""
        return {pod["metadata"]["uid"] for pod in self.pods(name) if pod["status"].get("phase") == "Running"}

    def annotate_pods(self, name: str, **changes: str) -> None:
        """Tell the simulation to play the living pods differently."""
        for pod in self.client.list_all(PODS, self.namespace, labels=f"{LABEL_JOB}={name}"):
            pod["metadata"].setdefault("annotations", {}).update({SIMULATION + k: v for k, v in changes.items()})
            self.client.replace(PODS, pod)
