"""What was measured in a pool stands before the catalog and spec.chip, as long as it is of the pool's chip."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.choices import Batch
from rightpool.api.conditions import Reason
from rightpool.api.estimate import Estimate
from rightpool.api.pool import AcceleratorPoolSpec, Calibration
from rightpool.hardware.accelerator import Figures
from rightpool.hardware.calibration import USUAL_BANDWIDTH, USUAL_FLOPS, agreement
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.inventory import build_pools
from rightpool.hardware.node import NodeFacts
from rightpool.hardware.pool import Pool
from tests.unit.prediction.fixtures import at, predict, profile

CATALOG = load_catalog()
KEY = "A100-SXM4-80GB"
SHEET = CATALOG.get(KEY)


def measured(**changes: Any) -> Calibration:
    values: dict[str, Any] = {
        "accelerator": KEY,
        "measured_at": "2026-11-22T21:00:00Z",
        "reason": Reason.MEASURED,
        "message": "NVIDIA A100-SXM4-80GB: 260 TFLOP/s in bf16",
        "device": "NVIDIA A100-SXM4-80GB",
        "software": "PyTorch 2.7.1, CUDA 12.6",
        "node": "node-1",
        "chips": 8,
        "teraflops": {"bf16": "260", "fp16": "250"},
        "memory_gigabytes_per_second": "1800",
        "all_reduce": [{"chips": 2, "gigabytesPerSecond": "172"}, {"chips": 8, "gigabytesPerSecond": "205"}],
    }
    return Calibration.model_validate(values | changes)


def pool(calibration: Calibration | None = None, name: str = "p", key: str = KEY, **fields: Any) -> Pool:
    body = {"accelerator": key, "chipsPerNode": 8, "resourceName": "nvidia.com/gpu", "nodeSelector": {"p": name}}
    spec = AcceleratorPoolSpec.model_validate({**body, "price": {"perChipHour": "2"}, **fields})
    nodes = [NodeFacts(f"node-{name}", {"p": name}, chips={"nvidia.com/gpu": 8})]
    kept = {} if calibration is None else {name: calibration}
    return build_pools({name: spec}, nodes, {}, CATALOG, calibrations=kept).pools[name]


def test_measured_rates_stand_before_the_catalog() -> None:
    chip = pool(measured()).accelerator
    assert chip.peak_flops["bf16"] == pytest.approx(260e12 / USUAL_FLOPS)
    assert chip.memory_bandwidth == pytest.approx(1800e9 / USUAL_BANDWIDTH)
    assert chip.peak_flops["int8"] == SHEET.peak_flops["int8"], "what was not measured is as before"
    assert chip.measured is not None
    assert chip.measured.flops == {"bf16": 260e12, "fp16": 250e12} and chip.measured.memory_bandwidth == 1800e9
    assert chip.provenance["peak_flops"].startswith("measured 2026-11-22: NVIDIA A100")
    assert (chip.key, chip.memory_bytes, chip.power_watts) == (SHEET.key, SHEET.memory_bytes, SHEET.power_watts)


def test_measured_rates_stand_before_spec_chip() -> None:
    chip = {"memory": "48Gi", "memoryGigabytesPerSecond": "864", "teraflops": {"bf16": "119.5"}}
    found = pool(measured(accelerator="L30-48GB", teraflops={"bf16": "100"}), key="L30-48GB", chip=chip).accelerator
    assert found.declared is not None and found.measured is not None and found.figures is Figures.MEASURED
    assert found.peak_flops == {"bf16": pytest.approx(100e12 / USUAL_FLOPS)}


def test_a_measurement_ends_the_doubt_about_what_was_estimated() -> None:
    chip, key = {"memory": "48Gi"}, "X1"
    before = pool(key=key, chip=chip).accelerator
    assert before.figures is Figures.ESTIMATED
    status, reason, message = agreement("p", None, key, before)
    assert (status, reason) == ("False", Reason.POOL_UNCALIBRATED)
    assert message == (
        "the rates and memory bandwidth of X1 are estimated from 48 GiB of memory and $2 a chip-hour: run `rightpool "
        "calibrate p`, or write them in spec.chip"
    )
    rates = {"teraflops": {"bf16": "900", "fp32": "60"}, "memory_gigabytes_per_second": "3000"}
    after = pool(measured(accelerator=key, **rates), key=key, chip=chip).accelerator
    assert after.figures is Figures.MEASURED and not after.doubts
    assert after.peak_flops["bf16"] == pytest.approx(900e12 / USUAL_FLOPS)
    copied = pool(measured(accelerator=key, teraflops=None), key=key, chip=chip).accelerator
    assert copied.figures is Figures.ESTIMATED and set(copied.doubts) == {"peak_flops"}, "the rest is still a guess"
    assert agreement("p", measured(accelerator=key), key, after)[:2] == ("True", Reason.MEASURED)


def test_an_arithmetic_that_a_chip_emulates_is_not_added() -> None:
    v100 = "V100-SXM2-16GB"
    found = pool(measured(accelerator=v100, teraflops={"bf16": "9", "fp16": "95"}), key=v100).accelerator
    assert "bf16" not in found.peak_flops, "jobs in bf16 stay away"
    assert found.peak_flops["fp16"] == pytest.approx(95e12 / USUAL_FLOPS)


def test_links_are_those_of_a_whole_node() -> None:
    assert pool(measured()).intra_link.bytes_per_second == 205e9
    assert pool(measured()).intra_link.kind is SHEET.intra_link.kind
    pair = measured(all_reduce=[{"chips": 2, "gigabytesPerSecond": "172"}])
    assert pool(pair).intra_link == SHEET.intra_link, "two chips say nothing of eight"
    declared = {"intraNode": {"kind": "NVLink", "gigabytesPerSecond": "150"}}
    assert pool(measured(), interconnect=declared).intra_link.bytes_per_second == 205e9
    assert pool(pair, interconnect=declared).intra_link.bytes_per_second == 150e9


@pytest.mark.parametrize(
    "void",
    [
        {"accelerator": "A100-SXM4-40GB"},
        {"reason": Reason.ABOVE_PEAK},
        {"reason": Reason.MEASUREMENT_INVALID},
        {"reason": Reason.MEASUREMENT_CONTRADICTORY},
    ],
)
def test_what_is_void_or_refused_is_not_used(void: dict[str, Any]) -> None:
    assert pool(measured(**void)) == pool()


def test_the_verdict_of_the_condition() -> None:
    assert agreement("p", None, KEY)[:2] == ("Unknown", Reason.NOT_MEASURED)
    assert agreement("p", measured(), KEY) == ("True", Reason.MEASURED, measured().message)
    refused = measured(reason=Reason.ABOVE_PEAK, message="too much")
    assert agreement("p", refused, KEY) == ("False", Reason.ABOVE_PEAK, "too much")
    status, reason, message = agreement("p", measured(), "H100-SXM5-80GB")
    assert (status, reason) == ("False", Reason.CALIBRATION_VOID)
    assert message == (f"{KEY} was measured, and spec.accelerator is H100-SXM5-80GB: run `rightpool calibrate p` again")


RATES = st.decimals("1", "300", places=1)


@given(bf16=RATES | st.none(), fp32=RATES | st.none(), bandwidth=RATES | st.none())
def test_each_rate_is_measured_or_of_the_catalog(
    bf16: Decimal | None, fp32: Decimal | None, bandwidth: Decimal | None
) -> None:
    flops = {name: str(rate) for name, rate in (("bf16", bf16), ("fp32", fp32)) if rate is not None}
    found = pool(
        measured(teraflops=flops or None, memory_gigabytes_per_second=None if bandwidth is None else str(bandwidth))
    ).accelerator
    assert found.peak_flops.keys() == SHEET.peak_flops.keys()
    for dtype, rate in found.peak_flops.items():
        known = flops.get(dtype)
        expected = SHEET.peak_flops[dtype] if known is None else float(known) * 1e12 / USUAL_FLOPS
        assert rate == pytest.approx(expected)
    expected = SHEET.memory_bandwidth if bandwidth is None else float(bandwidth) * 1e9 / USUAL_BANDWIDTH
    assert found.memory_bandwidth == pytest.approx(expected)


def rate_there(target: Pool) -> float:
    """Predicted throughput of a job that runs on an H100."""
    here = pool(name="here", key="H100-SXM5-80GB")
    found = predict(profile(1, 1000.0, chip_busy=0.99), at(here, 1), at(target, 1), batch=Batch.PER_CHIP)
    assert isinstance(found, Estimate), found
    return found.median


def test_a_usual_chip_is_predicted_as_without_a_measurement() -> None:
    """Else every pool that is measured would look slower than those that are not."""
    usual = measured(
        teraflops={
            dtype: f"{rate * USUAL_FLOPS / 1e12:.4f}"
            for dtype, rate in SHEET.peak_flops.items()
            if dtype in ("fp32", "tf32", "bf16", "fp16")
        },
        memory_gigabytes_per_second=f"{SHEET.memory_bandwidth * USUAL_BANDWIDTH / 1e9:.4f}",
    )
    assert rate_there(pool(usual)) == pytest.approx(rate_there(pool()), rel=1e-3)


def test_a_slower_chip_is_predicted_slower() -> None:
    slow = measured(teraflops={"tf32": "60", "bf16": "120", "fp16": "120"}, memory_gigabytes_per_second="900")
    assert rate_there(pool(slow)) < 0.8 * rate_there(pool())
