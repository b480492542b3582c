"""Nodes that say of themselves what can't be: they make no pool, or count for what they can have, and nobody else's
chips change by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.pool import AcceleratorPoolSpec
from rightpool.cluster.client import Listing
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.discovery import Unmapped, discover
from rightpool.hardware.inventory import ProblemKind, build_pools
from rightpool.hardware.labels import (
    GFD_COUNT,
    GFD_MEMORY,
    GFD_PRODUCT,
    GFD_REPLICAS,
    GKE_GPU,
    GKE_GPU_COUNT,
    GKE_NODEPOOL,
    GKE_TPU,
    GKE_TPU_TOPOLOGY,
    INSTANCE_TYPE,
    KARPENTER_GPU,
    KARPENTER_GPU_COUNT,
)
from rightpool.hardware.node import NodeFacts, Taint
from rightpool.runtime.facts import node_facts
from rightpool.runtime.fleet import Fleet, survey_fleet
from rightpool.runtime.pools import pool_status
from rightpool.runtime.usage import ChipUsage
from tests.unit.hardware.machines import gfd

CATALOG = load_catalog()
GPU, TPU = "nvidia.com/gpu", "google.com/tpu"
HONEST = gfd("honest")


def liar(labels: dict[str, str], **chips: int) -> NodeFacts:
    return NodeFacts("liar", labels, chips={{"gpu": GPU, "tpu": TPU}[kind]: number for kind, number in chips.items()})


def slices(topology: str) -> NodeFacts:
    return liar({GKE_TPU: "tpu-v5-lite-podslice", GKE_TPU_TOPOLOGY: topology}, tpu=4)


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (liar({GFD_PRODUCT: "NVIDIA-A10G"}, gpu=10**6), Unmapped.UNKNOWN_COUNT),
        (liar({GFD_PRODUCT: "NVIDIA-A10G", GFD_COUNT: "9" * 60}, gpu=8), Unmapped.UNKNOWN_COUNT),
        (slices("9999x9999x9999"), Unmapped.UNKNOWN_TOPOLOGY),
        (slices("2x2x2x2"), Unmapped.UNKNOWN_TOPOLOGY),
        (slices("8"), Unmapped.UNKNOWN_TOPOLOGY),
        (slices("x".join("1" * 12)), Unmapped.UNKNOWN_TOPOLOGY),
        (liar({GFD_PRODUCT: "NVIDIA-A9999"}, gpu=8), Unmapped.UNKNOWN_CHIP),
    ],
)
def test_a_node_that_can_not_be_is_left_out_with_a_reason(node: NodeFacts, reason: Unmapped) -> None:
    alone, beside = discover([HONEST], CATALOG), discover([HONEST, node], CATALOG)
    assert beside.pools == alone.pools
    (left_out,) = beside.unmapped
    assert (left_out.reason, left_out.nodes) == (reason, ("liar",))


def test_a_declared_pool_counts_a_node_for_what_it_says_and_not_for_what_the_node_says() -> None:
    spec = AcceleratorPoolSpec(
        accelerator="A10G-24GB", chips_per_node=4, resource_name=GPU, node_selector={"pool": "a10g"}, max_chips=100
    )
    nodes = [liar({"pool": "a10g"}, gpu=10**6), NodeFacts("two", {"pool": "a10g"}, chips={GPU: 4})]
    inventory = build_pools({"a10g": spec}, nodes, {"liar": 3}, CATALOG)
    pool = inventory.pools["a10g"]
    assert (pool.total, pool.free, pool.growable, pool.nodes) == (8, 5, 92, 2)
    said = next(problem for problem in inventory.problems if problem.kind is ProblemKind.TOO_MANY_CHIPS)
    assert said.pool == "a10g" and "1 nodes (liar …) offer more than 4 chips" in said.message


@pytest.mark.parametrize(
    ("amount", "chips"),
    [("8", 8), ("1k", 1000), ("1M", 10**6), ("-8", None), ("500m", None), ("0.5", None), ("", None), ("8x", None)],
)
def test_quantities_as_the_api_server_writes_them(amount: str, chips: int | None) -> None:
    facts = node_facts({"metadata": {"name": "n"}, "status": {"allocatable": {GPU: amount}}})
    assert facts.chips.get(GPU) == chips


class Nobody:
    def pages(self, *_: Any, **__: Any) -> Iterable[Listing]:
        return ()


def surveyed(nodes: list[NodeFacts], *objects: dict[str, Any]) -> Fleet:
    return survey_fleet(objects, nodes, (), ChipUsage(Nobody(), interval=0.0), CATALOG)


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
def test_whatever_nodes_say_the_honest_ones_count(nodes: list[NodeFacts]) -> None:
    fleet = surveyed([HONEST, *nodes])
    assert sum(8 for owner in (fleet.inventory.nodes[HONEST.name],) if owner in fleet.inventory.pools) == 8
    for name, pool in fleet.inventory.pools.items():
        members = sum(owner == name for owner in fleet.inventory.nodes.values())
        assert 0 <= pool.free <= pool.total <= max(256 * members, pool.slice.chips * members if pool.slice else 0)


def test_conditions_that_somebody_else_has_written_leave_room_for_ours() -> None:
    since = "2026-11-21T10:00:00Z"
    said = {"status": "True", "reason": "Forged", "message": "", "lastTransitionTime": since}
    body = {
        "metadata": {"name": "a100", "uid": "a100", "generation": 1},
        "spec": {
            "accelerator": "A100-SXM4-80GB",
            "chipsPerNode": 8,
            "resourceName": GPU,
            "nodeSelector": {GFD_PRODUCT: "NVIDIA-A100-SXM4-80GB"},
        },
        "status": {"nodes": -5, "conditions": [{"type": f"Forged{number}", **said} for number in range(8)]},
    }
    status = pool_status("a100", surveyed([HONEST], body), 1.8e9)
    assert {condition["type"] for condition in status["conditions"]} == {"Ready", "PriceKnown"}
    assert status["nodes"] == 1
