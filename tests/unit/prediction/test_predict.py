"""Predictions: what must hold for any job, and what a few known cases give."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.choices import Batch
from rightpool.api.estimate import Estimate
from rightpool.api.pool import Slice
from rightpool.api.premise import PremiseKind
from rightpool.api.traits import ModelTraits
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.prediction.features import features
from rightpool.prediction.machines import Layout, Machines
from rightpool.prediction.predictor import Destinations, Missing, Origin
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field
from rightpool.profiles.steadiness import window_doubt
from tests.unit.prediction.fixtures import (
    A10G,
    A100,
    A100_CHIP,
    TPU,
    at,
    pool,
    predict,
    predicted,
    profile,
    ratio_sd,
    without,
)

RATIO = st.floats(0.0, 1.0)
SIZE = st.sampled_from([1, 2, 4, 8])
BATCH = st.sampled_from(list(Batch))
PROFILES = st.builds(
    profile,
    chips=SIZE,
    rate=st.floats(0.1, 1e6),
    noise=st.floats(0.0, 0.3),
    chip_busy=st.none() | RATIO,
    exposed_communication=st.none() | st.floats(0.0, 0.9),
    matrix_active=st.none() | RATIO,
    memory_bandwidth=st.none() | RATIO,
    input_wait=st.none() | RATIO,
)


def estimate(result: Estimate | Missing) -> Estimate:
    assert isinstance(result, Estimate), result
    return result


@given(made=PROFILES, batch=BATCH)
def test_the_current_placement_is_measured_not_predicted(made: Profile, batch: Batch) -> None:
    here = at(A100, made.chips)
    result = estimate(predict(made, here, here, batch=batch))
    reading = made.readings[Field.SAMPLES_PER_SECOND]
    assert result.median == reading.value
    if reading.low < reading.high:
        assert result.sd == pytest.approx(window_doubt(reading))
        assert result.sd < math.log(reading.high / reading.low)
    else:
        assert result.sd == 0.0


@given(made=PROFILES, batch=BATCH, size=SIZE, target=st.sampled_from([A100, A10G, TPU]))
def test_every_prediction_is_a_positive_number_with_its_doubt(
    made: Profile, batch: Batch, size: int, target: Pool
) -> None:
    result = estimate(predict(made, at(A100, made.chips), at(target, size), batch=batch))
    assert 0.0 < result.low <= result.median <= result.high < float("inf")
    assert sum(loading**2 for _, loading in result.shared) <= result.sd**2 + 1e-12
    if (target.name, size) != ("a100", made.chips):
        assert result.sd > 0.0


@given(
    made=PROFILES,
    batch=BATCH,
    size=SIZE,
    flops=st.floats(1.0, 20.0),
    bandwidth=st.floats(1.0, 20.0),
    link=st.floats(1.0, 20.0),
)
def test_more_arithmetic_bandwidth_or_link_never_slows_a_job_down(
    made: Profile, batch: Batch, size: int, flops: float, bandwidth: float, link: float
) -> None:
    slow = replace(A100_CHIP, key="slow")
    fast = replace(
        slow,
        peak_flops={"bf16": slow.peak_flops["bf16"] * flops},
        memory_bandwidth=slow.memory_bandwidth * bandwidth,
    )
    rates = [
        estimate(predict(made, at(A100, made.chips), at(pool("t", there, intra=190e9 * by), size), batch=batch)).median
        for there, by in ((slow, 1.0), (fast, link))
    ]
    assert rates[1] >= rates[0] * (1 - 1e-9)


@given(made=PROFILES, batch=BATCH)
def test_doubt_about_a_chip_cancels_between_sizes_on_it(made: Profile, batch: Batch) -> None:
    one, two = map(estimate, predicted(made, at(A100, made.chips), at(A10G, 1), at(A10G, 2), batch=batch))
    assert ratio_sd(one, two) <= (one.sd**2 + two.sd**2) ** 0.5
    own = one.sd**2 - sum(loading**2 for _, loading in one.shared)
    assert ratio_sd(one, one) == pytest.approx((2.0 * own) ** 0.5, abs=1e-6)


def test_noise_of_the_window_cancels_against_the_current_rate() -> None:
    made = profile(4, 100.0, 0.2, exposed_communication=0.1)
    there, here = map(estimate, predicted(made, at(A100, 4), at(A100, 2), at(A100, 4), batch=Batch.PER_CHIP))
    assert ratio_sd(there, here) == pytest.approx((there.sd**2 - here.sd**2) ** 0.5)


def test_the_hosts_share_does_not_scale_with_the_chip() -> None:
    idle = profile(1, 100.0, chip_busy=0.1)
    busy = profile(1, 100.0, chip_busy=1.0)
    slow, fast = (
        estimate(predict(made, at(A100, 1), at(A10G, 1), batch=Batch.PER_CHIP)).median for made in (busy, idle)
    )
    assert fast > 75.0
    assert slow < 45.0


def test_counters_decide_between_arithmetic_and_bandwidth() -> None:
    arithmetic = profile(1, 100.0, chip_busy=1.0, matrix_active=0.7, memory_bandwidth=0.1)
    traffic = profile(1, 100.0, chip_busy=1.0, matrix_active=0.05, memory_bandwidth=0.7)
    wide = pool("wide", replace(A100_CHIP, key="wide", memory_bandwidth=8e12))
    gains = [
        estimate(predict(made, at(A100, 1), at(wide, 1), batch=Batch.PER_CHIP)).median for made in (arithmetic, traffic)
    ]
    assert gains[0] < gains[1]


def test_one_chip_has_no_communication() -> None:
    made = profile(4, 1000.0, chip_busy=1.0, exposed_communication=0.6)
    alone = estimate(predict(made, at(A100, 4), at(A100, 1), batch=Batch.PER_CHIP))
    assert 0.7 * alone.median > 1000.0 / 4 and alone.median <= 1000.0 / 4 / 0.4


def test_what_is_not_measured_is_not_zero() -> None:
    known = profile(4, 1000.0, chip_busy=1.0, exposed_communication=0.0)
    unknown = without(known, Field.EXPOSED_COMMUNICATION)
    one_known, one_unknown = (
        estimate(predict(made, at(A100, 4), at(A100, 1), batch=Batch.PER_CHIP)) for made in (known, unknown)
    )
    assert one_unknown.median > one_known.median
    assert one_unknown.sd > one_known.sd
    blind = estimate(predict(without(known, Field.CHIP_BUSY), at(A100, 4), at(A10G, 4), batch=Batch.PER_CHIP))
    seen = estimate(predict(known, at(A100, 4), at(A10G, 4), batch=Batch.PER_CHIP))
    assert blind.sd > seen.sd


def test_a_fixed_batch_gains_less_from_more_chips() -> None:
    made = profile(2, 100.0, chip_busy=0.95, exposed_communication=0.05)
    grown, fixed = (estimate(predict(made, at(A100, 2), at(A100, 8), batch=batch)).median for batch in Batch)
    assert 100.0 < fixed < grown < 400.0


def test_the_first_step_over_the_network_is_doubtful() -> None:
    made = profile(8, 1000.0, chip_busy=0.95, exposed_communication=0.05)
    inside = estimate(predict(made, at(A100, 8), at(A100, 4), batch=Batch.PER_CHIP))
    across = estimate(predict(made, at(A100, 8), at(A100, 16, 2), batch=Batch.PER_CHIP))
    assert across.sd > inside.sd + 0.2


def test_a_new_vendor_widens_the_interval() -> None:
    made = profile(1, 100.0, chip_busy=0.9)
    same = pool("same", replace(TPU.accelerator, vendor=A100_CHIP.vendor))
    near, far = (estimate(predict(made, at(A100, 1), at(target, 1), batch=Batch.PER_CHIP)) for target in (same, TPU))
    assert far.sd > near.sd
    assert far.median == pytest.approx(near.median)


def test_another_kind_of_host_matters_where_the_job_waits_for_its_host() -> None:
    waiting, working = profile(1, 100.0, chip_busy=0.5), profile(1, 100.0, chip_busy=0.99)
    label = "node.kubernetes.io/instance-type"
    here = pool("here", A100_CHIP, labels={label: "big"})
    for made, wider in ((waiting, True), (working, False)):
        same, other = (
            estimate(
                predict(made, at(here, 1), at(pool("t", A100_CHIP, labels={label: kind}), 1), batch=Batch.PER_CHIP)
            )
            for kind in ("big", "small")
        )
        assert (other.sd > same.sd) is wider


def test_a_placement_that_was_measured_before_is_not_predicted() -> None:
    machines = Machines.of([A100, A10G])
    here, there = at(A100, 1)[0], at(A10G, 2)[0]
    rows = replace(Destinations.of([(0, there), (0, there)], machines), seen=np.array([77.0, np.nan]))
    rows = replace(rows, seen_sd=np.array([0.01, np.nan]))
    jobs = features([profile(1, 100.0)], [here], [Batch.PER_CHIP], machines)
    result = StepModelPredictor().predict(jobs, machines, rows)
    assert list(result.origin) == [Origin.MEASURED_BEFORE, Origin.PREDICTED]
    seen, guessed = estimate(result.estimate(0)), estimate(result.estimate(1))
    assert seen.median == pytest.approx(77.0, rel=0.01)
    assert seen.sd < 0.1 < guessed.sd
    assert (result.shared[0], result.shared[1]) == (jobs.noise[0] ** 2, jobs.noise[0] ** 2)


@pytest.mark.parametrize(
    ("made", "missing"),
    [
        (None, Missing.PROFILE),
        (profile(1, 0.0), Missing.THROUGHPUT),
        (without(profile(1, 1.0), Field.SAMPLES_PER_SECOND), Missing.THROUGHPUT),
    ],
)
def test_without_a_throughput_nothing_is_said(made: Profile | None, missing: Missing) -> None:
    result = predict(made, at(A100, 1), at(A10G, 1), batch=Batch.PER_CHIP)
    assert result is missing


def test_chips_without_a_common_precision_are_not_compared() -> None:
    odd = pool("odd", replace(A100_CHIP, key="odd", peak_flops={"int8": 1e15}))
    result = predict(profile(1, 1.0), at(A100, 1), at(odd, 1), batch=Batch.PER_CHIP)
    assert result is Missing.SPECIFICATIONS


def test_matrix_units_that_know_half_precision_alone_tell_a_jobs_precision() -> None:
    catalog = load_catalog()
    v100 = pool("v100", catalog.get("V100-SXM2-16GB"))
    a100 = pool("a100", catalog.get("A100-SXM4-40GB"))

    def moved(home: Pool, matrix_active: float | None, precision: str | None = None) -> Estimate:
        made = profile(1, 100.0, compute_active=0.8, memory_bandwidth=0.4, matrix_active=matrix_active)
        made = replace(made, traits=ModelTraits(precision=precision))
        there = a100 if home is v100 else v100
        result = predict(made, at(home, 1), at(there, 1), batch=Batch.PER_CHIP)
        assert isinstance(result, Estimate)
        return result

    assert moved(v100, 0.1).median == moved(v100, 0.1, "fp16").median
    assert moved(v100, 0.0).median == moved(v100, 0.0, "tf32").median > 1.5 * moved(v100, 0.0, "fp32").median
    assert moved(v100, 0.1, "fp32").median != moved(v100, 0.1).median, "what the program tells stands before"
    assert moved(v100, 0.0).sd < moved(v100, None).sd > moved(v100, 0.1).sd
    unknown = {premise.kind for premise in moved(a100, 0.1).basis}
    assert PremiseKind.PRECISION_UNKNOWN in unknown, "fp32 may be tf32 there, on the same units"


def test_hosts_of_one_slice_are_on_one_fabric() -> None:
    slices = replace(TPU, slice=Slice(topology="4x4", chips=16))
    assert Layout.of(at(slices, 16, 4)[0], slices) == Layout(16, 1)
    assert Layout.of(at(slices, 32, 8)[0], slices) == Layout(16, 2)
    assert Layout.of(at(A100, 16, 4)[0], A100) == Layout(4, 4)


@st.composite
def moves(draw: st.DrawFn) -> tuple[Profile, int, Batch, Pool, int]:
    """A job on A100s, and where it could be."""
    chips = draw(SIZE)
    made = replace(draw(PROFILES), chips=chips)
    return made, chips, draw(BATCH), draw(st.sampled_from([A100, A10G, TPU])), draw(SIZE)


@given(fleet=st.lists(moves(), min_size=1, max_size=8))
def test_a_fleet_is_predicted_as_each_of_its_jobs_by_itself(fleet: list[tuple[Profile, int, Batch, Pool, int]]) -> None:
    machines = Machines.of([A100, A10G, TPU])
    jobs = features(
        [made for made, *_ in fleet],
        [at(A100, chips)[0] for _, chips, *_ in fleet],
        [batch for _, _, batch, *_ in fleet],
        machines,
    )
    places = [at(target, size)[0] for *_, target, size in fleet]
    current = [place == at(A100, chips)[0] for place, (_, chips, *_) in zip(places, fleet, strict=True)]
    together = StepModelPredictor().predict(jobs, machines, Destinations.of(list(enumerate(places)), machines, current))
    for row, (made, chips, batch, target, size) in enumerate(fleet):
        assert together.estimate(row) == predict(made, at(A100, chips), at(target, size), batch=batch)


@given(made=PROFILES, batch=BATCH, target=st.sampled_from([A100, A10G, TPU]), size=SIZE)
def test_the_part_of_the_doubt_that_cancels_is_the_one_that_is_named(
    made: Profile, batch: Batch, target: Pool, size: int
) -> None:
    machines = Machines.of([A100, A10G, TPU])
    here, there = at(A100, made.chips)[0], at(target, size)[0]
    rows = Destinations.of([(0, here), (0, there)], machines, [True, there == here])
    result = StepModelPredictor().predict(features([made], [here], [batch], machines), machines, rows)
    now, other = estimate(result.estimate(0)), estimate(result.estimate(1))
    variance = other.sd**2 + now.sd**2 - 2.0 * float(result.shared[1])
    assert ratio_sd(other, now) == pytest.approx(max(variance, 0.0) ** 0.5, abs=1e-7)
