"""A node whose chips are devices of Dynamic Resource Allocation, with the real scheduler giving them out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import Invalid
from rightpool.cluster.resources import ACCELERATOR_POOLS, DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from rightpool.hardware.catalog import load_catalog
from rightpool.runtime.observe.facts import node_facts, pod_facts
from rightpool.runtime.observe.pool_inventory import take_inventory
from rightpool.runtime.observe.usage import ChipUsage
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.patience import eventually

pytestmark = pytest.mark.cluster

CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
GPU, DRIVER, NODE, POOL = "nvidia.com/gpu", "gpu.nvidia.com", "devices-0", "h200"
LABELS = {"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.count": "4", "nvidia.com/gpu.memory": "143771"}


def of_node(name: str) -> list[tuple[Resource, Body]]:
    """The node, its devices, and the class by which pods ask for them with a resource name."""
    room = {"cpu": "64", "memory": "1Ti", "pods": "100"}
    device = {"attributes": {"type": {"string": "gpu"}}}
    node = {
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, **LABELS},
        },
        "status": {"capacity": room, "allocatable": room},
    }
    found = {
        "driver": DRIVER,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{index}", **device} for index in range(4)],
    }
    cel = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    return [
        (NODES, node),
        (DEVICE_CLASSES, {"metadata": {"name": DRIVER}, "spec": {"extendedResourceName": GPU, "selectors": [cel]}}),
        (RESOURCE_SLICES, {"metadata": {"name": f"{name}-gpu"}, "spec": found}),
    ]


@pytest.fixture
def devices(client: ClusterClient) -> Iterator[None]:
    made = of_node(NODE)
    for resource, body in made:
        client.create(resource, body)
    yield
    for resource, body in reversed(made):
        client.delete(resource, body["metadata"]["name"])
    client.delete(ACCELERATOR_POOLS, POOL)


def claim(fleet: Fleet, count: int) -> None:
    """A pod of somebody else, which asks by a claim and by no resource name."""
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}
    template = {"spec": {"devices": {"requests": [request]}}}
    where = {"name": "others", "namespace": fleet.namespace}
    fleet.client.create(CLAIM_TEMPLATES, {"metadata": where, "spec": template})
    container = {"name": "c", "image": "example.com/x:1", "resources": {"claims": [{"name": "gpu"}]}}
    spec: Body = {
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "others"}],
        "containers": [container],
    }
    fleet.client.create(PODS, {"metadata": where, "spec": spec})


def test_a_job_runs_on_devices_and_claims_of_others_count(start: Start, fleet: Fleet, devices: None) -> None:
    claim(fleet, 1)
    eventually(lambda: fleet.client.get(PODS, "others", fleet.namespace)["status"]["phase"] == "Running", "a claim")
    start("a", RIGHTPOOL_USAGE_INTERVAL="1")
    two: dict[str, Any] = {"elasticity": {"minChips": 2, "maxChips": 2}, "job": {"chipsPerReplica": 2}}
    fleet.create("by-name", placement={"pools": {"allow": [POOL]}}, **two)
    eventually(lambda: fleet.running("by-name", "by-name-r1"), "the scheduler to give it devices")
    (pod,) = fleet.pods("by-name")
    assert pod["spec"]["nodeName"] == NODE
    given = [body for body in fleet.client.list_all(RESOURCE_CLAIMS, fleet.namespace) if _devices(body)]
    assert sorted(map(_devices, given)) == [1, 2], "the scheduler made a claim for the job's pod"

    # As an operator of all namespaces would see it, which would act on the jobs of other tests.
    usage = ChipUsage(fleet.client, interval=0.0)
    nodes = [node_facts(fleet.client.get(NODES, NODE))]
    usage.refresh({GPU})
    own = [facts for body in fleet.pods("by-name") if (facts := pod_facts(body)) is not None]
    pool = take_inventory([], nodes, own, usage, load_catalog()).inventory.pools[POOL]
    assert (pool.total, pool.free) == (4, 1), "neither the claim nor the job counts twice"


def test_a_template_with_claims_is_refused_with_the_field(fleet: Fleet) -> None:
    container = {"name": "trainer", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "others"}]}
    with pytest.raises(Invalid, match=r"template\.spec\.resourceClaims.* must not be set, since the job's chips"):
        fleet.create("twice", template={"spec": spec})


def _devices(body: Body) -> int:
    allocation = (body.get("status") or {}).get("allocation") or {}
    return len((allocation.get("devices") or {}).get("results") or ())
