"""The cluster of a campaign, with pools, a policy and tenants' namespaces."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import cluster as clusters
from devcluster.cluster import Running
from devcluster.progress import Progress
from devcluster.spec import CHAOS, Cluster
from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound, Unavailable
from rightpool.cluster.resources import ACCELERATOR_POOLS, PLACEMENT_POLICIES
from tests.patience import PATIENCE, eventually

ROOT: Final = Path(__file__).resolve().parents[2]
TENANTS: Final = ("tenant-a", "tenant-b", "tenant-c")
SYSTEM: Final = "rightpool-system"
SIMULATION: Final = "simulation"  # the ConfigMap that tells the replay how pools behave
START_DEADLINE: Final = 12.0
MAX_WAIT: Final = 30.0

CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAPS: Final = Resource("", "v1", "ConfigMap", "configmaps")

Body = dict[str, Any]

POOLS: Final[dict[str, Body]] = {
    "a100": {
        "accelerator": "A100-SXM4-80GB",
        "chipsPerNode": 8,
        "resourceName": "nvidia.com/gpu",
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        "price": {"perChipHour": "5.07"},
    },
    "a10g": {
        "accelerator": "A10G-24GB",
        "chipsPerNode": 4,
        "resourceName": "nvidia.com/gpu",
        "nodeSelector": {"node.kubernetes.io/instance-type": "g5.12xlarge"},
        "price": {"perChipHour": "0.70"},
    },
    "dev": {
        "accelerator": "CPU",
        "chipsPerNode": 2,
        "resourceName": "rightpool.dev/cpu-chip",
        "nodeSelector": {"kubernetes.io/hostname": "node-0"},
        "price": {"perChipHour": "0.05"},
    },
}
POLICY: Final[Body] = {
    "defaultAdaptationMode": "Auto",
    "maxConcurrentMigrations": 100,
    "maxMovesPerHour": 100_000,
    "minRunTime": "1s",
    "startDeadline": f"{START_DEADLINE:.0f}s",
    "circuitBreaker": {"window": 10, "maxRolledBackShare": "1.0"},
    "fleet": {"mode": "Auto", "maxWait": f"{MAX_WAIT:.0f}s"},
}


@dataclass(frozen=True)
class Environment:
    """A running cluster that a campaign may break, and the campaign's own client."""

    running: Running
    client: ClusterClient

    @property
    def kubeconfig(self) -> Path:
        return self.running.kubeconfig

    @property
    def spec(self) -> Cluster:
        return self.running.spec

    def apply_pool(self, name: str, **changes: Any) -> None:
        """Write a pool as defined above, with changes; None removes a field."""
        spec = {key: value for key, value in {**POOLS[name], **changes}.items() if value is not None}
        persistently(lambda: self._put(ACCELERATOR_POOLS, name, spec))

    def plan_fleet(self, mode: str) -> None:
        """Switch the planner of the fleet: Auto or Off."""
        fleet = {**POLICY["fleet"], "mode": mode}
        persistently(lambda: self._put(PLACEMENT_POLICIES, "default", {**POLICY, "fleet": fleet}))

    def simulate(self, **pools: Body) -> None:
        """Set how simulated pools behave. Pools that are not named behave as published."""
        data = {name.replace("_", "-"): json.dumps(value) for name, value in pools.items()}
        body = {"metadata": {"name": SIMULATION, "namespace": "kube-system"}, "data": data}

        def put() -> None:
            try:
                self.client.create(CONFIG_MAPS, body)
            except AlreadyExists:
                self.client.replace(CONFIG_MAPS, body)

        persistently(put)

    def prepare(self) -> None:
        """Create CRDs, policy, pools and namespaces. Idempotent."""
        for path in sorted((ROOT / "crds").glob("*.yaml")):
            definition = yaml.safe_load(path.read_text())
            body = {key: definition[key] for key in ("metadata", "spec")}
            persistently(lambda body=body: self.client.apply(CRDS, body))  # type: ignore[misc]
            name = definition["metadata"]["name"]
            eventually(lambda name=name: self._established(name), f"{name} is established")  # type: ignore[misc]
        for name in (*TENANTS, SYSTEM):
            self._create(NAMESPACES, {"metadata": {"name": name}})
        persistently(lambda: self._put(PLACEMENT_POLICIES, "default", POLICY))
        for name in POOLS:
            self.apply_pool(name)
        self.simulate()

    def _established(self, name: str) -> bool:
        try:
            return "Established" in str(self.client.get(CRDS, name).get("status"))
        except ClusterError:
            return False

    def _create(self, resource: Resource, body: Body) -> None:
        try:
            self.client.create(resource, body)
        except AlreadyExists:
            pass

    def _put(self, resource: Resource, name: str, spec: Body) -> None:
        try:
            body = self.client.get(resource, name)
        except NotFound:
            self.client.create(resource, {"metadata": {"name": name}, "spec": spec})
            return
        self.client.replace(resource, {**body, "spec": spec})


def connect(spec: Cluster = CHAOS) -> Environment:
    """Start the cluster, or repair what an earlier campaign broke, and prepare it."""
    environment = Environment(
        clusters.up(spec, Progress()), ClusterClient.connect(spec.kubeconfig, qps=1000, burst=1000, timeout=5)
    )
    environment.prepare()
    return environment


def persistently(action: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Retry while the API server is unavailable or the object changes concurrently: a repair must not be lost."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            action()
            return
        except NotFound:
            raise
        except (Conflict, Unavailable):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)
