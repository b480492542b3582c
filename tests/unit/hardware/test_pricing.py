"""List prices: that of the nodes' instance type where it is listed, with a doubt where the price may be wrong."""

from __future__ import annotations

from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pricing import listed_price

CATALOG = load_catalog()
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
    listed = listed_price(A10G, [{INSTANCE: "g5.12xlarge", REGION: "eu-west-1"}], CATALOG)
    assert listed.price.on_demand == 1.418
    assert listed.doubt is not None and "eu-west-1" in listed.doubt and "us-east-1" in listed.doubt


def test_a_recalled_price_is_a_doubt() -> None:
    listed = listed_price(A10G, [{INSTANCE: "g5.48xlarge"}], CATALOG)
    assert listed.price.on_demand == 2.036
    assert listed.doubt is not None and "recalled" in listed.doubt
    tpu = listed_price(TPU, [{INSTANCE: "ct5lp-hightpu-4t"}], CATALOG)
    assert tpu.price.on_demand == 1.20
    assert tpu.doubt is not None and "recalled" in tpu.doubt


def test_spot_and_unpriced_chips_are_unknown_never_free() -> None:
    spot = listed_price(A10G, [{INSTANCE: "g5.12xlarge", "karpenter.sh/capacity-type": "spot"}], CATALOG)
    assert spot.price.on_demand is None and spot.price.spot is None and spot.doubt is not None
    unpriced = listed_price(V100, [], CATALOG)
    assert unpriced.price.on_demand is None
    assert unpriced.doubt is not None and "V100-PCIE-32GB" in unpriced.doubt
