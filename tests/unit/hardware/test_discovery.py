"""Discovery from labels: each cloud by example, and that order and neighbours change nothing."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.discovery import DiscoveredPool, Unmapped, discover
from rightpool.hardware.inventory import build_pools
from rightpool.hardware.node import NodeFacts, Taint
from rightpool.hardware.vendors.nvidia import GKE_GPU_CLIENTS as CLIENTS
from rightpool.hardware.vendors.nvidia import GKE_GPU_PARTITION as PARTITION
from tests.unit.hardware.machines import GPU_TAINT, aks, eks, gfd, gke, gke_tpu, karpenter

CATALOG = load_catalog()


def only(*nodes: NodeFacts) -> DiscoveredPool:
    found = discover(nodes, CATALOG)
    assert not found.unmapped
    assert len(found.pools) == 1
    return found.pools[0]


def test_gpu_feature_discovery() -> None:
    pool = only(gfd("n1"), gfd("n2"))
    assert pool.name == "a100"
    assert pool.accelerator == "A100-SXM4-80GB"
    assert pool.chips_per_node == 8
    assert pool.resource_name == "nvidia.com/gpu"
    assert pool.node_selector == {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "8"}
    assert pool.tolerations == ()
    assert pool.slice is None
    assert pool.nodes == ("n1", "n2")


def test_gke() -> None:
    pool = only(gke("n1", "training-l4"))
    assert (pool.name, pool.accelerator, pool.chips_per_node) == ("training-l4", "L4-24GB", 2)
    assert pool.node_selector["cloud.google.com/gke-nodepool"] == "training-l4"
    assert pool.tolerations == ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},)


def test_gke_tpu_is_one_pool_of_slices_whatever_the_node_pools() -> None:
    pool = only(*(gke_tpu(f"{pool}-{host}", pool, "4x4", 4) for pool in ("s1", "s2") for host in range(4)))
    assert pool.name == "tpu-v5e"
    assert pool.accelerator == "TPU-v5e"
    assert pool.slice is not None
    assert (pool.slice.topology, pool.slice.chips) == ("4x4", 16)
    assert pool.chips_per_node == 4
    assert pool.resource_name == "google.com/tpu"
    assert pool.node_selector == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
    }
    assert len(pool.nodes) == 8


def test_tpu_topologies_are_different_pools() -> None:
    found = discover([gke_tpu("a", "p1", "2x4"), gke_tpu("b", "p2", "2x2", 4)], CATALOG)
    assert [(pool.name, pool.slice and pool.slice.topology) for pool in found.pools] == [
        ("tpu-v5e-2x2", "2x2"),
        ("tpu-v5e-2x4", "2x4"),
    ]


def test_eks_node_group_by_instance_type() -> None:
    pool = only(eks("n1", "big-gpu"))
    assert (pool.name, pool.accelerator, pool.chips_per_node) == ("big-gpu", "A100-SXM4-40GB", 8)


def test_karpenter_pool_of_several_machines_is_a_pool_for_each_size() -> None:
    found = discover(
        [
            karpenter("n1", "gpu"),
            karpenter("n2", "gpu", count=1, instance="g5.xlarge"),
            karpenter("n3", "gpu", "t4", 1, "g4dn.xlarge", 16384),
        ],
        CATALOG,
    )
    by_name = {pool.name: pool for pool in found.pools}
    assert set(by_name) == {"gpu-t4", "gpu-a10g-24gb-4x", "gpu-a10g-24gb-1x"}
    assert by_name["gpu-t4"].node_selector == {
        "karpenter.sh/nodepool": "gpu",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.k8s.aws/instance-gpu-name": "t4",
        "karpenter.k8s.aws/instance-gpu-count": "1",
    }


def test_memory_distinguishes_chips_of_one_name() -> None:
    assert only(karpenter("n", "p", "a100", 8, "p4d.24xlarge", 40960)).accelerator == "A100-SXM4-40GB"
    assert only(karpenter("n", "p", "a100", 8, "p4de.24xlarge", 81920)).accelerator == "A100-SXM4-80GB"


def test_chips_of_one_name_are_pools_that_select_nodes_by_memory() -> None:
    small, large = (karpenter(name, "p", "a100", 8, memory=memory) for name, memory in (("s", 40960), ("l", 81920)))
    pools = {pool.accelerator: pool for pool in discover([small, large], CATALOG).pools}
    assert set(pools) == {"A100-SXM4-40GB", "A100-SXM4-80GB"}
    memory = "karpenter.k8s.aws/instance-gpu-memory"
    assert [pool.node_selector[memory] for _, pool in sorted(pools.items())] == ["40960", "81920"]
    inventory = build_pools({pool.name: pool.spec() for pool in pools.values()}, [small, large], {}, CATALOG)
    owners = {name: pool for (name, _), pool in inventory.owners.items()}
    assert owners == {node: pool.name for pool in pools.values() for node in pool.nodes}


def test_spot_nodes_are_a_separate_pool() -> None:
    found = discover([karpenter("a", "gpu"), karpenter("b", "gpu", capacity="spot")], CATALOG)
    assert [(pool.name, pool.nodes) for pool in found.pools] == [("gpu", ("a",)), ("gpu-spot", ("b",))]


def test_spot_nodes_of_azure_are_known_by_label_and_taint() -> None:
    found = discover([aks("a"), aks("b", spot=True)], CATALOG)
    assert not found.unmapped
    on_demand, spot = found.pools
    assert (on_demand.name, on_demand.nodes, on_demand.tolerations) == ("a100", ("a",), ())
    assert (spot.name, spot.nodes) == ("a100-spot", ("b",))
    key = "kubernetes.azure.com/scalesetpriority"
    assert spot.node_selector[key] == "spot"
    assert spot.tolerations == ({"key": key, "operator": "Exists", "effect": "NoSchedule"},)


def test_nodes_without_chips_are_passed_over() -> None:
    plain = NodeFacts("web", {"node.kubernetes.io/instance-type": "m5.large", "karpenter.sh/nodepool": "web"})
    assert discover([plain], CATALOG) == discover([], CATALOG)


@pytest.mark.parametrize(
    ("node", "reason", "evidence"),
    [
        (gfd("n", "NVIDIA-R100"), Unmapped.UNKNOWN_CHIP, "nvidia.com/gpu.product=NVIDIA-R100"),
        (NodeFacts("n", chips={"nvidia.com/gpu": 1}), Unmapped.UNKNOWN_CHIP, "no label that names the chip"),
        (
            karpenter("n", "p", "a100", 8, "p4x.24xlarge", 99999),
            Unmapped.UNKNOWN_CHIP,
            "karpenter.k8s.aws/instance-gpu-name=a100",
        ),
        (
            gfd("n", "NVIDIA-GB200-MIG-1g.23gb"),
            Unmapped.DIVIDED_CHIP,
            "nvidia.com/gpu.product=NVIDIA-GB200-MIG-1g.23gb",
        ),
        (
            dataclasses.replace(gke("n", "p"), labels=gke("n", "p").labels | {CLIENTS: "8"}),
            Unmapped.DIVIDED_CHIP,
            f"{CLIENTS}=8",
        ),
        (
            dataclasses.replace(gke("n", "p"), labels=gke("n", "p").labels | {PARTITION: "1g.3gb"}),
            Unmapped.DIVIDED_CHIP,
            f"{PARTITION}=1g.3gb",
        ),
        (
            dataclasses.replace(eks("n", "g"), chips={"nvidia.com/gpu": 80}),
            Unmapped.DIVIDED_CHIP,
            "node.kubernetes.io/instance-type=p4d.24xlarge",
        ),
        (gfd("n", "NVIDIA-L4-SHARED", 1), Unmapped.DIVIDED_CHIP, "nvidia.com/gpu.product=NVIDIA-L4-SHARED"),
        (
            gfd("n", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 7, **{"nvidia.com/gpu.replicas": "4"}),
            Unmapped.DIVIDED_CHIP,
            "nvidia.com/gpu.replicas=4",
        ),
        (
            gfd("n", "NVIDIA-L4", 1, **{"nvidia.com/gpu.replicas": "4"}),
            Unmapped.DIVIDED_CHIP,
            "nvidia.com/gpu.replicas=4",
        ),
        (
            dataclasses.replace(eks("n", "g"), chips={}),
            Unmapped.UNKNOWN_COUNT,
            "node.kubernetes.io/instance-type=p4d.24xlarge",
        ),
        (gke_tpu("n", "p", "2x3", 4), Unmapped.UNKNOWN_TOPOLOGY, "cloud.google.com/gke-tpu-topology=2x3"),
        (gke_tpu("n", "p", "wide", 4), Unmapped.UNKNOWN_TOPOLOGY, "cloud.google.com/gke-tpu-topology=wide"),
        (
            dataclasses.replace(gfd("n"), taints=(Taint("dedicated", "NoSchedule", "vision"),)),
            Unmapped.TAINTED,
            "dedicated=vision:NoSchedule",
        ),
    ],
)
def test_unmapped_nodes_have_a_reason(node: NodeFacts, reason: Unmapped, evidence: str) -> None:
    found = discover([node], CATALOG)
    assert not found.pools
    (entry,) = found.unmapped
    assert (entry.reason, entry.evidence, entry.nodes) == (reason, evidence, ("n",))
    assert evidence in entry.message


def test_slices_of_a_known_chip_are_a_pool_of_their_own() -> None:
    """MIG's single strategy: every chip of a node is divided alike, and the product says how."""
    sliced, whole = gfd("n1", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 56), gfd("n2", "NVIDIA-A100-SXM4-80GB")
    found = discover([sliced, whole], CATALOG)
    assert found.unmapped == ()
    assert {pool.name: (pool.accelerator, pool.chips_per_node, pool.nodes) for pool in found.pools} == {
        "a100": ("A100-SXM4-80GB", 8, ("n2",)),
        "a100-mig-1g-10gb": ("A100-SXM4-80GB-MIG-1g.10gb", 56, ("n1",)),
    }
    pools = build_pools({pool.name: pool.spec() for pool in found.pools}, [sliced, whole], {}, CATALOG).pools
    slices, chips = pools["a100-mig-1g-10gb"], pools["a100"]
    assert slices.price.on_demand is not None and chips.price.on_demand is not None
    assert slices.price.on_demand == pytest.approx(chips.price.on_demand / 7)
    part, of = slices.accelerator, chips.accelerator
    assert part.peak_flops["bf16"] == pytest.approx(of.peak_flops["bf16"] * 14 / 108)
    assert (part.memory_bytes, part.memory_bandwidth) == (10e9, of.memory_bandwidth / 8)


def test_slices_on_gke_are_told_by_their_size() -> None:
    """There the product and the count are those of the chips that were divided."""
    whole = gke("n1", "whole", "nvidia-h100-80gb", 8, "a3-highgpu-8g")
    made = gke("n2", "parts", "nvidia-h100-80gb", 8, "a3-highgpu-8g")
    sliced = dataclasses.replace(made, labels=made.labels | {PARTITION: "1g.10gb"}, chips={"nvidia.com/gpu": 56})
    found = discover([whole, sliced], CATALOG)
    assert {pool.name: (pool.accelerator, pool.chips_per_node) for pool in found.pools} == {
        "whole": ("H100-SXM5-80GB", 8),
        "parts": ("H100-SXM5-80GB-MIG-1g.10gb", 56),
    }
    (parts,) = (pool for pool in found.pools if pool.name == "parts")
    assert parts.node_selector[PARTITION] == "1g.10gb"


def test_a_broken_chip_does_not_make_another_pool() -> None:
    broken = dataclasses.replace(gfd("n2"), chips={"nvidia.com/gpu": 7})
    assert only(gfd("n1"), broken).chips_per_node == 8


def test_a_state_of_the_node_does_not_make_another_pool() -> None:
    cordoned = dataclasses.replace(
        gfd("n2"), unschedulable=True, ready=False, taints=(Taint("node.kubernetes.io/unschedulable", "NoSchedule"),)
    )
    pool = only(gfd("n1"), cordoned)
    assert pool.nodes == ("n1", "n2")
    assert pool.tolerations == ()


def test_names_are_stable_and_distinct_from_declared_ones() -> None:
    first = discover([gfd("n1")], CATALOG)
    known = {pool.name: pool.node_selector for pool in first.pools}
    assert set(known) == {"a100"}
    both = [gfd("n1"), gfd("n2", count=4)]
    again = discover(both, CATALOG, known)
    assert {pool.name: pool.chips_per_node for pool in again.pools} == {"a100": 8, "a100-sxm4-80gb": 4}
    fresh = discover(both, CATALOG)
    assert {pool.name for pool in fresh.pools} == {"a100-sxm4-80gb-8x", "a100-sxm4-80gb-4x"}
    assert [pool.name for pool in discover([gfd("n1")], CATALOG, reserved=["a100"]).pools] == ["a100-sxm4-80gb"]


def test_names_never_run_out() -> None:
    taken = ["a100", "a100-sxm4-80gb", "a100-sxm4-80gb-8x"]
    assert [pool.name for pool in discover([gfd("n1")], CATALOG, reserved=taken).pools] == ["a100-sxm4-80gb-8x-2"]
    long = "x" * 80
    (pool,) = discover([karpenter("n", long, capacity="spot")], CATALOG, reserved=["x" * 63]).pools
    assert len(pool.name) <= 63


def test_the_spec_describes_the_pool() -> None:
    tpu = only(gke_tpu("n", "p")).spec()
    assert tpu.slice is not None and (tpu.slice.topology, tpu.slice.chips) == ("2x4", 8)
    assert tpu.tolerations == [{"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}]
    spec = only(karpenter("n", "gpu")).spec()
    assert spec.accelerator == "A10G-24GB"
    assert spec.price is None
    assert spec.to_dict()["nodeSelector"]["karpenter.sh/nodepool"] == "gpu"


# --- for all clusters ------------------------------------------------------------------------------------------------

machines = st.one_of(
    st.builds(
        gfd,
        st.uuids().map(str),
        st.sampled_from(["NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-40GB", "NVIDIA-A10G", "Tesla-T4", "NVIDIA-X9"]),
        st.sampled_from([1, 4, 8]),
    ),
    st.builds(gke, st.uuids().map(str), st.sampled_from(["a", "b", "Ü_1"])),
    st.builds(gke_tpu, st.uuids().map(str), st.sampled_from(["a", "b"]), st.sampled_from(["2x4", "4x4", "2x2x2"])),
    st.builds(
        karpenter,
        st.uuids().map(str),
        st.sampled_from(["gpu", "a100"]),
        st.sampled_from(["a10g", "t4", "zz"]),
        st.sampled_from([1, 4]),
        st.sampled_from(["g5.12xlarge", "g5.xlarge", "g9.xlarge"]),
        capacity=st.sampled_from(["on-demand", "spot"]),
    ),
    st.builds(
        eks, st.uuids().map(str), st.sampled_from(["gpu", "a100"]), st.sampled_from(["p4d.24xlarge", "p3.2xlarge"])
    ),
)
clusters = st.lists(machines, max_size=12)


@given(clusters, st.randoms(use_true_random=False))
def test_order_changes_nothing(nodes: list[NodeFacts], random: object) -> None:
    shuffled = list(nodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert discover(shuffled, CATALOG) == discover(nodes, CATALOG)


@given(clusters, clusters)
def test_what_an_earlier_discovery_saw_changes_nothing(earlier: list[NodeFacts], others: list[NodeFacts]) -> None:
    before = discover(earlier, CATALOG)
    # A name that another node had before, and nodes that are gone, there still, and new.
    renamed = [dataclasses.replace(node, name=one.name) for node, one in zip(others, earlier, strict=False)]
    nodes = [*renamed[:3], *earlier[3:6], *others[6:]]
    assert discover(nodes, CATALOG, before=before) == discover(nodes, CATALOG)


@given(clusters)
def test_every_node_with_chips_is_in_one_place_and_carries_its_selector(nodes: list[NodeFacts]) -> None:
    found = discover(nodes, CATALOG)
    placed = [name for pool in found.pools for name in pool.nodes] + [
        n for entry in found.unmapped for n in entry.nodes
    ]
    assert sorted(placed) == sorted(node.name for node in nodes)
    by_name = {node.name: node for node in nodes}
    for pool in found.pools:
        for name in pool.nodes:
            labels = by_name[name].labels
            assert all(labels[key] == value for key, value in pool.node_selector.items())


@given(clusters)
def test_names_are_unique_safe_and_stable(nodes: list[NodeFacts]) -> None:
    found = discover(nodes, CATALOG)
    names = [pool.name for pool in found.pools]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in names)
    known = {pool.name: pool.node_selector for pool in found.pools}
    assert discover(nodes, CATALOG, known) == found
    some = nodes[: len(nodes) // 2]
    assert all(known[pool.name] == pool.node_selector for pool in discover(some, CATALOG, known).pools)


def test_tolerations_are_only_for_the_taints_of_chips() -> None:
    node = dataclasses.replace(gfd("n"), taints=(GPU_TAINT, Taint("node.kubernetes.io/not-ready", "NoExecute")))
    assert only(node).tolerations == ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},)
