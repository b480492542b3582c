"""The inventory: the pool of each node, total, free and growable chips, and problems with their fields."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.pool import AcceleratorPoolSpec, LinkKind
from rightpool.hardware.accelerator import Link
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.discovery import discover
from rightpool.hardware.inventory import Inventory, ProblemKind, build_pools
from rightpool.hardware.node import NodeFacts, Taint
from rightpool.hardware.node_shapes import with_node_shapes
from tests.unit.hardware.machines import GPU_TAINT, aks, eks, gfd, gke, gke_tpu, karpenter
from tests.yardstick import work_of

CATALOG = load_catalog()


def spec(**fields: Any) -> AcceleratorPoolSpec:
    base: dict[str, Any] = {
        "accelerator": "A100-SXM4-80GB",
        "chipsPerNode": 8,
        "resourceName": "nvidia.com/gpu",
        "nodeSelector": {"pool": "a100"},
        "price": {"perChipHour": "3.50", "spotPerChipHour": "1.25"},
    }
    return AcceleratorPoolSpec.model_validate({**base, **fields})


def node(name: str, pool: str = "a100", chips: int = 8, **fields: Any) -> NodeFacts:
    return NodeFacts(name, {"pool": pool}, chips={"nvidia.com/gpu": chips}, **fields)


def build(
    specs: dict[str, AcceleratorPoolSpec], nodes: list[NodeFacts], usage: dict[str, int] | None = None, **more: Any
) -> Inventory:
    """usage: by node name, of whatever resource."""
    resources = {declared.resource_name for declared in specs.values()}
    used = {(name, resource): chips for name, chips in (usage or {}).items() for resource in resources}
    return build_pools(specs, nodes, used, CATALOG, **more)


def owners(inventory: Inventory) -> dict[str, str]:
    return {name: pool for (name, _), pool in inventory.owners.items()}


def kinds(inventory: Inventory) -> list[tuple[str, ProblemKind]]:
    return [(problem.pool, problem.kind) for problem in inventory.problems]


def test_a_declared_pool() -> None:
    tolerations = [{"key": "team", "operator": "Exists"}]
    found = build({"a100": spec(tolerations=tolerations)}, [node("n1"), node("n2")], usage={"n1": 3, "elsewhere": 5})
    assert found.problems == ()
    assert owners(found) == {"n1": "a100", "n2": "a100"}
    pool = found.pools["a100"]
    assert (pool.total, pool.free, pool.growable, pool.nodes) == (16, 13, 0, 2)
    assert (pool.price.on_demand, pool.price.spot) == (3.5, 1.25)
    assert pool.intra_link == CATALOG.get("A100-SXM4-80GB").intra_link
    assert pool.tolerations == tuple(tolerations)
    assert pool.node_selector == {"pool": "a100"}
    assert not pool.discovered


def test_only_ready_and_schedulable_nodes_count() -> None:
    nodes = [
        node("n1"),
        node("n2", ready=False),
        node("n3", unschedulable=True),
        node("n4", taints=(Taint("maintenance", "NoExecute"),)),
        node("n5", chips=0),
    ]
    found = build({"a100": spec(maxChips=64)}, nodes)
    pool = found.pools["a100"]
    assert (pool.total, pool.free, pool.nodes) == (8, 8, 1)
    assert pool.growable == 32, "what is there but out of order is not added again"
    assert kinds(found) == [("a100", ProblemKind.TAINTED)]
    assert "spec.tolerations: nodes with maintenance=:NoExecute do not count (1 of 4)" in found.problems[0].message


def test_each_taint_that_keeps_nodes_from_counting_is_named() -> None:
    taints = [Taint("a", "NoSchedule", "1"), Taint("b", "NoSchedule", "2")]
    nodes = [node("n0"), *(node(f"n{number}", taints=(taint,)) for number, taint in enumerate(taints, 1))]
    (problem,) = build({"a100": spec()}, nodes).problems
    assert problem.message == (
        "spec.tolerations: nodes with a=1:NoSchedule or b=2:NoSchedule do not count (2 of 3); "
        "tolerate it if jobs may run there"
    )


def test_the_taint_of_the_resource_is_passed() -> None:
    found = build({"a100": spec()}, [node("n1", taints=(GPU_TAINT,))])
    assert found.problems == ()
    assert found.pools["a100"].total == 8
    assert found.pools["a100"].tolerations == ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},)


def test_usage_beyond_the_offer_frees_nothing() -> None:
    found = build({"a100": spec()}, [node("n1", chips=7), node("n2")], usage={"n1": 8, "n2": -3})
    assert found.pools["a100"].free == 8


@pytest.mark.parametrize(("maximum", "growable"), [(None, 0), (0, 0), (8, 0), (16, 0), (23, 0), (24, 8), (64, 48)])
def test_an_autoscaler_adds_whole_nodes_up_to_the_maximum(maximum: int | None, growable: int) -> None:
    fields = {} if maximum is None else {"maxChips": maximum}
    assert build({"p": spec(**fields)}, [node("n1"), node("n2")]).pools["p"].growable == growable


def test_a_pool_without_nodes_is_kept_with_a_problem() -> None:
    empty = build({"p": spec()}, [])
    assert empty.pools["p"].reach == 0
    assert kinds(empty) == [("p", ProblemKind.NO_NODES)]
    assert kinds(build({"p": spec(maxChips=8)}, [])) == [], "an autoscaler would bring them"


def test_an_unknown_accelerator_leaves_the_pool_out_with_a_remedy() -> None:
    found = build({"p": spec(accelerator="A10"), "q": spec(nodeSelector={"pool": "q"})}, [node("n1"), node("n2", "q")])
    assert set(found.pools) == {"q"}
    assert owners(found) == {"n2": "q"}
    (problem,) = found.problems
    assert problem.kind is ProblemKind.UNKNOWN_ACCELERATOR
    assert problem.message.startswith("spec.accelerator: unknown accelerator 'A10'; did you mean ")
    assert "A10G-24GB" in problem.message


def test_a_slice_is_whole_nodes() -> None:
    slice_ = {"topology": "2x3", "chips": 6}
    found = build({"p": spec(accelerator="TPU-v5e", chipsPerNode=4, resourceName="google.com/tpu", slice=slice_)}, [])
    assert found.pools == {}
    assert found.problems[0].message.startswith("spec.slice.chips: 6 is no whole number of nodes of 4 chips")


# --- whose node ------------------------------------------------------------------------------------------------------


def test_a_declared_pool_wins_over_a_discovered_one() -> None:
    nodes = [gfd("n1", pool="a100"), gfd("n2", pool="a100")]
    (discovered,) = discover(nodes, CATALOG).pools
    specs = {"auto": discovered.spec(), "mine": spec()}
    found = build(specs, nodes, discovered=["auto"])
    assert set(found.pools) == {"mine"}
    assert found.problems == (), "no problem for the user"
    assert set(found.owners.values()) == {"mine"}


def test_a_discovered_pool_keeps_what_is_not_declared() -> None:
    nodes = [gfd("n1", pool="a100"), gfd("n2")]
    (discovered,) = discover(nodes, CATALOG).pools
    found = build({"auto": discovered.spec(), "mine": spec()}, nodes, discovered=["auto"])
    assert owners(found) == {"n1": "mine", "n2": "auto"}
    assert found.pools["auto"].discovered
    assert not found.pools["mine"].discovered


def test_a_discovered_pool_whose_selector_was_edited_keeps_its_nodes() -> None:
    nodes = [gfd("n1", pool="a100"), gfd("n2")]
    (discovered,) = discover(nodes, CATALOG).pools
    edited = discovered.spec().model_copy(update={"node_selector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}})
    again = discover(nodes, CATALOG, {"a100": edited.node_selector}).pools[0]
    assert len(again.spec().node_selector) > 1, (
        "discovered again by all its labels, since the edited selector is unknown to discovery"
    )
    specs = {"a100": edited, again.name: again.spec()}
    found = build(specs, nodes, discovered=list(specs), labels={"a100": {}})
    assert set(found.owners.values()) == set(found.pools) == {"a100"}, "jobs that run there keep their pool"


def test_overlapping_declared_pools() -> None:
    wide = spec(nodeSelector={})
    found = build({"wide": wide, "a100": spec()}, [node("n1"), node("n2", "other")])
    assert owners(found) == {"n1": "a100", "n2": "wide"}, "the narrower selector has it"
    assert kinds(found) == [("wide", ProblemKind.OVERLAP)]
    assert "a100 and wide select the same nodes (1, such as n1)" in found.problems[0].message


def test_a_node_with_several_resources_has_a_pool_for_each() -> None:
    """As with MIG slices of two sizes: pods that use the small ones leave the large one free."""
    small, large = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
    mixed = NodeFacts("n1", {"pool": "a100", "disk": "ssd"}, chips={small: 4, large: 1, "nvidia.com/gpu": 0})
    specs = {
        "whole": spec(),
        "small": spec(chipsPerNode=4, resourceName=small),
        "large": spec(chipsPerNode=1, resourceName=large),
        "same": spec(chipsPerNode=1, resourceName=large),
    }
    found = build_pools(specs, [mixed], {("n1", small): 3}, CATALOG)
    assert found.owners == {("n1", small): "small", ("n1", large): "large"}
    assert {name: (pool.total, pool.free) for name, pool in found.pools.items()} == {
        "whole": (0, 0),
        "small": (4, 1),
        "large": (1, 1),
        "same": (0, 0),
    }
    assert kinds(found) == [
        ("same", ProblemKind.NO_NODES),
        ("same", ProblemKind.OVERLAP),
        ("whole", ProblemKind.NO_NODES),
    ]
    labelled = with_node_shapes(found, [mixed], {("label", "disk")})
    ssd = frozenset({("disk", "ssd")})
    assert {name: {shape.labels: n for shape, n in labelled[name].shapes.items()} for name in ("small", "large")} == {
        "small": {ssd: 1},
        "large": {ssd: 1},
    }


def test_nodes_without_the_resource_belong_to_no_pool() -> None:
    found = build({"all": spec(nodeSelector={})}, [NodeFacts("web", {"pool": "a100"}), node("n1")])
    assert owners(found) == {"n1": "all"}


def test_labels_of_the_pool_travel_with_it() -> None:
    found = build({"p": spec()}, [node("n1")], labels={"p": {"tier": "gold"}})
    assert found.pools["p"].labels == {"tier": "gold"}


# --- slices ----------------------------------------------------------------------------------------------------------


def tpu(topology: str, chips: int, per_node: int, **fields: Any) -> AcceleratorPoolSpec:
    return spec(
        accelerator="TPU-v5e",
        chipsPerNode=per_node,
        resourceName="google.com/tpu",
        nodeSelector={"cloud.google.com/gke-tpu-topology": topology},
        slice={"topology": topology, "chips": chips},
        **fields,
    )


def test_multi_host_slices_are_free_as_a_whole() -> None:
    nodes = [gke_tpu(f"{pool}-{host}", pool, "4x4", 4) for pool in ("a", "b", "c") for host in range(4)]
    nodes[11] = dataclasses.replace(nodes[11], ready=False)
    found = build({"tpu": tpu("4x4", 16, 4, maxChips=100)}, nodes, usage={"a-1": 4})
    pool = found.pools["tpu"]
    assert (pool.total, pool.free) == (32, 16), "c lacks a host, a is in use"
    assert pool.growable == 48, "100 − 48 that are there, in slices of 16"
    assert pool.hosts_per_slice == 4


def test_single_host_slices() -> None:
    nodes = [gke_tpu(f"n{host}", "one", "2x4", 8) for host in range(3)]
    pool = build({"tpu": tpu("2x4", 8, 8)}, nodes, usage={"n1": 8}).pools["tpu"]
    assert (pool.total, pool.free) == (24, 16)


# --- price and links -------------------------------------------------------------------------------------------------


def test_prices_that_the_pool_does_not_name() -> None:
    nodes = [karpenter("n1", "gpu"), karpenter("n2", "gpu")]
    (discovered,) = discover(nodes, CATALOG).pools
    assert build({"p": discovered.spec()}, nodes).pools["p"].price.on_demand == 1.418
    single = build({"p": spec(accelerator="RTXPRO4500-32GB", price=None)}, [node("n1")])
    assert single.pools["p"].price.on_demand == 2.52
    assert kinds(single) == [("p", ProblemKind.PRICE_UNVERIFIED)]
    assert "spec.price: " in single.problems[0].message and "set spec.price.perChipHour" in single.problems[0].message
    unknown = build({"p": spec(accelerator="V100-PCIE-32GB", price={})}, [node("n1")])
    assert unknown.pools["p"].price.on_demand is None
    assert kinds(unknown) == [("p", ProblemKind.PRICE_UNKNOWN)]


@pytest.mark.parametrize(
    ("nodes", "price"),
    [
        ([gke("n1", "p", count=1, machine="g2-standard-4")], 0.7068),
        ([gke_tpu("n1", "p", "4x4", 4)], 1.20),
        ([eks("n1", "big-gpu")], 2.7447),
        ([aks("n1")], 4.096),
        ([karpenter("n1", "gpu")], 1.418),
        ([karpenter("n1", "gpu", count=1, instance="g5.xlarge")], 1.006),
        ([karpenter(i, "p", count=1, instance=i) for i in ("g5.xlarge", "g5.16xlarge")], 4.096),
    ],
)
def test_a_discovered_pool_has_the_price_of_its_most_expensive_node(nodes: list[NodeFacts], price: float) -> None:
    (discovered,) = discover(nodes, CATALOG).pools
    assert build({"p": discovered.spec()}, nodes).pools["p"].price.on_demand == price


def test_one_machine_that_is_not_listed_is_a_doubt() -> None:
    nodes = [karpenter(i, "p", count=1, instance=i) for i in ("g5.xlarge", "g5.16xlarge", "g5.8xlarge")]
    (discovered,) = discover(nodes, CATALOG).pools
    found = build({"p": discovered.spec()}, nodes)
    assert kinds(found) == [("p", ProblemKind.PRICE_UNVERIFIED)]
    assert "no list price is known for g5.8xlarge" in found.problems[0].message


@pytest.mark.parametrize("node", [karpenter("n1", "gpu", capacity="spot"), aks("n1", spot=True)])
def test_spot_nodes_have_no_price_on_demand_and_ask_for_what_is_paid(node: NodeFacts) -> None:
    (discovered,) = discover([node], CATALOG).pools
    found = build({"p": discovered.spec()}, [node])
    assert (found.pools["p"].total, found.pools["p"].price.on_demand) == (discovered.chips_per_node, None)
    assert "set spec.price.spotPerChipHour" in found.problems[0].message


def test_a_pool_that_names_only_a_spot_price_sells_only_spot() -> None:
    found = build({"p": spec(price={"spotPerChipHour": "0.42"})}, [node("n1")])
    assert (found.pools["p"].price.on_demand, found.pools["p"].price.spot) == (None, 0.42)


def test_links() -> None:
    links = {"intraNode": {"kind": "PCIe"}, "interNode": {"kind": "Ethernet", "gigabytesPerSecond": "5"}}
    pool = build({"p": spec(interconnect=links)}, [node("n1")]).pools["p"]
    assert (pool.intra_link.kind, pool.intra_link.bytes_per_second) == (LinkKind.PCIE, 24e9), "Gen4, as other A100"
    assert (pool.inter_link.kind, pool.inter_link.bytes_per_second) == (LinkKind.ETHERNET, 5e9)
    own = build({"p": spec(interconnect={"intraNode": {"kind": "NVLink"}})}, [node("n1")]).pools["p"]
    assert own.intra_link.bytes_per_second == 199e9, "the chip's own link, not the slowest of its kind"


def test_a_link_without_rate_that_the_catalog_lacks_is_a_problem() -> None:
    lacking = dataclasses.replace(
        CATALOG, links={kind: link for kind, link in CATALOG.links.items() if kind is not LinkKind.NEURON_LINK}
    )
    named = spec(interconnect={"interNode": {"kind": "NeuronLink"}})
    found = build_pools({"p": named}, [node("n1")], {}, lacking)
    assert kinds(found) == [("p", ProblemKind.UNKNOWN_LINK)]
    assert found.pools["p"].inter_link == CATALOG.get("A100-SXM4-80GB").inter_link


def test_a_declared_rate_needs_no_entry_of_the_catalog() -> None:
    links = {"interNode": {"kind": "NeuronLink", "gigabytesPerSecond": "12"}}
    found = build({"p": spec(interconnect=links)}, [node("n1")])
    assert not found.problems
    assert found.pools["p"].inter_link == Link(LinkKind.NEURON_LINK, 12e9)
    efa = build({"p": spec(interconnect={"interNode": {"kind": "EFA"}})}, [node("n1")]).pools["p"].inter_link
    assert efa == CATALOG.get("A100-SXM4-80GB").inter_link, "counted as Ethernet"


# --- for all clusters ------------------------------------------------------------------------------------------------

fleets = st.lists(
    st.builds(
        node,
        st.uuids().map(str),
        st.sampled_from(["a100", "b", "c"]),
        st.sampled_from([0, 4, 8]),
        ready=st.booleans(),
        unschedulable=st.booleans(),
    ),
    max_size=20,
)


@given(fleets, st.integers(0, 9), st.none() | st.integers(0, 200))
def test_free_is_never_more_than_total_and_money_never_negative(
    nodes: list[NodeFacts], used: int, maximum: int | None
) -> None:
    specs = {name: spec(nodeSelector={"pool": name}, maxChips=maximum) for name in ("a100", "b")}
    specs["all"] = spec(nodeSelector={})
    found = build(specs, nodes, usage={entry.name: used for entry in nodes})
    assert sum(pool.nodes for pool in found.pools.values()) <= len(nodes)
    for pool in found.pools.values():
        assert 0 <= pool.free <= pool.total <= pool.reach
        assert pool.growable % pool.chips_per_node == 0
        assert pool.price.on_demand is not None and pool.price.on_demand >= 0
    chips = sum(entry.chips["nvidia.com/gpu"] for entry in nodes if entry.ready and not entry.unschedulable)
    assert sum(pool.total for pool in found.pools.values()) == chips, "each node counts once"


@given(fleets, st.randoms(use_true_random=False))
def test_order_of_nodes_changes_nothing(nodes: list[NodeFacts], random: Any) -> None:
    specs = {"a100": spec(), "b": spec(nodeSelector={"pool": "b"})}
    shuffled = list(nodes)
    random.shuffle(shuffled)
    assert build(specs, shuffled) == build(specs, nodes)


def test_ten_thousand_nodes_are_cheap() -> None:
    specs = {f"p{number}": spec(nodeSelector={"pool": f"p{number}"}) for number in range(40)}
    nodes = [node(f"n{number}", f"p{number % 50}") for number in range(10_000)]
    usage = {f"n{number}": number % 9 for number in range(10_000)}
    found = []
    assert work_of(lambda: found.append(build(specs, nodes, usage=usage))) < 65, "a second"
    assert sum(pool.nodes for pool in found[0].pools.values()) == 8_000


# --- labels that jobs select nodes by --------------------------------------------------------------------------------


def test_a_pool_has_the_node_labels_that_jobs_select_by() -> None:
    nodes = [node("n1"), node("n2"), node("n3", ready=False), node("other", "l4")]
    labels: list[dict[str, str]] = [{"disk": "ssd", "zone": "a"}, {"zone": "b"}, {"disk": "tape"}, {"disk": "none"}]
    nodes = [dataclasses.replace(n, labels={**n.labels, **more}) for n, more in zip(nodes, labels, strict=True)]
    inventory = build({"a100": spec()}, nodes, usage={"n1": 3})
    assert with_node_shapes(inventory, nodes, ()) is inventory.pools
    (made,) = with_node_shapes(inventory, nodes, {("label", "disk")}).values()
    assert {shape.labels: n for shape, n in made.shapes.items()} == {
        frozenset({("disk", "ssd")}): 5,
        frozenset(): 8,
        frozenset({("disk", "tape")}): 0,
    }
    assert made.free == 13
    (made,) = with_node_shapes(inventory, nodes, {("label", "disk"), ("label", "zone")}).values()
    assert frozenset({("disk", "ssd"), ("zone", "a")}) in {shape.labels for shape in made.shapes}


def test_a_spot_price_of_nodes_that_are_on_demand_is_refused() -> None:
    selector = {"karpenter.sh/capacity-type": "on-demand"}
    found = build({"a100": spec(nodeSelector=selector)}, [])
    assert kinds(found) == [("a100", ProblemKind.PRICE_CONTRADICTORY)]
    assert "remove the spot price" in found.problems[0].message
    assert not found.pools, "nothing is placed or billed there"
    fine = build({"a100": spec(nodeSelector=selector, price={"perChipHour": "3.50"}, maxChips=8)}, [])
    assert not fine.problems
    spot = spec(nodeSelector={"karpenter.sh/capacity-type": "spot"}, price={"spotPerChipHour": "1.25"}, maxChips=8)
    assert not build({"a100": spot}, []).problems


def test_a_pool_of_which_no_node_takes_pods_says_why() -> None:
    found = build({"a100": spec()}, [node("n1", unschedulable=True, ready=True), node("n2", ready=False)])
    assert kinds(found) == [("a100", ProblemKind.NODES_NOT_READY)]
    assert found.problems[0].message == "no node can take pods: 1 cordoned and 1 not ready"
