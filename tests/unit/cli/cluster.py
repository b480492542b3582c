"""A cluster for the tests of the command line: objects in memory behind the client's reading side."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cli.table import Page
from rightpool.cli.view import ClusterView
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import Forbidden, NotFound
from rightpool.cluster.resources import (
    ACCELERATOR_POOLS,
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUMES,
    PLACEMENT_POLICIES,
    PODS,
    PROFILED_JOBS,
)
from rightpool.workloads.names import workload_hash
from rightpool.workloads.pod_set import PodSet

Object = dict[str, Any]

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC).timestamp()
TEMPLATE: Object = {"spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]}}


def moment(seconds_ago: float = 0.0) -> str:
    return (datetime.fromtimestamp(NOW, UTC) - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")


class FakeClient:
    """The part of the client that ClusterView uses. `forbidden`: kinds that may not be listed in all
    namespaces, `hidden`: in none."""

    def __init__(self) -> None:
        self.objects: dict[Resource, list[Object]] = {
            kind: []
            for kind in (
                PROFILED_JOBS,
                ACCELERATOR_POOLS,
                PLACEMENT_POLICIES,
                NODES,
                PERSISTENT_VOLUMES,
                JOBS,
                PODS,
                LEASES,
                EVENTS,
                CONFIG_MAPS,
            )
        }
        self.forbidden: set[Resource] = set()
        self.hidden: set[Resource] = set()
        self._version = 0

    def add(self, resource: Resource, body: Object) -> Object:
        self._version += 1
        body = copy.deepcopy(body)
        name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "")
        body["metadata"].setdefault("uid", f"{resource.plural}/{namespace}/{name}")
        body["metadata"]["resourceVersion"] = str(self._version)
        self.objects[resource].append(body)
        return body

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        self._allow(resource, namespace)
        for body in self.objects[resource]:
            if body["metadata"]["name"] == name and namespace in (None, body["metadata"].get("namespace")):
                return body
        raise NotFound(f'{resource.plural} "{name}" not found', status=404)

    def list_all(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> list[Object]:
        self._allow(resource, namespace)
        return [
            body
            for body in self.objects.get(resource, ())
            if namespace in (None, body["metadata"].get("namespace")) and _selected(body, labels)
        ]

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]:
        yield Listing(self.list_all(resource, namespace, labels=labels, fields=fields), str(self._version), "")

    def _allow(self, resource: Resource, namespace: str | None) -> None:
        if resource not in self.objects:
            raise NotFound("the server could not find the requested resource", status=404)
        if resource in self.hidden or (resource in self.forbidden and namespace is None):
            raise Forbidden(f'{resource.plural} is forbidden: User "dev" cannot list them', status=403)


def _selected(body: Object, labels: str | None) -> bool:
    """Selectors as the view writes them: key, !key, key=value, key in (value)."""
    if labels is None:
        return True
    has = body["metadata"].get("labels") or {}
    key, _, values = labels.partition(" in ")
    if values:
        return has.get(key) in values.strip("()").split(",")
    key, _, value = labels.partition("=")
    if value:
        return bool(has.get(key) == value)
    return (key.removeprefix("!") in has) is not key.startswith("!")


def node(name: str, labels: dict[str, str], resource: str, chips: int) -> Object:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": resource, "value": "present", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "64", resource: str(chips)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pool(name: str, accelerator: str, chips_per_node: int, labels: dict[str, str], price: str | None) -> Object:
    spec: Object = {
        "accelerator": accelerator,
        "chipsPerNode": chips_per_node,
        "resourceName": "nvidia.com/gpu",
        "nodeSelector": labels,
    }
    if price is not None:
        spec["price"] = {"perChipHour": price}
    chips = {"total": 2 * chips_per_node, "allocated": 0, "free": 2 * chips_per_node}
    return {"metadata": {"name": name}, "spec": spec, "status": {"nodes": 2, "chips": chips}}


A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
A10G = {"node.kubernetes.io/instance-type": "g5.12xlarge"}


def placement(pool_name: str = "a100", chips: int = 4, revision: int = 1, cost: str | None = "20.28") -> Object:
    return {
        "revision": revision,
        "pool": pool_name,
        "chips": chips,
        "replicas": 1,
        "capacity": "OnDemand",
        "costPerHour": cost,
        "since": moment(3600),
        "createdAt": moment(3700),
        "workloadHash": workload_hash([PodSet("worker", TEMPLATE)]),
        "requestedChips": chips,
        "requestedReplicas": 1,
    }


def profile(**changes: Any) -> Object:
    values = {
        "window": "5m",
        "measuredAt": moment(20),
        "samplesPerSecond": "6070",
        "stepSeconds": "0.169",
        "chipBusy": "0.98",
        "computeActive": "0.87",
        "matrixActive": "0.14",
        "memoryBandwidth": "0.45",
        "memoryUsedBytes": 11_000_000_000,
        "bottleneck": "MemoryBandwidth",
        "quality": "Measured",
    }
    return {key: value for key, value in (values | changes).items() if value is not None}


def condition(kind: str, status: str = "True", reason: str = "Measured", message: str = "") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": moment(600),
        "observedGeneration": 1,
    }


def held(place: Object, **changes: Any) -> Object:
    """The account of a job whose pods hold what it is placed on."""
    values = {"perHour": place["costPerHour"], "chips": place["chips"], "spent": "40.00", "saved": "0.00"}
    return {key: value for key, value in (values | {"asOf": moment(0)} | changes).items() if value is not None}


def running_status(**changes: Any) -> Object:
    place = changes.get("placement") or placement()
    values: Object = {
        "observedGeneration": 1,
        "conditions": [
            condition("Placed", reason="Running"),
            condition("Profiled"),
            condition("Efficient", reason="EfficientEnough", message="what the operator saw. what helps"),
        ],
        "placement": place,
        "profile": profile(),
        "cost": held(place),
        "moves": 0,
        "ledgerCount": 1,
    }
    return {key: value for key, value in (values | changes).items() if value is not None}


def job(name: str = "resnet50", namespace: str = "vision", status: Object | None = None, **spec: Any) -> Object:
    """A ProfiledJob of four chips that may run on both pools; `spec` has further fields."""
    base: Object = {
        "workload": {"job": {"replicas": 1, "chipsPerReplica": 4, "template": TEMPLATE}},
        "elasticity": {"minChips": 4, "maxChips": 4},
        "adaptation": {"mode": "Auto"},
    }
    return {
        "apiVersion": "rightpool.dev/v1alpha1",
        "kind": "ProfiledJob",
        "metadata": {"name": name, "namespace": namespace, "generation": 1, "creationTimestamp": moment(4000)},
        "spec": base | spec,
        "status": running_status() if status is None else status,
    }


def pod(owner: str, namespace: str, node_name: str, chips: int = 4, revision: int = 1) -> Object:
    child = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{owner}-r{revision}", "uid": "j", "controller": True}
    return {
        "metadata": {
            "name": f"{owner}-r{revision}-0",
            "namespace": namespace,
            "labels": {"rightpool.dev/profiledjob": owner, "rightpool.dev/revision": str(revision)},
            "ownerReferences": [child],
        },
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": "trainer", "resources": {"limits": {"nvidia.com/gpu": str(chips)}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def two_pools() -> FakeClient:
    """Two A100 nodes of eight, two A10G nodes of four, declared, with prices; nothing runs."""
    client = FakeClient()
    for index in range(2):
        client.add(NODES, node(f"a100-{index}", A100, "nvidia.com/gpu", 8))
        client.add(NODES, node(f"a10g-{index}", A10G, "nvidia.com/gpu", 4))
    client.add(ACCELERATOR_POOLS, pool("a100", "A100-SXM4-80GB", 8, A100, "5.07"))
    client.add(ACCELERATOR_POOLS, pool("a10g", "A10G-24GB", 4, A10G, "1.006"))
    return client


def view_of(client: FakeClient, namespace: str = "vision") -> ClusterView:
    return ClusterView(client, namespace, "rightpool-system")  # type: ignore[arg-type]


def printed(width: int | None = None) -> tuple[Page, io.StringIO]:
    """A page and its output. `width` is None without a terminal."""
    stream = io.StringIO()
    return Page(stream, width), stream
