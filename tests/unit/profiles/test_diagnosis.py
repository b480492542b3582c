"""Each class by example, and that nothing is claimed which the counters do not carry."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.pool import LinkKind
from rightpool.hardware.accelerator import Link
from rightpool.hardware.catalog import load_catalog
from rightpool.profiles.bottleneck import Bottleneck, Diagnosis
from rightpool.profiles.diagnosis import diagnose
from rightpool.profiles.profile import Steadiness
from rightpool.profiles.sample import Field, Quality
from tests.unit.profiles.windows import profile

CATALOG = load_catalog()
H200, A10G, TPU = CATALOG.get("H200-SXM-141GB"), CATALOG.get("A10G-24GB"), CATALOG.get("TPU-v5e")
PCIE = Link(LinkKind.PCIE, 24e9)
WORK = {"chip_busy": 0.99, "compute_active": 0.9, "matrix_active": 0.5, "memory_bandwidth": 0.3}


def found(chips: int = 1, /, **fields: float) -> Diagnosis:
    return diagnose(profile(chips, **fields), H200)


@pytest.mark.parametrize(
    ("steadiness", "evidence"),
    [
        (Steadiness.ABSENT, "nothing was measured"),
        (Steadiness.STALE, "too old"),
        (Steadiness.WARMING_UP, "cover 100% of the window of 5 min"),
    ],
)
def test_an_unsteady_profile_is_unknown(steadiness: Steadiness, evidence: str) -> None:
    diagnosis = diagnose(profile(1, steadiness, **WORK), H200)
    assert diagnosis.bottleneck is Bottleneck.UNKNOWN
    assert evidence in diagnosis.finding.text()


@pytest.mark.parametrize("busy", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("chips", [1, 4])
def test_being_busy_proves_nothing(busy: float, chips: int) -> None:
    diagnosis = found(chips, chip_busy=busy, power=650.0, samples_per_second=100.0)
    assert diagnosis.bottleneck not in (Bottleneck.COMPUTE, Bottleneck.MEMORY_BANDWIDTH)
    if busy >= 0.9:
        assert diagnosis.bottleneck is Bottleneck.UNKNOWN


def test_a_loop_of_copies_to_the_chip() -> None:
    """Measured on an H200: 100% busy, 0% compute units, 1% memory bandwidth."""
    diagnosis = found(chip_busy=1.0, compute_active=0.0, matrix_active=0.0, memory_bandwidth=0.01)
    assert diagnosis.bottleneck is Bottleneck.HOST_BOUND
    assert "busy 100% of the time, and its compute units 0%" in diagnosis.finding.text()


def test_tiny_kernels() -> None:
    assert found(chip_busy=0.29, compute_active=0.001, matrix_active=0.0, memory_bandwidth=0.0).bottleneck is (
        Bottleneck.HOST_BOUND
    )


def test_a_large_matmul_and_a_device_copy() -> None:
    matmul = found(chip_busy=1.0, compute_active=0.96, matrix_active=0.93, memory_bandwidth=0.17)
    assert matmul.bottleneck is Bottleneck.COMPUTE
    assert "memory bandwidth 21%, matrix units 100% of attainable" in matmul.finding.text()
    copy = found(chip_busy=1.0, compute_active=1.0, matrix_active=0.0, memory_bandwidth=0.89)
    assert copy.bottleneck is Bottleneck.MEMORY_BANDWIDTH


def test_a_model_too_large_for_its_links() -> None:
    """GPT of 760M parameters at batch 2 on 4 H200 without NVLink: busy 100%, 71% of the step exposed."""
    fields = {"chip_busy": 1.0, "exposed_communication": 0.71, "compute_active": 0.25, "matrix_active": 0.08}
    diagnosis = diagnose(profile(4, **fields, memory_bandwidth=0.12), replace(H200, intra_link=PCIE))
    assert diagnosis.bottleneck is Bottleneck.COMMUNICATION_BOUND
    assert diagnosis.finding.text() == "71% of the step is exposed communication over PCIe on 4 chips"
    assert "fewer chips" in diagnosis.finding.lever()
    assert "over NVLink" in diagnose(profile(4, **fields), H200).finding.text()
    assert "over ICI" in diagnose(profile(4, **fields), TPU).finding.text()


def test_waiting_for_input_and_for_the_host() -> None:
    waiting = found(chip_busy=0.5, input_wait=0.45, compute_active=0.4)
    assert waiting.bottleneck is Bottleneck.INPUT_BOUND
    assert waiting.finding.text() == "the chip is idle 50% of the step, 45% of it for input"
    assert found(chip_busy=0.5, input_wait=0.05, compute_active=0.4).bottleneck is Bottleneck.HOST_BOUND
    unknown = found(2, chip_busy=0.5, exposed_communication=0.0)
    assert unknown.bottleneck is Bottleneck.HOST_BOUND
    assert unknown.finding.text() == "2 chips are idle 50% of the step; waits for input were not watched"
    assert unknown.finding.lever().startswith("see whether it waits for data")


def test_time_in_saves_has_a_class_and_a_lever() -> None:
    """A program that saves to a buffer and uploads it after every 20 steps stood still for 97% of the time."""
    saving = found(chip_busy=0.03, compute_active=0.03, saving=0.97, input_wait=0.0, samples_per_second=20.0)
    assert saving.bottleneck is Bottleneck.CHECKPOINT_BOUND
    assert saving.finding.text() == "the chip is idle 97% of the step, 97% of it while the program saves"
    assert saving.finding.lever() == "save less often, asynchronously, or to local disk first"
    assert found(chip_busy=0.01, saving=0.98).bottleneck is Bottleneck.CHECKPOINT_BOUND, "one long save does not hang"
    assert found(**WORK, saving=0.6).bottleneck is Bottleneck.COMPUTE, "the chip works meanwhile"
    little = found(chip_busy=0.5, compute_active=0.4, saving=0.1, input_wait=0.05)
    assert little.bottleneck is Bottleneck.HOST_BOUND
    assert little.finding.text() == "the chip is idle 50% of the step, 5% for input, 10% in saves"
    assert found(chip_busy=0.5, compute_active=0.4, saving=0.4, input_wait=0.45).bottleneck is Bottleneck.INPUT_BOUND


def test_the_rank_that_saves_for_all_is_not_accused() -> None:
    """Seven ranks wait in a collective, busy, for the one that writes."""
    alike = {"compute_active": 0.42, "most_compute_active": 0.43, "least_compute_active": 0.41}
    saving = found(8, chip_busy=0.94, slowest_chip_busy=0.5, **alike, saving=0.5, exposed_communication=0.05)
    assert saving.bottleneck is Bottleneck.CHECKPOINT_BOUND
    assert found(8, chip_busy=0.94, slowest_chip_busy=0.5, **alike).bottleneck is Bottleneck.STRAGGLER


def test_input_wait_of_a_busy_chip_is_no_bottleneck() -> None:
    assert found(**WORK, input_wait=0.6).bottleneck is Bottleneck.COMPUTE


def test_the_larger_loss_is_named() -> None:
    fields = {"compute_active": 0.4, "matrix_active": 0.2, "memory_bandwidth": 0.2}
    assert found(4, chip_busy=0.7, exposed_communication=0.35, **fields).bottleneck is Bottleneck.COMMUNICATION_BOUND
    assert found(4, chip_busy=0.6, exposed_communication=0.25, **fields).bottleneck is Bottleneck.HOST_BOUND


def test_two_losses_together_limit_too() -> None:
    fields = {"compute_active": 0.6, "matrix_active": 0.25, "memory_bandwidth": 0.2}
    assert found(4, chip_busy=0.84, exposed_communication=0.17, **fields).bottleneck is Bottleneck.COMMUNICATION_BOUND
    assert found(4, chip_busy=0.90, exposed_communication=0.17, **fields).bottleneck is Bottleneck.COMPUTE


def test_the_largest_share_names_the_class_and_the_second_is_named_with_it() -> None:
    """Decoding with a model of 13 billion weights on an H100: 20% idle, DRAM at 83% of what is attainable."""
    decoding = {"chip_busy": 0.8, "compute_active": 0.5, "matrix_active": 0.1, "memory_bandwidth": 0.53}
    diagnosis = found(**decoding)
    assert diagnosis.bottleneck is Bottleneck.MEMORY_BANDWIDTH
    assert "it waits 20% of the step" in diagnosis.finding.text()
    assert found(**{**decoding, "chip_busy": 0.4, "memory_bandwidth": 0.27}).bottleneck is Bottleneck.HOST_BOUND


@pytest.mark.parametrize("active", [(0.65, 0.62), (0.65, 0.3)])
def test_no_rank_is_accused_against_counters_that_agree(active: tuple[float, float]) -> None:
    """A trace of a few steps that it slows; power was 447 and 456 W. DDP of ConvNeXt on two GPUs."""
    most, least = active
    fields = {**WORK, "compute_active": most, "most_compute_active": most, "least_compute_active": least}
    diagnosis = found(2, **fields, exposed_communication=0.5, least_exposed=0.05)
    assert (diagnosis.bottleneck is Bottleneck.STRAGGLER) is (least < 0.5 * most)


def test_addresses_are_no_roof() -> None:
    """Gathers and scatters, by hardware counters: SMs 22%, memory 34%, integer units 16% of the time."""
    gathers = {"chip_busy": 0.99, "compute_active": 0.9, "matrix_active": 0.01, "memory_bandwidth": 0.34}
    diagnosis = found(**gathers, integer_active=0.6, fp32_active=0.1)
    assert diagnosis.bottleneck is Bottleneck.MEMORY_BANDWIDTH
    assert "matrix units" not in diagnosis.finding.lever()


def test_nothing_is_made_of_counters_that_are_of_others_too() -> None:
    """An orphan of another job at 18% made five of six verdicts wrong."""
    beside = profile(**WORK, others=0.18, samples_per_second=10.0)
    diagnosis = diagnose(beside, H200)
    assert diagnosis.bottleneck is Bottleneck.UNKNOWN and not beside.complete
    assert "not the job's take 18% of a chip" in diagnosis.finding.text()
    assert "run elsewhere" in diagnosis.finding.lever()
    alone = profile(**WORK, others=0.03, samples_per_second=10.0)
    assert diagnose(alone, H200).bottleneck is Bottleneck.COMPUTE and alone.complete


def test_before_the_first_step_nothing_hangs() -> None:
    starting = found(chip_busy=0.01)
    assert starting.bottleneck is Bottleneck.UNKNOWN
    assert starting.finding.text() == "no step was made yet, and the chip is busy 1% of the time"
    assert found(chip_busy=0.01, steps=4985.0).bottleneck is Bottleneck.IDLE


def test_a_part_of_a_chip_is_named_where_kernels_never_fill_it() -> None:
    """A convolutional autoencoder: busy 99.8% of the time, and no roof near."""
    kernels = {"chip_busy": 0.998, "compute_active": 0.31, "matrix_active": 0.05, "memory_bandwidth": 0.15}
    small = found(**kernels)
    assert small.bottleneck is Bottleneck.SMALL_KERNELS
    assert small.finding.text() == "kernels fill 31% of H200-SXM-141GB, always busy; the nearest roof is at 19%"
    assert small.finding.lever() == "a slice or a smaller chip (31% of this one would do), or larger batches"
    full = found(**kernels, memory_used=120e9, memory_total=141e9)
    assert full.finding.lever() == "larger batches"
    assert found(**{**kernels, "chip_busy": 0.9}).bottleneck is Bottleneck.HOST_BOUND
    derived = profile(**kernels)
    busy = derived.readings[Field.CHIP_BUSY]._replace(quality=Quality.DERIVED)
    derived = replace(derived, readings={**derived.readings, Field.CHIP_BUSY: busy})
    assert diagnose(derived, H200).bottleneck is Bottleneck.HOST_BOUND, "utilization does not see gaps"


def test_idle_is_without_progress() -> None:
    idle = found(chip_busy=0.01, steps=9.0)
    assert idle.bottleneck is Bottleneck.IDLE
    assert found(chip_busy=0.01, samples_per_second=0.0).bottleneck is Bottleneck.IDLE
    assert found(chip_busy=0.01, samples_per_second=3.0).bottleneck is Bottleneck.HOST_BOUND, "slow is not idle"


def test_throttled_but_not_at_the_power_limit() -> None:
    hot = found(**WORK, throttle=0.6, power=420.0)
    assert hot.bottleneck is Bottleneck.THROTTLED
    assert hot.finding.text() == "clocks are held down 60% of the time at 420 W of 700 W"
    heat = {"throttle": 0.6, "thermal_throttle": 0.6, "temperature": 91.0, "power": 420.0, "power_limit": 500.0}
    assert found(**WORK, **heat, clock=0.45).finding.text() == (
        "clocks are held down 60% of the time by heat (91 °C) at 420 W of 500 W; at 45% of their maximum"
    )
    assert "by a slowdown or power brake" in found(**WORK, throttle=0.6, thermal_throttle=0.0).finding.text()
    assert found(**WORK, throttle=0.6).bottleneck is Bottleneck.THROTTLED
    assert found(**WORK, throttle=0.1, power=420.0).bottleneck is Bottleneck.COMPUTE


def test_a_power_cap_is_no_fault() -> None:
    capped = found(**WORK, throttle=0.0, power_capped=1.0, power=446.0, power_limit=450.0)
    assert capped.bottleneck is Bottleneck.COMPUTE
    assert capped.finding.text().endswith("; the board is limited to 450 of 700 W")
    assert "limited" not in found(**WORK, power_capped=1.0, power=690.0, power_limit=700.0).finding.text()


def test_a_straggler() -> None:
    fields = {**WORK, "exposed_communication": 0.05}
    slow = found(8, **fields, slowest_chip_busy=0.6)
    assert slow.bottleneck is Bottleneck.STRAGGLER
    assert slow.finding.text() == "one of 8 chips is busy 60% of the time, and the mean is 99%"
    assert found(8, **fields, slowest_chip_busy=0.9).bottleneck is Bottleneck.COMPUTE
    assert found(1, **WORK, slowest_chip_busy=0.1).bottleneck is Bottleneck.COMPUTE, "with whom would it be compared?"


@pytest.mark.parametrize(
    ("quality", "counters", "accused"),
    [
        (Quality.DERIVED, {}, False),  # one trace alone
        (Quality.MEASURED, {}, True),
        (Quality.DERIVED, {"most_compute_active": 0.9, "compute_active": 0.65, "least_compute_active": 0.4}, True),
        (Quality.MEASURED, {"most_compute_active": 0.9, "compute_active": 0.83, "least_compute_active": 0.76}, False),
    ],
)
def test_one_trace_accuses_no_rank_unless_counters_agree(
    quality: Quality, counters: dict[str, float], accused: bool
) -> None:
    traced = profile(2, **(WORK | counters), exposed_communication=0.32, least_exposed=0.01)
    readings = dict(traced.readings)
    readings[Field.EXPOSED_COMMUNICATION] = readings[Field.EXPOSED_COMMUNICATION]._replace(quality=quality)
    diagnosis = diagnose(replace(traced, readings=readings), H200)
    assert (diagnosis.bottleneck is Bottleneck.STRAGGLER) is accused


def test_arithmetic_beside_the_matrix_units() -> None:
    single = found(chip_busy=0.99, compute_active=0.95, matrix_active=0.0, memory_bandwidth=0.05)
    assert single.bottleneck is Bottleneck.COMPUTE
    assert "lower precision" in single.finding.lever()
    assert found(chip_busy=0.99, compute_active=0.3, matrix_active=0.0, memory_bandwidth=0.05).bottleneck is (
        Bottleneck.SMALL_KERNELS
    )


def test_one_counter_alone_must_be_near_its_roof() -> None:
    assert found(chip_busy=0.99, memory_bandwidth=0.6).bottleneck is Bottleneck.MEMORY_BANDWIDTH
    assert found(chip_busy=0.99, matrix_active=0.6).bottleneck is Bottleneck.COMPUTE
    assert found(chip_busy=0.99, matrix_active=0.2).bottleneck is Bottleneck.UNKNOWN


def test_communication_that_is_not_measured() -> None:
    quiet = found(4, chip_busy=0.99, compute_active=0.5, matrix_active=0.2, memory_bandwidth=0.2)
    assert quiet.bottleneck is Bottleneck.UNKNOWN
    assert "exposed communication of 4 chips is not measured" in quiet.finding.text()
    near = found(4, chip_busy=0.99, compute_active=0.9, matrix_active=0.6, memory_bandwidth=0.2)
    assert near.bottleneck is Bottleneck.COMPUTE, "half the roofline leaves no room for much else"
    assert found(4, chip_busy=0.6).bottleneck is Bottleneck.HOST_BOUND, "idle chips do not communicate"


def test_busy_that_is_not_measured() -> None:
    assert found(1, compute_active=0.9).bottleneck is Bottleneck.UNKNOWN
    assert found(4, exposed_communication=0.3).bottleneck is Bottleneck.UNKNOWN
    assert found(4, exposed_communication=0.7).bottleneck is Bottleneck.COMMUNICATION_BOUND
    assert found(1, input_wait=0.9).bottleneck is Bottleneck.UNKNOWN, "the chip may work meanwhile"


def test_the_nearer_roof_is_the_bottleneck() -> None:
    fields = {"chip_busy": 1.0, "matrix_active": 0.4}
    assert diagnose(profile(**fields, memory_bandwidth=0.45), A10G).bottleneck is Bottleneck.MEMORY_BANDWIDTH
    assert diagnose(profile(**fields, memory_bandwidth=0.35), A10G).bottleneck is Bottleneck.COMPUTE


names = ["chip_busy", "compute_active", "matrix_active", "memory_bandwidth", "exposed_communication", "input_wait"]
names += ["throttle", "slowest_chip_busy", "most_compute_active", "least_compute_active", "least_exposed"]
names += ["least_input_wait", "launch_gaps", "fp32_active", "clock", "power_capped", "memory_used", "memory_total"]
names += ["peer_sent", "pcie_sent", "xid", "saving"]


@given(st.integers(1, 8), st.dictionaries(st.sampled_from(names), st.floats(0, 1)))
def test_a_class_needs_its_counters(chips: int, fields: dict[str, float]) -> None:
    diagnosis = found(chips, **fields)
    needs = {
        Bottleneck.COMPUTE: set(),
        Bottleneck.MEMORY_BANDWIDTH: {"memory_bandwidth"},
        Bottleneck.COMMUNICATION_BOUND: {"exposed_communication"},
        Bottleneck.INPUT_BOUND: {"input_wait", "chip_busy"},
        Bottleneck.CHECKPOINT_BOUND: {"saving", "chip_busy"},
        Bottleneck.HOST_BOUND: {"chip_busy"},
        Bottleneck.SMALL_KERNELS: {"chip_busy", "compute_active"},
        Bottleneck.THROTTLED: {"throttle"},
        Bottleneck.STRAGGLER: set(),
        Bottleneck.IDLE: {"chip_busy"},
        Bottleneck.MEMORY_CAPACITY: {"memory_used", "memory_total"},
        Bottleneck.UNHEALTHY: {"xid"},
        Bottleneck.UNKNOWN: set(),
    }
    assert needs[diagnosis.bottleneck] <= set(fields)
    if diagnosis.bottleneck is Bottleneck.COMPUTE:
        assert {"matrix_active", "fp32_active"} & set(fields)
    if diagnosis.bottleneck is Bottleneck.STRAGGLER:
        pairs = [("slowest_chip_busy", "chip_busy"), ("most_compute_active", "least_compute_active")]
        pairs += [("exposed_communication", "least_exposed"), ("input_wait", "least_input_wait")]
        assert any(set(pair) <= set(fields) for pair in pairs)
    assert diagnosis.finding.text() and diagnosis.finding.lever()
    for percent in re.findall(r"(-?[0-9]+)%", diagnosis.finding.text()):
        assert 0 <= int(percent) <= 100


# --- hysteresis ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "chips", "fields", "other"),
    [
        (Bottleneck.COMMUNICATION_BOUND, 4, {**WORK, "matrix_active": 0.3, "exposed_communication": 0.19},
         Bottleneck.COMPUTE),
        (Bottleneck.INPUT_BOUND, 1, {**WORK, "matrix_active": 0.3, "chip_busy": 0.81, "input_wait": 0.19},
         Bottleneck.COMPUTE),
        (Bottleneck.HOST_BOUND, 1, {"chip_busy": 0.5, "input_wait": 0.26}, Bottleneck.INPUT_BOUND),
        (Bottleneck.INPUT_BOUND, 1, {"chip_busy": 0.5, "input_wait": 0.24}, Bottleneck.HOST_BOUND),
        (Bottleneck.HOST_BOUND, 1, {"chip_busy": 0.5, "saving": 0.26}, Bottleneck.CHECKPOINT_BOUND),
        (Bottleneck.CHECKPOINT_BOUND, 1, {"chip_busy": 0.5, "saving": 0.24}, Bottleneck.HOST_BOUND),
        (Bottleneck.HOST_BOUND, 4, {"chip_busy": 0.7, "exposed_communication": 0.31}, Bottleneck.COMMUNICATION_BOUND),
        (Bottleneck.THROTTLED, 1, {**WORK, "throttle": 0.19}, Bottleneck.COMPUTE),
        (Bottleneck.MEMORY_BANDWIDTH, 1, {"chip_busy": 1.0, "matrix_active": 0.5, "memory_bandwidth": 0.48},
         Bottleneck.COMPUTE),
        (Bottleneck.STRAGGLER, 8, {**WORK, "exposed_communication": 0.05, "slowest_chip_busy": 0.80},
         Bottleneck.COMPUTE),
    ],
)  # fmt: skip
def test_a_class_is_kept_at_the_edge(
    before: Bottleneck, chips: int, fields: dict[str, float], other: Bottleneck
) -> None:
    """Without a previous diagnosis the evidence gives another class; with `before` it does not suffice to change it."""
    at_the_edge = profile(chips, **fields)
    assert diagnose(at_the_edge, H200).bottleneck is other
    assert diagnose(at_the_edge, H200, before=before).bottleneck is before
    assert diagnose(at_the_edge, H200, before=other).bottleneck is other


@given(st.integers(1, 8), st.dictionaries(st.sampled_from(names), st.floats(0, 1)), st.sampled_from(Bottleneck))
def test_a_kept_class_is_kept_again(chips: int, fields: dict[str, float], before: Bottleneck) -> None:
    """The same readings never move the diagnosis a second time."""
    once = diagnose(profile(chips, **fields), H200, before=before).bottleneck
    assert diagnose(profile(chips, **fields), H200, before=once).bottleneck is once


def test_clear_evidence_is_not_held_up() -> None:
    assert diagnose(profile(4, **WORK, exposed_communication=0.02), H200, before=Bottleneck.COMMUNICATION_BOUND) == (
        found(4, **WORK, exposed_communication=0.02)
    )
