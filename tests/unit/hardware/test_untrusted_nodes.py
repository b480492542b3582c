"""Untrusted nodes: one with impossible labels or chips makes no pool, or counts for what its pool allows, and the chips
of other nodes do not change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.pool import AcceleratorPoolSpec
from rightpool.cluster.client import Listing
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.clouds import GKE_NODEPOOL, INSTANCE_TYPE
from rightpool.hardware.discovery import Unmapped, discover
from rightpool.hardware.inventory import ProblemKind, build_pools
from rightpool.hardware.node import NodeFacts, Taint
from rightpool.hardware.vendors.google import GKE_TPU, GKE_TPU_TOPOLOGY
from rightpool.hardware.vendors.nvidia import (
    GFD_COUNT,
    GFD_MEMORY,
    GFD_PRODUCT,
    GFD_REPLICAS,
    GKE_GPU,
    GKE_GPU_COUNT,
    KARPENTER_GPU,
    KARPENTER_GPU_COUNT,
)
from rightpool.runtime.act.pool_publisher import pool_status
from rightpool.runtime.observe.facts import node_facts
from rightpool.runtime.observe.pool_inventory import PoolInventory, take_inventory
from rightpool.runtime.observe.usage import ChipUsage
from tests.unit.hardware.machines import gfd

CATALOG = load_catalog()
GPU, TPU = "nvidia.com/gpu", "google.com/tpu"
PLAIN = gfd("plain")


def untrusted(labels: dict[str, str], **chips: int) -> NodeFacts:
    return NodeFacts(
        "untrusted", labels, chips={{"gpu": GPU, "tpu": TPU}[kind]: number for kind, number in chips.items()}
    )


def slices(topology: str) -> NodeFacts:
    return untrusted({GKE_TPU: "tpu-v5-lite-podslice", GKE_TPU_TOPOLOGY: topology}, tpu=4)


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (untrusted({GFD_PRODUCT: "NVIDIA-A10G"}, gpu=10**6), Unmapped.UNKNOWN_COUNT),
        (untrusted({GFD_PRODUCT: "NVIDIA-A10G", GFD_COUNT: "9" * 60}, gpu=8), Unmapped.UNKNOWN_COUNT),
        (slices("9999x9999x9999"), Unmapped.UNKNOWN_TOPOLOGY),
        (slices("2x2x2x2"), Unmapped.UNKNOWN_TOPOLOGY),
        (slices("8"), Unmapped.UNKNOWN_TOPOLOGY),
        (slices("x".join("1" * 12)), Unmapped.UNKNOWN_TOPOLOGY),
        (untrusted({GFD_PRODUCT: "NVIDIA-A9999"}, gpu=8), Unmapped.UNKNOWN_CHIP),
    ],
)
def test_an_impossible_node_is_left_out_with_a_reason(node: NodeFacts, reason: Unmapped) -> None:
    alone, beside = discover([PLAIN], CATALOG), discover([PLAIN, node], CATALOG)
    assert beside.pools == alone.pools
    (left_out,) = beside.unmapped
    assert (left_out.reason, left_out.nodes) == (reason, ("untrusted",))


def test_no_node_counts_for_more_chips_than_the_declared_pool_allows() -> None:
    spec = AcceleratorPoolSpec(
        accelerator="A10G-24GB", chips_per_node=4, resource_name=GPU, node_selector={"pool": "a10g"}, max_chips=100
    )
    nodes = [untrusted({"pool": "a10g"}, gpu=10**6), NodeFacts("two", {"pool": "a10g"}, chips={GPU: 4})]
    inventory = build_pools({"a10g": spec}, nodes, {("untrusted", "nvidia.com/gpu"): 3}, CATALOG)
    pool = inventory.pools["a10g"]
    assert (pool.total, pool.free, pool.growable, pool.nodes) == (8, 5, 92, 2)
    problem = next(p for p in inventory.problems if p.kind is ProblemKind.TOO_MANY_CHIPS)
    assert (
        problem.pool == "a10g"
        and "nodes that offer more than 4 chips count for as many (1 of 2, such as untrusted)" in problem.message
    )


@pytest.mark.parametrize(
    ("amount", "chips"),
    [("8", 8), ("1k", 1000), ("1M", 10**6), ("-8", None), ("500m", None), ("0.5", None), ("", None), ("8x", None)],
)
def test_quantities_as_the_api_server_writes_them(amount: str, chips: int | None) -> None:
    facts = node_facts({"metadata": {"name": "n"}, "status": {"allocatable": {GPU: amount}}})
    assert facts.chips.get(GPU) == chips


class NoPods:
    def pages(self, *_: Any, **__: Any) -> Iterable[Listing]:
        return ()


def inventory_of(nodes: list[NodeFacts], *objects: dict[str, Any]) -> PoolInventory:
    return take_inventory(objects, nodes, (), ChipUsage(NoPods(), interval=0.0), CATALOG)


numbers = st.sampled_from(["0", "1", "8", "257", "-8", "8.5", "9" * 60, "eight", ""])
labels = st.fixed_dictionaries(
    {},
    optional={
        GFD_PRODUCT: st.sampled_from(["NVIDIA-A10G", "NVIDIA-A100-SXM4-80GB", "NVIDIA-A10G-SHARED", "x", ""]),
        GFD_COUNT: numbers,
        GFD_MEMORY: numbers,
        GFD_REPLICAS: numbers,
        GKE_GPU: st.sampled_from(["nvidia-l4", "nvidia-tesla-t4", "", "nvidia-l400"]),
        GKE_GPU_COUNT: numbers,
        GKE_NODEPOOL: st.text("aA._-9", max_size=63),
        GKE_TPU: st.sampled_from(["tpu-v5-lite-podslice", "tpu-v9", ""]),
        GKE_TPU_TOPOLOGY: st.text("0129x", max_size=63),
        INSTANCE_TYPE: st.sampled_from(["g5.xlarge", "", "x" * 63]),
        KARPENTER_GPU: st.sampled_from(["a10g", "h100", ""]),
        KARPENTER_GPU_COUNT: numbers,
    },
)
taints = st.lists(st.builds(Taint, st.text("ab/.", max_size=8), st.sampled_from(["NoSchedule", "Never"])), max_size=20)
chips = st.dictionaries(st.sampled_from([GPU, TPU]), st.sampled_from([0, 1, 4, 8, 256, 257, 10**6, 10**30]))


@given(st.lists(st.builds(NodeFacts, st.sampled_from("abcd"), labels, taints.map(tuple), chips), max_size=4))
def test_untrusted_nodes_do_not_affect_other_nodes(nodes: list[NodeFacts]) -> None:
    fleet = inventory_of([PLAIN, *nodes])
    assert sum(8 for owner in (fleet.inventory.owners[PLAIN.name, GPU],) if owner in fleet.inventory.pools) == 8
    for name, pool in fleet.inventory.pools.items():
        members = sum(owner == name for owner in fleet.inventory.owners.values())
        assert 0 <= pool.free <= pool.total <= max(256 * members, pool.slice.chips * members if pool.slice else 0)


def test_conditions_that_others_have_written_leave_room_for_ours() -> None:
    since = "2026-11-21T10:00:00Z"
    condition = {"status": "True", "reason": "Forged", "message": "", "lastTransitionTime": since}
    body = {
        "metadata": {"name": "a100", "uid": "a100", "generation": 1},
        "spec": {
            "accelerator": "A100-SXM4-80GB",
            "chipsPerNode": 8,
            "resourceName": GPU,
            "nodeSelector": {GFD_PRODUCT: "NVIDIA-A100-SXM4-80GB"},
        },
        "status": {"nodes": -5, "conditions": [{"type": f"Forged{number}", **condition} for number in range(8)]},
    }
    status = pool_status("a100", inventory_of([PLAIN], body), 1.8e9)
    ours = {"Ready", "PriceKnown", "FiguresVerified", "Calibrated", "Trusted", "Allowed"}
    assert {condition["type"] for condition in status["conditions"]} == ours
    assert status["nodes"] == 1
