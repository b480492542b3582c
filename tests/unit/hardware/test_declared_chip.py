"""Accelerators that the catalog lacks: what a pool says of its chips holds, and nothing contradicts it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.choices import Batch
from rightpool.api.estimate import Estimate
from rightpool.api.pool import AcceleratorPoolSpec, LinkKind
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.inventory import Inventory, ProblemKind, build_pools
from rightpool.hardware.node import NodeFacts
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.nvidia import NVIDIA
from tests.unit.prediction.fixtures import at, predict, profile

CATALOG = load_catalog()
L20 = {
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
    (problem,) = (problem for problem in found.problems if problem.left_out)
    assert problem.pool == pool
    return problem.kind, problem.message


def test_a_chip_that_the_catalog_lacks() -> None:
    pool = built(l20=spec("L20-48GB", L20)).pools["l20"]
    chip = pool.accelerator
    assert chip.declared and not chip.verified
    assert chip.key == "L20-48GB" and chip.vendor is NVIDIA
    assert chip.memory_bytes == 48 * 2**30
    assert chip.memory_bandwidth == 864e9
    assert chip.peak_flops == {"fp32": 59.8e12, "bf16": 119.5e12, "fp16": 119.5e12}
    assert chip.power_watts == 275.0
    assert "spec.chip of AcceleratorPool l20" in chip.provenance["memory_bandwidth"]
    assert pool.intra_link == CATALOG.links[LinkKind.PCIE], "the slowest, where the pool does not say"
    assert pool.price.on_demand is None


def test_an_unknown_chip_without_figures_says_where_to_write_them() -> None:
    kind, message = refused(built(l20=spec("L20-48GB")), "l20")
    assert kind is ProblemKind.UNKNOWN_ACCELERATOR
    assert message.startswith("spec.accelerator: unknown accelerator 'L20-48GB'")
    assert message.endswith("or say in spec.chip what its chips can do")


def test_figures_of_the_catalog_are_not_replaced() -> None:
    kind, message = refused(built(l4=spec("L4-24GB", L20)), "l4")
    assert kind is ProblemKind.CHIP_CONTRADICTORY
    assert message.startswith("spec.chip: the catalog has L4-24GB")


def test_pools_of_one_accelerator_say_the_same() -> None:
    same = built(one=spec("L20-48GB", L20), two=spec("L20-48GB", L20, nodeSelector={"pool": "two"}))
    assert same.pools["one"].accelerator is same.pools["two"].accelerator
    other = {**L20, "memory": "24Gi"}
    kind, message = refused(
        built(one=spec("L20-48GB", L20), two=spec("L20-48GB", other, nodeSelector={"pool": "two"})), "two"
    )
    assert kind is ProblemKind.CHIP_CONTRADICTORY
    assert message == "spec.chip: pool one declares other figures for L20-48GB; make them equal"


def test_the_vendor_is_whose_resource_it_is() -> None:
    assert (
        built(mig=spec("L20-1g", L20, resourceName="nvidia.com/mig-1g.6gb")).pools["mig"].accelerator.vendor is NVIDIA
    )
    kind, message = refused(built(new=spec("Z1", L20, resourceName="example.com/chip")), "new")
    assert kind is ProblemKind.CHIP_CONTRADICTORY
    assert message.startswith("spec.resourceName: example.com/chip is no resource of a known vendor; use one of ")


def test_no_rate_is_no_chip() -> None:
    _, message = refused(built(l20=spec("L20-48GB", {**L20, "teraflops": {}})), "l20")
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
    assert not chip.declared
    assert chip.provenance["peak_flops"]
