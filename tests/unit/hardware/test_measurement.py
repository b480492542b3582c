"""What the benchmark prints is read, and believed only where it can be true."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.conditions import Reason
from rightpool.api.pool import Calibration
from rightpool.hardware.accelerator import Declaration, FigureSource
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.measurement import Measurement, MeasurementError, calibration, judged, read_measurement

CATALOG = load_catalog()
H100 = CATALOG.get("H100-SXM5-80GB")
CPU = CATALOG.get("CPU")
NOW = 1_795_000_000.0


def rate(median: Any, best: Any = None) -> dict[str, Any]:
    return {"median": median, "best": median if best is None else best, "size": 8192}


def results(**changes: Any) -> dict[str, Any]:
    """What a healthy node of eight prints."""
    flops = {"fp32": rate(51e12), "tf32": rate(390e12), "bf16": rate(712e12, 720e12), "fp16": rate(690e12)}
    sums = [{"chips": chips, **rate(speed)} for chips, speed in ((2, 290e9), (4, 340e9), (8, 372e9))]
    return {
        "rightpoolBenchmark": 1,
        "platform": "gpu",
        "chips": 8,
        "device": "NVIDIA H100 80GB HBM3",
        "memoryBytes": 85_017_493_504,
        "software": "PyTorch 2.7.1, CUDA 12.6",
        "flops": flops,
        "copy": rate(2990e9),
        "allReduce": sums,
        "errors": {},
        **changes,
    }


def read(**changes: Any) -> Measurement:
    return read_measurement(json.dumps(results(**changes)))


def verdict(**changes: Any) -> tuple[Reason, str]:
    return judged(read(**changes), H100, 8, CATALOG)


def test_the_line_is_found_among_others() -> None:
    log = f'a warning\n{{"other": 1}}\n{json.dumps(results())}\nbye\n[1, 2]\n'
    found = read_measurement(log)
    assert found.device == "NVIDIA H100 80GB HBM3"
    assert found.flops["bf16"].median == 712e12 and found.flops["bf16"].best == 720e12
    assert found.copy is not None and found.copy.median == 2990e9
    assert list(found.all_reduce) == [2, 4, 8]


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("", "its last line: none"),
        ("ImportError: no\nbenchmark: PyTorch sees no GPU", "its last line: benchmark: PyTorch sees no GPU"),
        ('{"rightpoolBenchmark": 2}', "version 2, and not 1"),
        ('{"rightpoolBenchmark": 1}', "can't be read (KeyError"),
        (json.dumps(results(flops=[1])), "can't be read (AttributeError"),
        (json.dumps(results(chips=math.inf)), "can't be read (OverflowError"),
        (json.dumps(results(copy={"median": "fast", "best": 1})), "can't be read (ValueError"),
    ],
)
def test_a_log_without_results_says_what_it_holds(log: str, message: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        read_measurement(log)
    assert message in str(caught.value)


def test_what_is_plausible_is_measured() -> None:
    reason, message = verdict()
    assert reason is Reason.MEASURED
    assert "712 TFLOP/s in bf16 (72% of its data sheet)" in message
    assert "copies at 2990 GB/s (89% of its data sheet)" in message
    assert "all-reduces of 8 chips at 372 GB/s" in message


def test_what_could_not_be_measured_is_named() -> None:
    flops = {dtype: value for dtype, value in results()["flops"].items() if dtype != "fp16"}
    reason, message = verdict(flops=flops, errors={"fp16": "RuntimeError: no kernel"})
    assert reason is Reason.MEASURED
    assert message.endswith("; not measured: fp16")


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, math.inf, 1e300, 1e-9])
def test_no_rate_is_invalid(wrong: float) -> None:
    for changes in (
        {"copy": rate(wrong)},
        {"flops": {"bf16": rate(wrong)}},
        {"allReduce": [{"chips": 8, **rate(wrong)}]},
    ):
        reason, message = verdict(**changes)
        assert reason is Reason.MEASUREMENT_INVALID, changes
        assert "which is none" in message


def test_nothing_measured_is_invalid_and_says_why() -> None:
    reason, message = verdict(flops={}, copy=None, errors={"bf16": "RuntimeError: no kernel image"})
    assert reason is Reason.MEASUREMENT_INVALID
    assert message == "nothing was measured (bf16: RuntimeError: no kernel image)"


def test_above_the_peak() -> None:
    assert verdict(flops={"bf16": rate(989.4e12 * 1.04)})[0] is Reason.MEASURED
    reason, message = verdict(flops={"bf16": rate(989.4e12 * 1.06)})
    assert reason is Reason.ABOVE_PEAK
    assert message == "bf16 at 1049 TFLOP/s is above the 989 that the catalog has as its peak"
    reason, message = verdict(copy=rate(4000e9))
    assert reason is Reason.ABOVE_PEAK and "a copy at 4000 GB/s" in message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"platform": "cpu"}, "it ran on cpu, and H100-SXM5-80GB is gpu"),
        ({"chips": 4}, "it ran on 4 of 8 chips"),
        ({"device": "NVIDIA A10G", "memoryBytes": None}, "the pod saw NVIDIA A10G, which is A10G-24GB"),
        ({"device": "AMD Instinct MI300X", "memoryBytes": None}, "AMD Instinct MI300X, which is MI300X-192GB"),
        ({"device": "NVIDIA H100 MIG 1g.10gb", "memoryBytes": 10e9}, "with 10 GB of memory"),
        ({"memoryBytes": math.nan}, "with nan GB of memory"),
        ({"allReduce": [{"chips": 16, **rate(1e9)}]}, "all-reduces of 16 chips were measured on 8"),
        ({"allReduce": [{"chips": 8, **rate(3100e9)}]}, "8 chips add up at 3100 GB/s, faster than one copies"),
        ({"flops": {"bf16": rate(300e12, 720e12)}}, "bf16 varies: its median is 42% of its best"),
        ({"flops": {"bf16": rate(30e12), "fp32": rate(50e12)}}, "bf16 reaches 3% of its peak and fp32 75%"),
    ],
)
def test_what_contradicts_itself_or_the_pool(changes: dict[str, Any], message: str) -> None:
    reason, text = verdict(**changes)
    assert reason is Reason.MEASUREMENT_CONTRADICTORY
    assert message in text


def test_an_estimate_contradicts_nothing() -> None:
    guess = replace(H100, key="X1", peak_flops={"bf16": 1e12}, memory_bandwidth=1e9, doubts={"peak_flops": 0.6})
    reason, message = judged(read(), replace(guess, doubts={"peak_flops": 0.6, "memory_bandwidth": 0.3}), 8, CATALOG)
    assert reason is Reason.MEASURED and "of its data sheet" not in message
    reason, message = judged(read(), guess, 8, CATALOG)
    assert reason is Reason.ABOVE_PEAK and "a copy at" in message, "what somebody has named is held against it"


def test_a_replaced_figure_is_the_peak_and_names_who_says_so() -> None:
    by = Declaration(FigureSource.POOL, "spec.chip of AcceleratorPool p")
    slower = replace(H100, peak_flops={**H100.peak_flops, "bf16": 500e12}, declared=by)
    reason, message = judged(read(), slower, 8, CATALOG)
    assert reason is Reason.ABOVE_PEAK and "that spec.chip of AcceleratorPool p has as its peak" in message
    other, message = judged(read(device="NVIDIA L4", memoryBytes=85e9), replace(H100, declared=by), 8, CATALOG)
    assert other is Reason.MEASUREMENT_CONTRADICTORY and "which is L4-24GB" in message, "the name is the catalog's"


def test_nothing_contradicts_a_made_up_chip() -> None:
    changes = {"platform": "cpu", "chips": 1, "device": "AMD EPYC", "memoryBytes": None, "allReduce": []}
    found = read(**changes, flops={"fp32": rate(70e9), "bf16": rate(1e9)}, copy=rate(18e9))
    reason, message = judged(found, CPU, 1, CATALOG)
    assert reason is Reason.MEASURED
    assert message == "AMD EPYC: 0.07 TFLOP/s in fp32, 0.001 TFLOP/s in bf16, copies at 18 GB/s"


def test_every_chip_that_node_labels_name_is_known_by_its_own_name() -> None:
    """The driver's name with hyphens is what feature discovery writes; else a chip would contradict itself."""
    for row in CATALOG.labels["nvidia.com/gpu.product"]:
        if "*" in row.value:
            continue
        chip = CATALOG.get(row.accelerator)
        found = read(device=row.value.replace("-", " "), memoryBytes=chip.memory_bytes, flops={}, chips=1, allReduce=[])
        rates = {"copy": rate(chip.memory_bandwidth * 0.9)}
        found = read(
            device=row.value.replace("-", " "), memoryBytes=chip.memory_bytes, flops={}, chips=1, allReduce=[], **rates
        )
        assert judged(found, chip, 1, CATALOG)[0] is Reason.MEASURED, row.value


NUMBERS = st.floats() | st.integers() | st.booleans() | st.none() | st.text(max_size=5)
JSON = st.recursive(NUMBERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner))
RATE = st.fixed_dictionaries({"median": NUMBERS, "best": NUMBERS}) | JSON
RESULTS = st.fixed_dictionaries(
    {},
    optional={
        "platform": st.sampled_from(["gpu", "cpu"]) | JSON,
        "chips": NUMBERS,
        "device": JSON,
        "memoryBytes": NUMBERS,
        "software": JSON,
        "flops": st.dictionaries(st.sampled_from(["bf16", "fp32", "int4"]), RATE) | JSON,
        "copy": RATE,
        "allReduce": st.lists(st.fixed_dictionaries({"chips": NUMBERS, "median": NUMBERS, "best": NUMBERS})) | JSON,
        "errors": st.dictionaries(st.text(), st.text()) | JSON,
    },
)


@given(RESULTS)
def test_whatever_a_pod_prints_ends_in_a_typed_reason(changes: dict[str, Any]) -> None:
    """What is stored can always be read again, and what is used is finite and below the peak."""
    try:
        found = read_measurement(json.dumps(results(**changes)))
    except MeasurementError as error:
        assert len(str(error)) < 400
        return
    reason = judged(found, H100, 8, CATALOG)
    made = calibration(found, H100, reason, node="node-1", now=NOW)
    assert Calibration.model_validate(made.to_dict()) == made
    if made.reason is Reason.MEASURED:
        for dtype, figure in made.teraflops or ():
            if figure is not None and dtype in H100.peak_flops:
                assert 0 < float(figure) * 1e12 <= 1.06 * H100.peak_flops[dtype]


def test_what_is_stored_of_a_refused_measurement() -> None:
    """The rates that are none are left out, and the rest may be looked at."""
    found = read(flops={"bf16": rate(math.nan), "fp32": rate(51e12)}, copy=rate(0))
    made = calibration(found, H100, judged(found, H100, 8, CATALOG), node="node-1", now=NOW)
    body = made.to_dict()
    assert body["reason"] == "MeasurementInvalid"
    assert body["teraflops"] == {"fp32": "51"}
    assert "memoryGigabytesPerSecond" not in body
    assert body["allReduce"][0] == {"chips": 2, "gigabytesPerSecond": "290"}
    assert body["measuredAt"].startswith("2026-11-")
