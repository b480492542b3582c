"""Programs that were judged wrongly on real chips, by their counters, and what is true of them.

Numbers are of H200s: those that were recorded, and where a counter was not, what the same kind of program gave in
`data/counters` (a waiting rank's NCCL kernels keep about a sixth of the compute units active).
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.pool import LinkKind
from rightpool.api.traits import ModelTraits
from rightpool.hardware.accelerator import Link
from rightpool.hardware.catalog import load_catalog
from rightpool.profiles.bottleneck import Bottleneck, Diagnosis
from rightpool.profiles.diagnosis import diagnose
from rightpool.profiles.health import NOT_THROTTLED, throttling
from rightpool.profiles.profile import Profile, Reading, Steadiness, build_profile
from rightpool.profiles.sample import Field, Quality, Sample
from rightpool.profiles.window import Window
from tests.unit.profiles.windows import KEY, profile

H200 = load_catalog().get("H200-SXM-141GB")
PCIE = Link(LinkKind.PCIE, 25e9)
TRUTH: list[tuple[str, int, dict[str, float], set[Bottleneck]]] = [
    (
        "a GPT in fp32, without counters of pipes",
        1,
        {"chip_busy": 1.0, "compute_active": 0.95, "matrix_active": 0.02, "memory_bandwidth": 0.09},
        {Bottleneck.COMPUTE},
    ),
    (
        "a GPT in fp32, with them",
        1,
        {"chip_busy": 1.0, "compute_active": 0.95, "matrix_active": 0.02, "memory_bandwidth": 0.09, "fp32_active": 0.6},
        {Bottleneck.COMPUTE},
    ),
    (
        "one rank with three times the work, at a power cap of 536 W",
        2,
        {"chip_busy": 1.0, "slowest_chip_busy": 1.0, "compute_active": 0.65, "most_compute_active": 0.9,
         "least_compute_active": 0.4, "matrix_active": 0.3, "memory_bandwidth": 0.2, "power": 536.0,
         "power_capped": 0.6, "throttle": 0.0},
        {Bottleneck.STRAGGLER},
    ),
    (
        "the same by a trace: the straggler never waits",
        2,
        {"chip_busy": 1.0, "compute_active": 0.65, "matrix_active": 0.3, "memory_bandwidth": 0.2,
         "exposed_communication": 0.32, "least_exposed": 0.01},
        {Bottleneck.STRAGGLER},
    ),
    (
        "one process on a pod with two chips, which keeps one of them busy",
        2,
        {"chip_busy": 0.49, "slowest_chip_busy": 0.0, "compute_active": 0.4, "most_compute_active": 0.8,
         "least_compute_active": 0.0, "matrix_active": 0.3, "memory_bandwidth": 0.2, "unused_chips": 1.0,
         "samples_per_second": 100.0},
        {Bottleneck.IDLE},
    ),
    (
        "two ranks starved by their loaders: one waits for data, the other in the all-reduce",
        2,
        {"chip_busy": 0.72, "slowest_chip_busy": 0.45, "compute_active": 0.25, "most_compute_active": 0.3,
         "least_compute_active": 0.2, "matrix_active": 0.1, "memory_bandwidth": 0.08, "input_wait": 0.6,
         "least_input_wait": 0.5},
        {Bottleneck.INPUT_BOUND},
    ),
    (
        "the same with a trace, in which waiting for the other rank looks like communication",
        2,
        {"chip_busy": 0.72, "slowest_chip_busy": 0.45, "compute_active": 0.25, "most_compute_active": 0.3,
         "least_compute_active": 0.2, "matrix_active": 0.1, "memory_bandwidth": 0.08, "input_wait": 0.6,
         "least_input_wait": 0.5, "exposed_communication": 0.3, "least_exposed": 0.05},
        {Bottleneck.INPUT_BOUND},
    ),
    (
        "one rank alone is starved",
        2,
        {"chip_busy": 0.8, "slowest_chip_busy": 0.4, "compute_active": 0.3, "input_wait": 0.35,
         "least_input_wait": 0.01, "matrix_active": 0.1, "memory_bandwidth": 0.08},
        {Bottleneck.STRAGGLER},
    ),
    (
        "FSDP with a tiny batch over NVLink, traced",
        2,
        {"chip_busy": 0.97, "slowest_chip_busy": 0.96, "compute_active": 0.15, "most_compute_active": 0.16,
         "least_compute_active": 0.14, "matrix_active": 0.02, "memory_bandwidth": 0.05,
         "exposed_communication": 0.18, "least_exposed": 0.17, "launch_gaps": 0.5},
        {Bottleneck.HOST_BOUND, Bottleneck.COMMUNICATION_BOUND},
    ),
    (
        "the same, not traced: what would tell is said",
        2,
        {"chip_busy": 0.97, "slowest_chip_busy": 0.96, "compute_active": 0.15, "most_compute_active": 0.16,
         "least_compute_active": 0.14, "matrix_active": 0.02, "memory_bandwidth": 0.05},
        {Bottleneck.UNKNOWN},
    ),
    (
        "a loader that takes 11 s a batch: no sample was counted within the window",
        1,
        {"chip_busy": 0.02, "compute_active": 0.01, "matrix_active": 0.0, "memory_bandwidth": 0.0,
         "input_wait": 0.98, "samples_per_second": 0.0},
        {Bottleneck.INPUT_BOUND},
    ),
    (
        "always busy, and far below every roof",
        1,
        {"chip_busy": 1.0, "compute_active": 0.35, "matrix_active": 0.03, "memory_bandwidth": 0.20},
        {Bottleneck.SMALL_KERNELS},
    ),
    (
        "far below every roof, and no counter of compute units",
        1,
        {"chip_busy": 1.0, "matrix_active": 0.03, "memory_bandwidth": 0.20},
        {Bottleneck.UNKNOWN},
    ),
    (
        "compute units of a full chip alternate between roofs (MobileNet at batch 256)",
        1,
        {"chip_busy": 1.0, "compute_active": 0.85, "matrix_active": 0.03, "memory_bandwidth": 0.32,
         "fp32_active": 0.05},
        {Bottleneck.MEMORY_BANDWIDTH},
    ),
    (
        "kernels that wait within a full chip",
        1,
        {"chip_busy": 1.0, "compute_active": 0.9, "matrix_active": 0.01, "memory_bandwidth": 0.05,
         "fp32_active": 0.08, "occupancy": 0.1},
        {Bottleneck.UNKNOWN},
    ),
    (
        "a simulation in fp64",
        1,
        {"chip_busy": 1.0, "compute_active": 0.95, "matrix_active": 0.0, "memory_bandwidth": 0.2, "fp64_active": 0.7},
        {Bottleneck.COMPUTE},
    ),
    (
        "tiny batches because memory is full",
        1,
        {"chip_busy": 0.6, "compute_active": 0.2, "matrix_active": 0.05, "memory_bandwidth": 0.1, "input_wait": 0.0,
         "memory_used": 138e9, "memory_total": 141e9},
        {Bottleneck.MEMORY_CAPACITY},
    ),
    (
        "full memory of a chip that works at its roof",
        1,
        {"chip_busy": 1.0, "compute_active": 0.95, "matrix_active": 0.6, "memory_bandwidth": 0.3,
         "memory_used": 138e9, "memory_total": 141e9},
        {Bottleneck.COMPUTE},
    ),
    ("a chip fell off the bus", 8, {"chip_busy": 0.9, "xid": 79.0}, {Bottleneck.UNHEALTHY}),
    ("a row could not be replaced", 1, {"chip_busy": 0.9, "xid": 0.0, "repair": 2.0}, {Bottleneck.UNHEALTHY}),
    ("a row waits for a reset", 1, {"chip_busy": 0.9, "repair": 1.0}, {Bottleneck.UNHEALTHY}),
]  # fmt: skip


@pytest.mark.parametrize(("chips", "fields", "truth"), [row[1:] for row in TRUTH], ids=[row[0] for row in TRUTH])
def test_the_class_is_true(chips: int, fields: dict[str, float], truth: set[Bottleneck]) -> None:
    diagnosis = diagnose(profile(chips, **fields), H200)
    assert diagnosis.bottleneck in truth, diagnosis
    assert diagnosis.finding.text() and diagnosis.finding.lever()


@pytest.mark.parametrize(("chips", "fields"), [row[1:3] for row in TRUTH], ids=[row[0] for row in TRUTH])
def test_a_true_class_is_kept(chips: int, fields: dict[str, float]) -> None:
    made = profile(chips, **fields)
    once = diagnose(made, H200).bottleneck
    assert diagnose(made, H200, before=once).bottleneck is once


def find(name: str) -> Diagnosis:
    chips, fields = next(row[1:3] for row in TRUTH if row[0] == name)
    return diagnose(profile(chips, **fields), H200)


def test_levers() -> None:
    assert "lower precision" in find("a GPT in fp32, without counters of pipes").finding.lever()
    fp32 = find("a GPT in fp32, with them")
    assert "lower precision" in fp32.finding.lever() and "FP32 units 75%" in fp32.finding.text()
    assert "trace" in find("the same, not traced: what would tell is said").finding.lever()
    assert "ncu" in find("kernels that wait within a full chip").finding.lever()
    assert "compute units" in find("far below every roof, and no counter of compute units").finding.lever()
    assert "storage" in find("one rank alone is starved").finding.lever()


def test_the_precision_is_said() -> None:
    fields = TRUTH[0][2]
    readings = profile(1, **fields).readings
    made = Profile(KEY, 1, Steadiness.STEADY, 300.0, 1.0, 1300.0, 1, 1, readings, ModelTraits(precision="fp32"))
    assert diagnose(made, H200).finding.text().endswith("; the program computes in fp32")


def test_exposed_communication_is_judged_by_what_the_link_can_do() -> None:
    fields = {"chip_busy": 0.99, "exposed_communication": 0.4, "compute_active": 0.5, "matrix_active": 0.2,
              "memory_bandwidth": 0.2}  # fmt: skip
    full = diagnose(profile(4, **fields, pcie_sent=16e9, peer_sent=0.0), replace(H200, intra_link=PCIE))
    assert full.bottleneck is Bottleneck.COMMUNICATION_BOUND
    assert full.finding.text().endswith("over PCIe on 4 chips; it carries 16.0 of 25 GB/s a chip")
    assert full.finding.lever() == "fewer chips, or a faster link"
    idle = diagnose(profile(4, **fields, pcie_sent=1e9), replace(H200, intra_link=PCIE))
    assert "bandwidth is not the limit" in idle.finding.lever()
    unused = diagnose(profile(4, **fields, pcie_sent=16e9, peer_sent=0.0), H200)
    assert "100% of the bytes go over PCIe" in unused.finding.text()
    assert "peer access" in unused.finding.lever()
    assert diagnose(profile(4, **fields), replace(H200, intra_link=PCIE)).finding.text() == (
        "40% of the step is exposed communication over PCIe on 4 chips"
    )


def test_unused_chips_are_told_by_how_many() -> None:
    found = diagnose(profile(4, chip_busy=0.25, unused_chips=3.0, samples_per_second=1.0), H200)
    assert found.finding.text() == "3 of 4 chips of a pod are unused: nothing ever ran there"
    assert "torchrun" in found.finding.lever()
    assert diagnose(profile(4, chip_busy=0.5, unused_chips=0.0), H200).bottleneck is not Bottleneck.IDLE


def growing(**fields: tuple[float, float]) -> Profile:
    """A profile of one chip whose readings go from one value to another within the window."""
    readings = {Field[name.upper()]: Reading(high, low, high, Quality.MEASURED) for name, (low, high) in fields.items()}
    return Profile(KEY, 1, Steadiness.STEADY, 300.0, 1.0, 1300.0, 1, 1, readings)


def test_errors_count_from_when_they_grow() -> None:
    work = {"chip_busy": (1.0, 1.0), "compute_active": (0.9, 0.9), "matrix_active": (0.6, 0.6)}
    assert diagnose(growing(**work, uncorrected_errors=(2, 2)), H200).bottleneck is Bottleneck.COMPUTE
    assert diagnose(growing(**work, uncorrected_errors=(2, 3)), H200).bottleneck is Bottleneck.UNHEALTHY
    assert diagnose(growing(**work, memory_retries=(7, 7)), H200).bottleneck is Bottleneck.COMPUTE
    short = diagnose(growing(**work, memory_retries=(7, 19)), H200)
    assert (short.bottleneck, short.finding.text()) == (
        Bottleneck.MEMORY_CAPACITY, "12 allocations failed at the first try"
    )  # fmt: skip


def samples(count: int, **fields: float) -> Window:
    window = Window()
    for number in range(count):
        window.append(Sample(1000.0 + number, {Field[name.upper()]: value for name, value in fields.items()}))
    return window


def built(window: Window, seconds: float = 14.0) -> Profile:
    return build_profile(KEY, 1, window, window=seconds, interval=1.0, expected_pods=1, now=window.newest or 0.0)


def test_a_program_that_compiles_is_warming_up() -> None:
    compiling = built(samples(20, steps=1.0, chip_busy=0.4, power=446.0, power_capped=0.5, samples_per_second=0.0))
    assert compiling.steadiness is Steadiness.WARMING_UP
    diagnosis = diagnose(compiling, H200)
    assert diagnosis.bottleneck is Bottleneck.UNKNOWN
    assert "has made 1 step and may still compile" in diagnosis.finding.text()


def test_steps_that_take_longer_than_the_window() -> None:
    """A step every 11 s, a window of 14 s: one reading has a step time, the others have none."""
    window = Window()
    for number in range(60):
        stepped = number % 11 == 0
        values = {Field.STEPS: 20.0 + number // 11, Field.CHIP_BUSY: 0.02, Field.INPUT_WAIT: 0.98}
        values[Field.SAMPLES_PER_SECOND] = 32.0 if stepped else 0.0
        if stepped:
            values[Field.STEP_SECONDS] = 11.0
        window.append(Sample(1000.0 + number, values))
    made = built(window)
    assert made.steadiness is Steadiness.STEADY
    assert diagnose(made, H200).bottleneck is Bottleneck.INPUT_BOUND


def test_a_healthy_chip_is_faster_than_a_throttled_one() -> None:
    assert math.exp(throttling(profile(1, throttle=1.0, clock=0.425)).log) == pytest.approx(2.0)
    for healthy in ({"throttle": 0.0, "clock": 0.425, "power_capped": 1.0}, {"throttle": 1.0, "clock": 0.9}, {}):
        assert throttling(profile(1, **healthy)) == NOT_THROTTLED, "a cap is no fault"
    brief = throttling(profile(1, throttle=0.25, clock=0.3))
    assert math.exp(brief.log) == pytest.approx(4 / 3), "three quarters of the time nothing held it down"
    unknown = throttling(profile(1, throttle=1.0))
    for garbage in (0.0, -1.0):
        assert throttling(profile(1, throttle=1.0, clock=garbage)) == unknown, "no chip has such a clock"
    assert math.exp(unknown.log) == pytest.approx(2**0.5) and unknown.sd == unknown.log, "hardly anything tells"


def test_a_chip_that_is_held_down_a_little_is_not_throttled() -> None:
    """Recorded: a compiled JAX program on a quarter of an H100, after whole ones had run on it. At 62 °C and 460 of
    700 W the driver told software_thermal all the time, and the clock was as high as under a power limit."""
    counters: dict[str, float] = {"throttle": 1.0, "thermal_throttle": 1.0, "temperature": 62.0, "power": 460.5}
    counters |= {"power_limit": 700.0, "chip_busy": 0.976, "compute_active": 0.912, "matrix_active": 0.809}
    counters |= {"memory_bandwidth": 0.145}
    h100 = load_catalog().get("H100-SXM5-80GB")
    for clock, expected in ((0.947, Bottleneck.COMPUTE), (0.909, Bottleneck.COMPUTE), (0.84, Bottleneck.THROTTLED)):
        assert diagnose(profile(1, **counters, clock=clock), h100).bottleneck is expected
    assert diagnose(profile(1, **counters), h100).bottleneck is Bottleneck.THROTTLED, "no clock is known"
    held = diagnose(profile(1, **counters, clock=0.86), h100, before=Bottleneck.THROTTLED)
    assert held.bottleneck is Bottleneck.THROTTLED, "no change for so little"


@given(held=st.floats(0.0, 1.0), clock=st.none() | st.floats(0.0, 1.2))
def test_a_fault_never_makes_a_chip_faster(held: float, clock: float | None) -> None:
    found = throttling(profile(1, throttle=held, clock=clock))
    assert 0.0 <= found.log < math.inf and 0.0 <= found.sd < math.inf


def test_links_of_a_step() -> None:
    made = built(samples(20, steps=50.0, step_seconds=0.5, peer_sent=10e9, pcie_received=1e9))
    assert made.value(Field.PEER_SENT_PER_STEP) == 5e9
    assert made.readings[Field.PCIE_RECEIVED_PER_STEP].quality is Quality.DERIVED
    assert Field.PCIE_SENT_PER_STEP not in made.readings
    assert built(samples(20, peer_sent=10e9)).value(Field.PEER_SENT_PER_STEP) is None


def test_a_program_that_compiles_does_not_hang() -> None:
    silent = {"chip_busy": 0.01, "compute_active": 0.005, "steps": 9.0}
    assert diagnose(profile(1, **silent), H200).bottleneck is Bottleneck.IDLE
    assert diagnose(profile(1, **silent, compiling=0.02), H200).bottleneck is Bottleneck.IDLE
    begun = diagnose(profile(1, **silent, compiling=0.97), H200)
    assert begun.bottleneck is Bottleneck.UNKNOWN and "compiled 97% of the time" in begun.finding.text()


def test_steps_that_are_compiled_again_and_again() -> None:
    fields = {"chip_busy": 0.1, "compute_active": 0.05, "samples_per_second": 10.0}
    once = diagnose(profile(1, **fields, compiling=0.0), H200)
    again = diagnose(profile(1, **fields, compiling=0.8), H200)
    assert once.bottleneck is again.bottleneck is Bottleneck.HOST_BOUND
    assert "compiles" not in once.finding.text() and "compiles 80% of the time" in again.finding.text()
    assert "one shape" in again.finding.lever()
