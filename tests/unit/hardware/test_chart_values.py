"""The chart's values about chips and prices: what holds, what stands before what, and what a mistake costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.pool import AcceleratorPoolSpec
from rightpool.hardware.accelerator import Declaration, Figures, FigureSource, Price
from rightpool.hardware.catalog import Catalog, load_catalog
from rightpool.hardware.chart_values import with_values
from rightpool.hardware.discovery import discover
from rightpool.hardware.inventory import ProblemKind, build_pools
from rightpool.hardware.node import NodeFacts
from rightpool.hardware.pool import Pool
from rightpool.runtime.observe.catalog_file import read_catalog

SHIPPED = load_catalog()
L30 = {
    "vendor": "NVIDIA",
    "memory": "48e9",
    "memoryGigabytesPerSecond": "864",
    "teraflops": {"fp32": "59.8", "bf16": "119.5"},
    "watts": "275",
    "nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-L30"},
}
NODE = NodeFacts(
    "n", {"nvidia.com/gpu.product": "NVIDIA-L30", "nvidia.com/gpu.count": "8"}, chips={"nvidia.com/gpu": 8}
)


def catalog(**values: Any) -> Catalog:
    return with_values(SHIPPED, json.dumps(values))


def pool(over: Catalog, accelerator: str, spot: bool = False, **fields: Any) -> Pool:
    selector = {"p": "p", **({"karpenter.sh/capacity-type": "spot"} if spot else {})}
    body = {"accelerator": accelerator, "chipsPerNode": 8, "resourceName": "nvidia.com/gpu", "nodeSelector": selector}
    nodes = [NodeFacts("n", selector, chips={"nvidia.com/gpu": 8})]
    return build_pools({"p": AcceleratorPoolSpec.model_validate(body | fields)}, nodes, {}, over).pools["p"]


def test_a_chip_that_the_catalog_lacks_is_discovered_and_priced() -> None:
    over = catalog(chips={"L30-48GB": L30}, prices={"L30-48GB": {"perChipHour": "0.90"}})
    assert not over.problems
    (found,) = discover([NODE], over).pools
    assert (found.accelerator, found.chips_per_node) == ("L30-48GB", 8)
    made = build_pools({"l30": found.spec()}, [NODE], {}, over).pools["l30"]
    assert made.price == Price(0.9, source=FigureSource.VALUES)
    chip = made.accelerator
    assert chip.figures is Figures.DECLARED
    assert chip.declared == Declaration(FigureSource.VALUES, "catalog.chips.L30-48GB of the chart's values")
    assert (chip.memory_bytes, chip.memory_bandwidth, chip.power_watts) == (48 * 10**9, 864e9, 275.0)
    assert chip.peak_flops == {"fp32": 59.8e12, "bf16": 119.5e12}
    assert not discover([NODE], SHIPPED).pools, "nobody knows it without the values"


def test_a_figure_of_the_catalog_is_replaced_and_the_others_stay() -> None:
    over = catalog(chips={"A10G-24GB": {"teraflops": {"bf16": "125", "fp16": "125"}}})
    before, chip = SHIPPED.get("A10G-24GB"), over.get("A10G-24GB")
    assert chip.peak_flops == {**before.peak_flops, "bf16": 125e12, "fp16": 125e12}
    assert (chip.memory_bandwidth, chip.arch, chip.list_price) == (
        before.memory_bandwidth,
        before.arch,
        before.list_price,
    )
    assert chip.figures is Figures.DECLARED and chip.provenance["memory_bytes"] == before.provenance["memory_bytes"]
    assert SHIPPED.get("A10G-24GB") is before


def test_a_pool_stands_before_the_values_and_they_before_the_catalog() -> None:
    over = catalog(
        chips={"L4-24GB": {"watts": "60"}}, prices={"L4-24GB": {"perChipHour": "0.5", "spotPerChipHour": "0.2"}}
    )
    assert pool(over, "L4-24GB").accelerator.power_watts == 60.0
    assert pool(over, "L4-24GB", chip={"watts": "50"}).accelerator.power_watts == 50.0
    assert pool(over, "L4-24GB").price == Price(0.5, source=FigureSource.VALUES)
    assert pool(over, "L4-24GB", spot=True).price == Price(None, 0.2, source=FigureSource.VALUES)
    declared = pool(over, "L4-24GB", price={"perChipHour": "0.4"})
    assert declared.price == Price(0.4, source=FigureSource.POOL)
    assert pool(SHIPPED, "L4-24GB").price.source is FigureSource.CATALOG
    assert over.get("L4-24GB").list_price == Price(0.5, 0.2, source=FigureSource.VALUES)


def test_a_slice_costs_its_share_of_the_chip() -> None:
    over = catalog(prices={"H100-SXM5-80GB": {"perChipHour": "3.50"}})
    assert pool(over, "H100-SXM5-80GB-MIG-1g.10gb").price.on_demand == pytest.approx(0.5)


def test_what_is_not_named_of_a_new_chip_is_estimated_from_what_it_costs() -> None:
    chips = {"X1": {"vendor": "AMD", "memory": "96e9"}}
    cheap, dear = (
        catalog(chips=chips, prices={"X1": {"perChipHour": price}}).get("X1").memory_bandwidth for price in ("0.5", "5")
    )
    assert cheap < dear
    assert catalog(chips=chips).get("X1").figures is Figures.ESTIMATED


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"chips": {"X1": {**L30, "memory": "48 gigs"}}}, "catalog.chips.X1.memory", 'such as "14Gi"'),
    (
        {"chips": {"X1": {**L30, "memoryGigabytesPerSecond": "0"}}},
        "catalog.chips.X1.memoryGigabytesPerSecond",
        "above 0",
    ),
    ({"chips": {"X1": {**L30, "teraflops": {"bf16": 119.5}}}}, "catalog.chips.X1.teraflops.bf16", 'such as "24"'),
    ({"chips": {"X1": {**L30, "teraflops": {}}}}, "catalog.chips.X1.teraflops", "no rate is named"),
    ({"chips": {"X1": {**L30, "vendor": "Nvidia"}}}, "catalog.chips.X1.vendor", "one of Google, NVIDIA"),
    ({"chips": {"X1": {"vendor": "NVIDIA"}}}, "catalog.chips.X1.memory", "such as 48Gi"),
    ({"chips": {"X1": {**L30, "memoryGB": "48"}}}, "catalog.chips.X1.memoryGB", "not permitted"),
    ({"chips": {"X1": {**L30, "nodeLabels": {"gpu": "x"}}}}, "catalog.chips.X1.nodeLabels", "nvidia.com/gpu.product"),
    ({"chips": {"X1": None}}, "catalog.chips.X1", "valid dictionary"),
    ({"chips": {"L4-24GB": {"vendor": "AMD"}}}, "catalog.chips.L4-24GB.vendor", "leave it out"),
    ({"prices": {"L4-24GB": {"perChipHour": "-1"}}}, "catalog.prices.L4-24GB.perChipHour", "0 or more"),
    ({"prices": {"L4-24GB": {"perChipHour": 0.5}}}, "catalog.prices.L4-24GB.perChipHour", '"12.50"'),
    ({"prices": {"L4-24GB": {}}}, "catalog.prices.L4-24GB", "write perChipHour"),
    ({"prices": {"L4-24BG": {"perChipHour": "1"}}}, "catalog.prices.L4-24BG", "rightpool pools --accelerators"),
    ({"chips": ["L4-24GB"]}, "catalog.chips", "no object"),
]


@pytest.mark.parametrize(("values", "field", "remedy"), MISTAKES, ids=[field for _, field, _ in MISTAKES])
def test_a_mistake_names_its_field_and_costs_its_entry_alone(values: dict[str, Any], field: str, remedy: str) -> None:
    (problem,) = catalog(**values).problems
    assert field in problem.message and remedy in problem.message and "the chart's values" in problem.message
    if isinstance(values.get("chips"), list):
        return
    whole = {place: {**values.get(place, {}), "T4-16GB": good} for place, good in GOOD.items()}
    over = catalog(**whole)
    assert over.problems == (problem,)
    assert over.get("T4-16GB").power_watts == 65.0 and over.get("T4-16GB").list_price.on_demand == 0.3
    assert over.accelerators.keys() == SHIPPED.accelerators.keys()


GOOD = {"chips": {"watts": "65"}, "prices": {"perChipHour": "0.30"}}


def test_a_mistake_is_a_problem_of_the_pools_of_the_chip() -> None:
    over = catalog(chips={"L4-24GB": {"watts": "none"}}, prices={"L4-24GB": {"perChipHour": "free"}})
    body = {"chipsPerNode": 8, "resourceName": "nvidia.com/gpu", "maxChips": 8}
    specs = {
        name: AcceleratorPoolSpec.model_validate({**body, "accelerator": key, "nodeSelector": {"p": name}, **fields})
        for name, key, fields in (
            ("l4", "L4-24GB", {}),
            ("paid", "L4-24GB", {"price": {"perChipHour": "0.6"}}),
            ("t4", "T4-16GB", {}),
        )
    }
    found = build_pools(specs, [], {}, over)
    assert found.pools.keys() == specs.keys(), "no pool is left out"
    kinds = {(problem.pool, problem.kind) for problem in found.problems if "the chart's values" in problem.message}
    chip, price = ProblemKind.CHIP_VALUES_INVALID, ProblemKind.PRICE_VALUES_INVALID
    assert kinds == {("l4", chip), ("l4", price), ("paid", chip)}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8) | st.sampled_from(["48Gi", "864", "NVIDIA", "-1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["chips", "prices", "L4-24GB", "X1", *L30, "bf16", "perChipHour", "nvidia.com/gpu.product"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(ANYTHING)
def test_whatever_the_values_are_there_is_a_catalog(values: Any) -> None:
    over = with_values(SHIPPED, json.dumps(values))
    assert over.accelerators.keys() >= SHIPPED.accelerators.keys()
    for chip in over.accelerators.values():
        assert chip.memory_bytes > 0 and chip.memory_bandwidth > 0 and chip.peak_flops
    assert all(problem.message for problem in over.problems)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"chips": 3}', "[" * 100_000])
def test_what_is_no_object_leaves_the_catalog_as_it_ships(text: str) -> None:
    over = with_values(SHIPPED, text)
    (problem,) = over.problems
    assert over.accelerators == SHIPPED.accelerators and "can't be read" in problem.message


def test_the_operator_reads_a_file_and_starts_without_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "catalog.json"
    assert read_catalog(None) is SHIPPED
    missing = read_catalog(file)
    assert missing.accelerators == SHIPPED.accelerators and "can't be read" in caplog.text
    file.write_bytes(b"\xff\xfe")
    assert "can't be read" in read_catalog(file).problems[0].message
    file.write_text(json.dumps({"chips": {"L30-48GB": L30}, "prices": {}}))
    assert read_catalog(file).get("L30-48GB").memory_bandwidth == 864e9
    assert not read_catalog(file).problems
