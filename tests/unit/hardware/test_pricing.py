"""List prices: that of the nodes' instance type where it is listed, with a doubt where the price may be wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.hardware.accelerator import FigureSource, Price
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.clouds import Purchase, region_class
from rightpool.hardware.pricing import listed_price

CATALOG = load_catalog()
H100 = CATALOG.get("H100-SXM5-80GB")
A10G, TPU, V100 = CATALOG.get("A10G-24GB"), CATALOG.get("TPU-v5e"), CATALOG.get("V100-PCIE-32GB")
INSTANCE = "node.kubernetes.io/instance-type"
REGION = "topology.kubernetes.io/region"


def test_the_nodes_own_machine() -> None:
    listed = listed_price(A10G, [{INSTANCE: "g5.12xlarge", REGION: "us-east-1"}], CATALOG)
    assert (listed.price.on_demand, listed.doubt) == (1.418, None)
    assert listed.price.spot is None


def test_the_highest_price_counts() -> None:
    listed = listed_price(A10G, [{INSTANCE: "g5.xlarge"}, {INSTANCE: "g5.12xlarge"}], CATALOG)
    assert listed.price.on_demand == 1.418


def test_an_unlisted_machine_has_the_chips_usual_price_and_a_doubt() -> None:
    listed = listed_price(A10G, [{INSTANCE: "g5.8xlarge"}], CATALOG)
    assert listed.price.on_demand == 1.006
    assert listed.doubt is not None and "g5.8xlarge" in listed.doubt and "g5.xlarge" in listed.doubt


def test_a_price_without_nodes_is_not_doubted() -> None:
    listed = listed_price(A10G, [], CATALOG)
    assert (listed.price.on_demand, listed.doubt) == (1.006, None)
    assert listed_price(A10G, [{}], CATALOG) == listed


def test_the_price_of_a_machine_with_other_chips_is_not_used() -> None:
    assert listed_price(A10G, [{INSTANCE: "p4d.24xlarge"}], CATALOG).price.on_demand == 1.006


def test_another_region_is_a_doubt() -> None:
    listed = listed_price(A10G, [{INSTANCE: "g5.16xlarge", REGION: "eu-west-1"}], CATALOG)
    assert listed.price.on_demand == 4.096
    assert listed.doubt is not None and "eu-west-1" in listed.doubt and "us-east-1" in listed.doubt


@pytest.mark.parametrize(
    ("region", "price", "of"),
    [
        ("eu-west-1", 1.5829, "eu-west-1"),
        ("eu-west-3", 1.7732, "eu-central-1"),  # the highest of Europe
        ("us-west-2", 1.418, "us-east-1"),  # of the same country, before Canada
        ("ap-southeast-1", 2.0565, "ap-northeast-1"),
        ("sa-east-1", 1.418, "us-east-1"),  # of nowhere near: the first
    ],
)
def test_a_price_is_of_the_region_else_of_its_part_of_the_world(region: str, price: float, of: str) -> None:
    listed = listed_price(A10G, [{INSTANCE: "g5.12xlarge", REGION: region}], CATALOG)
    assert listed.price.on_demand == price
    assert listed.doubt is not None and of in listed.doubt


@pytest.mark.parametrize(
    ("region", "part"),
    [
        ("us-east-1", "North America"),
        ("us-central1", "North America"),
        ("eastus", "North America"),
        ("westus3", "North America"),
        ("northamerica-northeast1", "North America"),
        ("sa-east-1", "South America"),
        ("brazilsouth", "South America"),
        ("eu-central-1", "Europe"),
        ("europe-west4", "Europe"),
        ("westeurope", "Europe"),
        ("uksouth", "Europe"),
        ("ap-south-1", "Asia and Pacific"),
        ("asia-northeast1", "Asia and Pacific"),
        ("australiaeast", "Asia and Pacific"),
        ("centralindia", "Asia and Pacific"),
        ("southeastasia", "Asia and Pacific"),
        ("me-central-1", "Middle East"),
        ("af-south-1", "Africa"),
        ("southafricanorth", "Africa"),
        ("rack-7", None),
        ("", None),
    ],
)
def test_regions_are_in_parts_of_the_world(region: str, part: str | None) -> None:
    assert region_class(region) == part


def test_every_region_with_a_price_is_somewhere() -> None:
    regions = {row.region for rows in CATALOG.prices.values() for row in rows}
    assert [region for region in regions if region_class(region) is None] == []


@pytest.mark.parametrize("labels", [{"karpenter.sh/capacity-type": "spot"}, {"eks.amazonaws.com/capacityType": "SPOT"}])
def test_spot_capacity_has_the_price_of_a_day_with_a_doubt(labels: dict[str, str]) -> None:
    listed = listed_price(H100, [{INSTANCE: "p5.48xlarge", REGION: "us-west-2", **labels}], CATALOG)
    assert listed.price == Price(None, 1.622, source=FigureSource.CATALOG)
    assert listed.doubt is not None and "change by the hour" in listed.doubt and "2026-11-25" in listed.doubt
    tpu = listed_price(CATALOG.get("TPU-v6e"), [{REGION: "europe-west4", "cloud.google.com/gke-spot": "true"}], CATALOG)
    assert tpu.price == Price(None, 1.037, source=FigureSource.CATALOG)


def test_a_node_on_demand_does_not_set_the_price_of_spot_capacity() -> None:
    both = [
        {INSTANCE: "p5.48xlarge", REGION: "us-west-2", **more} for more in ({}, {"karpenter.sh/capacity-type": "spot"})
    ]
    assert listed_price(H100, both, CATALOG).price == Price(None, 1.622, source=FigureSource.CATALOG)


@pytest.mark.parametrize(
    "labels", [{"karpenter.sh/capacity-type": "reserved"}, {"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}]
)
def test_reserved_capacity_costs_its_own_price_or_at_most_that_on_demand(labels: dict[str, str]) -> None:
    node = {INSTANCE: "p5.48xlarge", REGION: "us-east-1", **labels}
    listed = listed_price(H100, [node], CATALOG)
    assert listed.price.on_demand == 6.88 and listed.price.spot is None
    assert listed.doubt is not None and "on demand" in listed.doubt and "reserved" in listed.doubt
    (row,) = (row for row in CATALOG.prices["p5.48xlarge"] if (row.region, row.capacity) == ("us-east-1", "OnDemand"))
    reserved = row.model_copy(update={"capacity": Purchase.RESERVED, "per_chip_hour": 4.0})
    known = replace(CATALOG, prices={"p5.48xlarge": (row, reserved)})
    assert listed_price(H100, [node], known).price.on_demand == 4.0
    assert listed_price(H100, [{**node, "karpenter.sh/capacity-type": "on-demand"}], known).price.on_demand == (
        6.88 if "karpenter.sh/capacity-type" in labels else 4.0
    )


def test_spot_is_dearer_than_on_demand_nowhere() -> None:
    for rows in CATALOG.prices.values():
        on_demand = {row.region: row.per_chip_hour for row in rows if row.capacity is Purchase.ON_DEMAND}
        for row in rows:
            if row.capacity is Purchase.SPOT and row.region in on_demand:
                assert row.per_chip_hour < on_demand[row.region], row


def test_a_recalled_price_is_a_doubt() -> None:
    tpu = listed_price(TPU, [{INSTANCE: "ct5lp-hightpu-4t"}], CATALOG)
    assert tpu.price.on_demand == 1.20
    assert tpu.doubt is not None and "recalled" in tpu.doubt


def test_spot_and_unpriced_chips_are_unknown_never_free() -> None:
    spot = listed_price(V100, [{INSTANCE: "p3.9xlarge", "karpenter.sh/capacity-type": "spot"}], CATALOG)
    assert spot.price == Price() and spot.doubt is not None and "spot capacity of V100-PCIE-32GB" in spot.doubt
    unpriced = listed_price(V100, [], CATALOG)
    assert unpriced.price.on_demand is None
    assert unpriced.doubt is not None and "V100-PCIE-32GB" in unpriced.doubt
