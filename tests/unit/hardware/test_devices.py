"""Chips as devices of Dynamic Resource Allocation: bodies as Kubernetes 1.36 and NVIDIA's driver write them."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.hardware.devices import Devices, devices, resources_of, with_devices
from rightpool.hardware.node import NodeFacts

GPU = "nvidia.com/gpu"
CLASS: dict[str, Any] = {
    "metadata": {"name": "gpu.nvidia.com"},
    "spec": {
        "extendedResourceName": GPU,
        "selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}],
    },
}


def gpu(name: str, kind: str = "gpu", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "attributes": {"type": {"string": kind}},
        "capacity": {"memory": {"value": "81559Mi"}},
        **more,
    }


def slice_of(node: str, *found: dict[str, Any], generation: int = 1, driver: str = "gpu.nvidia.com") -> dict[str, Any]:
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    return {"spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": list(found)}}


def claim(*names: str, node: str = "n", annotations: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    results = [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": name, **more} for name in names]
    return {
        "metadata": {"name": "c", "annotations": annotations or {}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (CLASS["spec"], {GPU}),
        ({"selectors": []}, set()),  # pods can't ask for its devices by a resource name
        ({"extendedResourceName": "example.com/nic"}, set()),
        ({}, set()),
    ],
)
def test_only_classes_that_pods_can_ask_by_a_chips_resource(spec: dict[str, Any], found: set[str]) -> None:
    assert resources_of([{"metadata": {"name": "x"}, "spec": spec}]) == found


def test_devices_of_a_node_are_chips_and_parts_and_other_drivers_are_not() -> None:
    slices = [
        slice_of("n", gpu("gpu-0"), gpu("gpu-1"), gpu("mig-0", "mig"), {"name": "bare"}),
        slice_of("m", gpu("gpu-0")),
        slice_of("n", gpu("nic-0"), driver="dra.net"),
    ]
    assert devices({GPU}, slices, []) == Devices({("n", GPU): 2, ("m", GPU): 1}, {})
    assert devices((), slices, []) == Devices()


def test_the_newest_generation_of_a_pool_counts_and_tainted_devices_do_not() -> None:
    broken = gpu("gpu-1", taints=[{"key": "gpu.nvidia.com/xid", "effect": "NoExecute"}])
    slices = [slice_of("n", gpu("gpu-0"), gpu("gpu-1")), slice_of("n", gpu("gpu-0"), broken, generation=2)]
    assert devices({GPU}, slices, []).offered == {("n", GPU): 1}


def test_devices_of_no_single_node_are_left_out() -> None:
    shared = slice_of("n", gpu("gpu-0"))
    del shared["spec"]["nodeName"]
    shared["spec"]["allNodes"] = True
    assert devices({GPU}, [shared], [claim("gpu-0")]) == Devices()


def test_claims_take_devices_once() -> None:
    """The scheduler's own claim of a pod that asks by resource name is left out: that pod's request counts."""
    slices = [slice_of("n", *(gpu(f"gpu-{i}") for i in range(4)))]
    claims = [
        claim("gpu-0", "gpu-1"),
        claim("gpu-1"),  # shared
        claim("gpu-3", annotations={"resource.kubernetes.io/extended-resource-claim": "true"}),
        claim("gpu-2", adminAccess=True),
        claim("gpu-0", node="gone"),
        {"metadata": {"name": "waits"}, "status": {}},
        {"metadata": {"name": "waits"}},
    ]
    assert devices({GPU}, slices, claims).claimed == {("n", GPU): 2}


def test_nodes_get_their_devices_and_keep_what_a_device_plugin_offers() -> None:
    plain, empty = NodeFacts("plain", chips={GPU: 8}), NodeFacts("n", chips={GPU: 0, "x/y": 1})
    nodes = [plain, empty, NodeFacts("both", chips={GPU: 8})]
    found = with_devices(nodes, {("n", GPU): 4, ("both", GPU): 2, ("gone", GPU): 1})
    assert found[0] is plain
    assert [dict(node.chips) for node in found[1:]] == [{GPU: 4, "x/y": 1}, {GPU: 8}]
    assert with_devices(nodes, {}) is nodes


def test_a_device_that_several_slices_list_is_one() -> None:
    """Any driver may write a slice, and nothing compares them; a taint counts wherever it stands."""
    tainted = gpu("gpu-1", taints=[{"key": "k", "effect": "NoSchedule"}])
    slices = [slice_of("n", gpu("gpu-0"), gpu("gpu-1")), slice_of("n", gpu("gpu-0"), tainted)] * 3
    assert devices({GPU}, slices, []).offered == {("n", GPU): 1}


@pytest.mark.parametrize(
    "garbage",
    [
        {},
        {"spec": None},
        {"spec": []},
        {"spec": {"driver": "gpu.nvidia.com", "nodeName": "n", "pool": "n", "devices": [gpu("gpu-9")]}},
        slice_of("n", gpu("gpu-9"), generation="newest"),  # type: ignore[arg-type]
        slice_of("n", gpu("gpu-9"), None),  # type: ignore[arg-type]
        slice_of("n", {"name": "gpu-9", "attributes": [1]}),
        slice_of("n", {"attributes": {"type": {"string": "gpu"}}}),
        slice_of("n", gpu("gpu-9", taints=[None])),
        slice_of("m", gpu("gpu-9"), generation=-(2**70)),
        slice_of("n", *(gpu(f"gpu-{number}") for number in range(10_000)), driver="dra.net", generation=10**30),
    ],
)
def test_garbage_is_left_out_and_what_is_beside_it_counts(garbage: dict[str, Any]) -> None:
    honest = [slice_of("n", gpu("gpu-0"), gpu("gpu-1"))]
    claims: list[Any] = [{"status": {"allocation": {"devices": {"results": [None]}}}}, {"status": 3}, claim("gpu-0")]
    found = devices({GPU}, [*honest, garbage], claims)
    assert (found.offered["n", GPU], found.claimed["n", GPU]) == (2, 1)
