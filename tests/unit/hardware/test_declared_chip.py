"""Accelerators as pools declare them: new ones, replaced figures, and estimates of what nobody declares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.choices import Batch
from rightpool.api.estimate import Estimate
from rightpool.api.pool import AcceleratorPoolSpec, LinkKind
from rightpool.api.traits import ModelTraits
from rightpool.hardware.accelerator import Declaration, Figures, FigureSource
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.inventory import Inventory, ProblemKind, build_pools
from rightpool.hardware.node import NodeFacts
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.nvidia import NVIDIA
from tests.unit.prediction.fixtures import at, predict, profile

CATALOG = load_catalog()
L30 = {
    "memory": "48Gi",
    "memoryGigabytesPerSecond": "864",
    "teraflops": {"fp32": "59.8", "bf16": "119.5", "fp16": "119.5"},
    "watts": "275",
}


def spec(accelerator: str, chip: Any = None, **fields: Any) -> AcceleratorPoolSpec:
    base = {"accelerator": accelerator, "chipsPerNode": 8, "resourceName": "nvidia.com/gpu", "chip": chip}
    return AcceleratorPoolSpec.model_validate({**base, "nodeSelector": {"pool": accelerator}, **fields})


def built(**specs: AcceleratorPoolSpec) -> Inventory:
    nodes = [
        NodeFacts(f"node-{name}", dict(one.node_selector), chips={one.resource_name: 8}) for name, one in specs.items()
    ]
    return build_pools(specs, nodes, {}, CATALOG)


def refused(found: Inventory, pool: str) -> tuple[ProblemKind, str]:
    assert pool not in found.pools
    (problem,) = (problem for problem in found.problems if problem.pool == pool)
    return problem.kind, problem.message


def test_a_chip_that_the_catalog_lacks() -> None:
    pool = built(l30=spec("L30-48GB", L30)).pools["l30"]
    chip = pool.accelerator
    assert chip.figures is Figures.DECLARED and not chip.doubts
    assert chip.declared == Declaration(FigureSource.POOL, "spec.chip of AcceleratorPool l30")
    assert chip.key == "L30-48GB" and chip.vendor is NVIDIA
    assert chip.memory_bytes == 48 * 2**30
    assert chip.memory_bandwidth == 864e9
    assert chip.peak_flops == {"fp32": 59.8e12, "bf16": 119.5e12, "fp16": 119.5e12}
    assert chip.power_watts == 275.0
    assert "spec.chip of AcceleratorPool l30" in chip.provenance["memory_bandwidth"]
    assert pool.intra_link == CATALOG.links[LinkKind.PCIE], "the slowest, where the pool does not say"
    assert pool.price.on_demand is None


def test_an_unknown_chip_without_figures_says_where_to_write_them() -> None:
    kind, message = refused(built(l30=spec("L30-48GB")), "l30")
    assert kind is ProblemKind.UNKNOWN_ACCELERATOR
    assert message.startswith("spec.accelerator: unknown accelerator 'L30-48GB'")
    assert message.endswith("or say in spec.chip what its chips can do, at least their memory")


def test_figures_of_the_catalog_are_replaced_one_by_one_and_in_all_pools_of_the_chip() -> None:
    ours = {"memoryGigabytesPerSecond": "280", "teraflops": {"bf16": "100"}}
    found = built(l4=spec("L4-24GB", ours), other=spec("L4-24GB", nodeSelector={"pool": "other"}))
    sheet, chip = CATALOG.get("L4-24GB"), found.pools["l4"].accelerator
    assert found.pools["other"].accelerator is chip
    assert chip.memory_bandwidth == 280e9 and chip.peak_flops == {**sheet.peak_flops, "bf16": 100e12}
    assert (chip.memory_bytes, chip.power_watts, chip.arch) == (sheet.memory_bytes, sheet.power_watts, sheet.arch)
    assert chip.figures is Figures.DECLARED
    assert chip.provenance["memory_bandwidth"] == "spec.chip of AcceleratorPool l4"
    assert chip.provenance["memory_bytes"] == sheet.provenance["memory_bytes"]
    assert not found.problems or all("price" in problem.message for problem in found.problems)


def test_two_pools_can_not_replace_a_figure_differently() -> None:
    found = built(
        one=spec("L4-24GB", {"watts": "60"}), two=spec("L4-24GB", {"watts": "72"}, nodeSelector={"pool": "two"})
    )
    assert refused(found, "two") == (
        ProblemKind.CHIP_CONTRADICTORY,
        "spec.chip: pool one declares other figures for L4-24GB; make them equal",
    )


def test_pools_of_one_accelerator_say_the_same() -> None:
    same = built(one=spec("L30-48GB", L30), two=spec("L30-48GB", L30, nodeSelector={"pool": "two"}))
    assert same.pools["one"].accelerator is same.pools["two"].accelerator
    other = {**L30, "memory": "24Gi"}
    kind, message = refused(
        built(one=spec("L30-48GB", L30), two=spec("L30-48GB", other, nodeSelector={"pool": "two"})), "two"
    )
    assert kind is ProblemKind.CHIP_CONTRADICTORY
    assert message == "spec.chip: pool one declares other figures for L30-48GB; make them equal"


def test_the_vendor_is_whose_resource_it_is() -> None:
    assert (
        built(mig=spec("L30-1g", L30, resourceName="nvidia.com/mig-1g.6gb")).pools["mig"].accelerator.vendor is NVIDIA
    )
    kind, message = refused(built(new=spec("Z1", L30, resourceName="example.com/chip")), "new")
    assert kind is ProblemKind.CHIP_CONTRADICTORY
    assert message.startswith("spec.resourceName: example.com/chip is no resource of a known vendor; use one of ")


def test_no_rate_is_no_chip() -> None:
    _, message = refused(built(l30=spec("L30-48GB", {**L30, "teraflops": {}})), "l30")
    assert message.startswith("spec.chip.teraflops: no rate is named")


def predicted(pool: Pool) -> Estimate:
    here = built(a100=spec("A100-SXM4-80GB", price={"perChipHour": "3"})).pools["a100"]
    result = predict(profile(1, 1000.0, chip_busy=0.99), at(here, 1), at(pool, 1), batch=Batch.PER_CHIP)
    assert isinstance(result, Estimate), result
    return result


def test_what_nothing_confirms_is_predicted_with_more_doubt() -> None:
    """The same figures as those of the A10, whose published throughput the model knows."""
    a10 = {
        "memory": "24e9",
        "memoryGigabytesPerSecond": "600",
        "teraflops": {"fp32": "31.2", "tf32": "62.5", "bf16": "125", "fp16": "125", "int8": "250"},
    }
    known = predicted(built(a10=spec("A10-24GB")).pools["a10"])
    declared = predicted(built(new=spec("B10", a10)).pools["new"])
    assert declared.sd > known.sd


# --- what nobody declares --------------------------------------------------------------------------------------------

MEMORY = {"memory": "48Gi"}


def test_what_is_not_declared_is_estimated_from_memory_and_price() -> None:
    cheap, dear, unpriced = (
        built(new=spec("X1", MEMORY, **fields)).pools["new"].accelerator
        for fields in ({"price": {"perChipHour": "0.50"}}, {"price": {"perChipHour": "5"}}, {})
    )
    for chip in (cheap, dear, unpriced):
        assert chip.figures is Figures.ESTIMATED and set(chip.doubts) == {"peak_flops", "memory_bandwidth"}
        assert set(chip.peak_flops) == {"fp32", "fp16", "bf16"}
    assert cheap.memory_bandwidth < dear.memory_bandwidth
    assert cheap.peak_flops["bf16"] < dear.peak_flops["bf16"]
    assert dear.provenance["peak_flops"] == "estimated from 48 GiB of memory and $5 a chip-hour"
    assert unpriced.provenance["memory_bandwidth"] == "estimated from 48 GiB of memory"
    assert max(unpriced.doubts.values()) > max(dear.doubts.values()), "the price tells something"


def test_a_figure_that_is_declared_is_not_estimated() -> None:
    chip = built(new=spec("X1", {**MEMORY, "memoryGigabytesPerSecond": "864"})).pools["new"].accelerator
    assert chip.memory_bandwidth == 864e9 and set(chip.doubts) == {"peak_flops"}
    chip = built(new=spec("X1", {**MEMORY, "teraflops": {"bf16": "119.5"}})).pools["new"].accelerator
    assert chip.peak_flops == {"bf16": 119.5e12} and set(chip.doubts) == {"memory_bandwidth"}


def test_without_memory_there_is_nothing_to_estimate_from() -> None:
    kind, message = refused(built(new=spec("X1", {"watts": "300"}, price={"perChipHour": "2"})), "new")
    assert kind is ProblemKind.CHIP_CONTRADICTORY
    assert message == "spec.chip.memory: the catalog lacks X1; write how much memory a chip has, such as 48Gi"


def test_an_estimated_chip_is_predicted_with_much_more_doubt() -> None:
    estimated = built(new=spec("X1", MEMORY, price={"perChipHour": "2"})).pools["new"]
    figures = {
        **MEMORY,
        "memoryGigabytesPerSecond": f"{estimated.accelerator.memory_bandwidth / 1e9:.3f}",
        "teraflops": {dtype: f"{rate / 1e12:.3f}" for dtype, rate in estimated.accelerator.peak_flops.items()},
    }
    declared = predicted(built(new=spec("X1", figures)).pools["new"])
    guessed = predicted(estimated)
    assert guessed.median == pytest.approx(declared.median, rel=1e-3)
    assert guessed.sd > declared.sd + 0.1


AMOUNT = st.floats(1e-3, 1e6).map(lambda value: f"{value:.6f}")
RATES = st.dictionaries(st.sampled_from(["fp32", "tf32", "bf16", "fp16", "fp8", "int8"]), AMOUNT, min_size=1)


@given(memory=st.integers(1, 2**50), bandwidth=AMOUNT, teraflops=RATES)
def test_whatever_is_declared_is_predicted_or_kept_away(memory: int, bandwidth: str, teraflops: dict[str, str]) -> None:
    chip = {"memory": str(memory), "memoryGigabytesPerSecond": bandwidth, "teraflops": teraflops}
    found = built(new=spec("New-1", chip)).pools["new"]
    here = built(a100=spec("A100-SXM4-80GB", price={"perChipHour": "3"})).pools["a100"]
    result = predict(profile(1, 1000.0), at(here, 1), at(found, 1), batch=Batch.PER_CHIP)
    if isinstance(result, Estimate):
        assert 0.0 < result.low <= result.median <= result.high < float("inf")


@pytest.mark.parametrize("key", sorted(CATALOG.accelerators))
def test_each_row_of_the_catalog_says_how_sure_it_is(key: str) -> None:
    chip = CATALOG.get(key)
    assert chip.declared is None and chip.figures in (Figures.VERIFIED, Figures.UNVERIFIED)
    assert chip.provenance["peak_flops"]


PRICES = st.one_of(st.none(), st.floats(0.0, 1e9).map(lambda value: f"{value:.6f}"))


@given(memory=st.integers(1, 2**62), price=PRICES, bandwidth=st.one_of(st.none(), AMOUNT))
def test_whatever_is_estimated_is_finite_and_positive(memory: int, price: str | None, bandwidth: str | None) -> None:
    chip = {"memory": str(memory), **({} if bandwidth is None else {"memoryGigabytesPerSecond": bandwidth})}
    pool = built(new=spec("X1", chip, price=None if price is None else {"perChipHour": price})).pools["new"]
    rates = [
        *pool.accelerator.peak_flops.values(),
        pool.accelerator.memory_bandwidth,
        *pool.accelerator.doubts.values(),
    ]
    assert all(0.0 < rate < float("inf") for rate in rates)
    result = predicted(pool)
    assert 0.0 < result.low <= result.median <= result.high < float("inf")
    assert result.high / result.low > 1.5


FASTER = st.floats(1.0, 100.0)


@given(
    bandwidth=st.floats(10.0, 1e4),
    flops=st.dictionaries(st.sampled_from(["fp32", "tf32", "bf16", "fp16"]), st.floats(1.0, 1e4), min_size=1),
    factors=st.tuples(FASTER, FASTER),
    counters=st.sampled_from([{}, {"compute_active": 0.9, "memory_bandwidth": 0.2}, {"memory_bandwidth": 0.7}]),
    precision=st.sampled_from([None, "bf16", "fp32"]),
)
def test_more_bandwidth_or_arithmetic_never_predicts_less(
    bandwidth: float,
    flops: dict[str, float],
    factors: tuple[float, float],
    counters: dict[str, float],
    precision: str | None,
) -> None:
    here = built(a100=spec("A100-SXM4-80GB", price={"perChipHour": "3"})).pools["a100"]
    medians = []
    for arithmetic, memory in ((1.0, 1.0), factors):
        chip = {
            **MEMORY,
            "memoryGigabytesPerSecond": f"{bandwidth * memory:.9f}",
            "teraflops": {dtype: f"{rate * arithmetic:.9f}" for dtype, rate in flops.items()},
        }
        pool = built(new=spec("X1", chip)).pools["new"]
        made = replace(profile(1, 1000.0, chip_busy=0.95, **counters), traits=ModelTraits(precision=precision))
        result = predict(made, at(here, 1), at(pool, 1), batch=Batch.PER_CHIP)
        medians.append(result.median if isinstance(result, Estimate) else None)
    slower, faster = medians
    assert (slower is None) == (faster is None)
    assert slower is None or faster is None or faster >= slower * (1.0 - 1e-6)
