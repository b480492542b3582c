"""Vendors and clouds as data: a new vendor needs its module, rows in the catalog's files and a line in the registry."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import resources
from typing import Any

import pytest

from rightpool.api.placement import CapacityType, Placement
from rightpool.api.variant import ChipVendor
from rightpool.cluster.client import Listing
from rightpool.hardware.catalog import DATA_FILES, Catalog, load_catalog, parse_catalog
from rightpool.hardware.clouds import CLOUDS, Cloud, is_spot
from rightpool.hardware.discovery import Unmapped, discover
from rightpool.hardware.node import NodeFacts, Taint, repelled_by
from rightpool.hardware.pool import Pool, shapes
from rightpool.hardware.vendors.registry import DEFAULT_VENDOR, VENDORS, vendor_named
from rightpool.hardware.vendors.vendor import ProductLabel, SliceVariables, Vendor
from rightpool.planning.offers.pool_gates import home_vendor, pool_gate
from rightpool.planning.offers.shape import Shape
from rightpool.runtime.observe.facts import node_facts
from rightpool.runtime.observe.pool_inventory import PoolInventory, take_inventory
from rightpool.runtime.observe.usage import ChipUsage
from rightpool.workloads.kinds.job import JOB
from rightpool.workloads.resources import refuse_chips
from rightpool.workloads.template import InvalidTemplate
from tests.unit.hardware.machines import eks
from tests.unit.planning.jobs import fresh, spec
from tests.unit.workloads.samples import OWNER, Work, env_of, plain, ref

# --- what is registered ----------------------------------------------------------------------------------------------


def test_names_and_resources_of_vendors_differ() -> None:
    assert len({vendor.name for vendor in VENDORS}) == len({vendor.resource_name for vendor in VENDORS}) == len(VENDORS)
    assert DEFAULT_VENDOR in VENDORS
    assert f"{DEFAULT_VENDOR}" == DEFAULT_VENDOR.name


def test_every_label_that_names_chips_has_rows() -> None:
    read = {source.label for vendor in VENDORS for source in vendor.product_labels}
    assert read == load_catalog().labels.keys() - {"node.kubernetes.io/instance-type"}


@pytest.mark.parametrize("vendor", VENDORS, ids=str)
def test_a_template_may_not_request_chips_of_any_vendor(vendor: Vendor) -> None:
    template = plain(resources={"limits": {vendor.resource_name: "1"}})
    with pytest.raises(InvalidTemplate, match=f"asks for {vendor.resource_name} itself"):
        refuse_chips(template, "other.example/chip")


# --- clouds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.name)
def test_spot_nodes_of_every_cloud_are_discovered_and_used(cloud: Cloud) -> None:
    plain_node = eks("n", "g")
    labels = {key: value for key, value in plain_node.labels.items() if not key.startswith("eks.")}
    taints = (Taint(cloud.spot_label, "NoSchedule", cloud.spot_value),) if cloud.spot_taint else ()
    node = NodeFacts("n", {**labels, cloud.spot_label: cloud.spot_value}, taints, plain_node.chips)
    assert is_spot(node.labels)
    (found,) = discover([node], load_catalog()).pools
    assert found.name.endswith("-spot")
    assert found.node_selector[cloud.spot_label] == cloud.spot_value
    assert repelled_by(node, found.tolerations) is None
    pool = _fleet(load_catalog(), [node]).inventory.pools[found.name]
    pod = _pod(pool, Placement(pool.name, 8, 1, CapacityType.SPOT))
    assert pod["nodeSelector"][cloud.spot_label] == cloud.spot_value
    assert repelled_by(node, pod["tolerations"]) is None


# --- an invented vendor ----------------------------------------------------------------------------------------------

ACME = Vendor(
    name="Acme",
    resource_name="acme.example/npu",
    product_labels=(
        ProductLabel(
            "acme.example/product",
            memory="acme.example/memory",
            count="acme.example/count",
            divided=re.compile("-HALF$"),
        ),
    ),
)
TORUS = Vendor(
    name="Torus",
    resource_name="torus.example/core",
    product_labels=(ProductLabel("torus.example/core-type"),),
    family_words=2,
    topology_label="torus.example/topology",
    slice_label="torus.example/slice",
    priced_by_chip=True,
    slice_variables=SliceVariables("TORUS_HOST", "TORUS_HOSTS", "TORUS_SLICES", "TORUS_SLICE", "TORUS_FIRST"),
)
ROWS = {
    "accelerators.csv": """\
Zeta-32GB,Acme,zeta,10,,100,100,,,32,1000,,300,acme-link,node-100g,aws/z1.8xlarge,Acme data sheet,2026-11-21,yes,
Zeta-64GB,Acme,zeta,10,,100,100,,,64,1000,,300,acme-link,node-100g,,Acme data sheet,2026-11-21,yes,
Torus-v1-16GB,Torus,torus-v1,,,50,,,,16,500,,,torus-link,slice-dcn,gcp/torus-v1,Torus data sheet,2026-11-21,yes,
""",
    "mig.csv": "",
    "links.csv": "acme-link,InfinityFabric,50,nominal,invented\ntorus-link,ICI,200,nominal,invented\n",
    "prices.csv": """\
aws,z1.8xlarge,Zeta-32GB,4,2.5,us-east-1,OnDemand,list,invented,2026-11-21,yes
gcp,torus-v1,Torus-v1-16GB,1,0.5,us-central1,OnDemand,list,invented,2026-11-21,yes
""",
    "labels.csv": """\
acme.example/product,ZETA,32768,Zeta-32GB,invented
acme.example/product,ZETA,65536,Zeta-64GB,invented
torus.example/core-type,v1,,Torus-v1-16GB,invented
""",
}


class NoPods:
    def pages(self, *_: Any, **__: Any) -> Iterable[Listing]:
        return ()


def _fleet(catalog: Catalog, nodes: list[NodeFacts]) -> PoolInventory:
    return take_inventory((), nodes, (), ChipUsage(NoPods(), interval=0.0), catalog)


def _catalog() -> Catalog:
    folder = resources.files("rightpool.hardware").joinpath("data")
    files = {name: folder.joinpath(name).read_text(encoding="utf-8") + ROWS[name] for name in DATA_FILES}
    return parse_catalog(files, (*VENDORS, ACME, TORUS))


def _node(name: str, resource: str, chips: int, labels: dict[str, str]) -> NodeFacts:
    """A node as the API server gives it, with the taint of its resource."""
    return node_facts(
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [{"key": resource, "effect": "NoSchedule"}]},
            "status": {
                "allocatable": {resource: str(chips), "cpu": "96"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )


def _acme(name: str, product: str = "ZETA", memory: int = 32768, chips: int = 4) -> NodeFacts:
    labels = {
        "acme.example/product": product,
        "acme.example/memory": str(memory),
        "acme.example/count": "4",
        "node.kubernetes.io/instance-type": "z1.8xlarge",
        "topology.kubernetes.io/region": "us-east-1",
    }
    return _node(name, "acme.example/npu", chips, labels)


def _torus(name: str, slice_: str) -> NodeFacts:
    labels = {
        "torus.example/core-type": "v1",
        "torus.example/topology": "2x4",
        "torus.example/slice": slice_,
        "cloud.google.com/gke-nodepool": "all",
        "node.kubernetes.io/instance-type": "any",
    }
    return _node(name, "torus.example/core", 4, labels)


def _pod(pool: Pool, placement: Placement) -> dict[str, Any]:
    revision = ref(placement.chips, placement.replicas, pool=pool.name, capacity=placement.capacity)
    pod: dict[str, Any] = JOB.build(OWNER, Work(plain()), None, revision, pool, None)["spec"]["template"]["spec"]
    return pod


def test_nodes_of_a_new_vendor_become_pools_sizes_and_pods() -> None:
    nodes = [_acme("z1"), _acme("z2", chips=3), _acme("z3", memory=65536)]
    fleet = _fleet(_catalog(), [*nodes, eks("n", "g")])
    assert fleet.discovery.unmapped == ()
    pools = fleet.inventory.pools
    assert set(pools) == {"zeta-32gb", "zeta-64gb", "g"}
    pool = pools["zeta-32gb"]
    assert (pool.accelerator.vendor, pool.resource_name, pool.chips_per_node) == (ACME, "acme.example/npu", 4)
    assert (pool.total, pool.free, pool.price.on_demand) == (7, 7, 2.5)
    assert (str(pool.intra_link.kind), pool.intra_link.bytes_per_second) == ("InfinityFabric", 50e9)
    assert shapes(pool, 1, 64) == [(1, 1), (2, 1), (4, 1)]
    pod = _pod(pool, Placement(pool.name, 4, 1))
    assert pod["containers"][0]["resources"]["limits"] == {"acme.example/npu": "4"}
    assert pod["nodeSelector"] == {
        "acme.example/product": "ZETA",
        "acme.example/memory": "32768",
        "acme.example/count": "4",
    }
    assert repelled_by(nodes[0], pod["tolerations"]) is None
    template = plain(resources={"limits": {"acme.example/npu": "1"}})
    with pytest.raises(InvalidTemplate, match=r"asks for acme\.example/npu itself"):
        JOB.build(OWNER, Work(template), None, ref(4, 1, pool=pool.name), pool, None)


def test_slices_of_a_new_vendor_are_whole() -> None:
    fleet = _fleet(_catalog(), [_torus("a1", "a"), _torus("a2", "a"), _torus("b1", "b")])
    assert fleet.discovery.unmapped == ()
    (pool,) = fleet.inventory.pools.values()
    assert (pool.name, pool.accelerator.vendor, pool.price.on_demand) == ("torus-v1", TORUS, 0.5)
    assert (pool.total, pool.free, pool.hosts_per_slice) == (8, 8, 2), "slice b lacks a host"
    assert shapes(pool, 1, 64) == [(8, 2)]
    pod = _pod(pool, Placement(pool.name, 8, 2))
    assert pod["containers"][0]["resources"]["limits"] == {"torus.example/core": "4"}
    assert pod["nodeSelector"] == {"torus.example/core-type": "v1", "torus.example/topology": "2x4"}
    environment = env_of(pod["containers"][0])
    assert environment["TORUS_HOSTS"].count(",") == 1
    assert "TORUS_HOST" in environment and "TPU_WORKER_ID" not in environment


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (_acme("n", "OMEGA"), Unmapped.UNKNOWN_CHIP),
        (_node("n", "acme.example/npu", 4, {}), Unmapped.UNKNOWN_CHIP),
        (_acme("n", "ZETA-HALF"), Unmapped.DIVIDED_CHIP),
        (_node("n", "torus.example/core", 4, {"torus.example/core-type": "v1"}), Unmapped.UNKNOWN_TOPOLOGY),
    ],
)
def test_nodes_of_a_new_vendor_are_left_out_with_a_reason(node: NodeFacts, reason: Unmapped) -> None:
    (left_out,) = discover([node], _catalog()).unmapped
    assert left_out.reason is reason


def test_a_template_stays_with_one_vendor_unless_its_user_allows_others() -> None:
    pools = _fleet(_catalog(), [_acme("z"), eks("n", "g")]).inventory.pools
    acme, nvidia = pools["zeta"], pools["g"]
    shape = Shape.of(fresh())
    assert home_vendor(shape, [acme], None) == ACME
    assert home_vendor(shape, [acme, nvidia], None) == DEFAULT_VENDOR
    assert home_vendor(shape, [acme, nvidia], ACME) == ACME
    rejection = pool_gate(shape, acme, DEFAULT_VENDOR)
    assert rejection is not None and "zeta has Acme chips, and the template is for NVIDIA" in (rejection.text())
    allowed = spec(placement={"pools": {"allow": ["zeta"]}})
    assert pool_gate(Shape.of(fresh(made=allowed)), acme, DEFAULT_VENDOR) is None


def test_the_api_knows_the_same_vendors() -> None:
    assert [vendor.value for vendor in ChipVendor] == [vendor.name for vendor in VENDORS]
    assert {vendor_named(vendor.value) for vendor in ChipVendor} == set(VENDORS)
