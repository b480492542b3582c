"""Readings that can't be so together: set aside with a reason, and predictions go on without them."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rightpool.api.choices import Batch
from rightpool.api.estimate import Estimate
from rightpool.api.traits import UNKNOWN_TRAITS, ModelTraits, Parallelism
from rightpool.contract import MODEL_PRECISIONS
from rightpool.hardware.catalog import load_catalog
from rightpool.prediction.predictor import Missing
from rightpool.profiles.bottleneck import Bottleneck
from rightpool.profiles.consistency import Inconsistency
from rightpool.profiles.diagnosis import diagnose
from rightpool.profiles.profile import Profile, build_profile
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.window import Window
from tests.unit.prediction.fixtures import A10G, A100, TPU, at, predicted
from tests.unit.profiles.windows import KEY, window


def built(samples: Window, chips: int = 1, before: Profile | None = None) -> Profile:
    return build_profile(KEY, chips, samples, window=300.0, interval=10.0, expected_pods=1, now=1300.0, before=before)


def test_what_is_at_the_limit_is_not_set_aside_in_every_other_window() -> None:
    def active(matrix: float) -> Window:
        return window(chip_busy=0.9, compute_active=0.5, matrix_active=matrix)

    pair = {Field.COMPUTE_ACTIVE, Field.MATRIX_ACTIVE}
    assert not built(active(0.59)).set_aside
    beyond = built(active(0.61))
    assert beyond.set_aside.keys() == pair
    assert built(active(0.59), before=beyond).set_aside.keys() == pair
    assert not built(active(0.54), before=beyond).set_aside


def test_shares_of_a_step_at_the_limit_are_not_set_aside_in_every_other_window() -> None:
    def shares(waited: float) -> Window:
        return window(exposed_communication=0.5, input_wait=waited)

    assert not built(shares(0.59)).set_aside
    beyond = built(shares(0.61))
    assert built(shares(0.59), before=beyond).set_aside == beyond.set_aside != {}
    assert not built(shares(0.54), before=beyond).set_aside


@pytest.mark.parametrize(
    ("readings", "aside"),
    [
        ({"chip_busy": 1.3}, {Field.CHIP_BUSY: Inconsistency.OUT_OF_RANGE}),
        ({"input_wait": -0.2}, {Field.INPUT_WAIT: Inconsistency.OUT_OF_RANGE}),
        (
            {"exposed_communication": 0.7, "input_wait": 0.6},
            dict.fromkeys((Field.EXPOSED_COMMUNICATION, Field.INPUT_WAIT), Inconsistency.SHARES_EXCEED_STEP),
        ),
        (
            {"chip_busy": 0.9, "compute_active": 0.05, "matrix_active": 0.4},
            dict.fromkeys((Field.COMPUTE_ACTIVE, Field.MATRIX_ACTIVE), Inconsistency.UNITS_ACTIVE_ON_IDLE_CHIP),
        ),
        (
            {"chip_busy": 0.02, "compute_active": 0.6, "memory_bandwidth": 0.3},
            dict.fromkeys((Field.CHIP_BUSY, Field.COMPUTE_ACTIVE), Inconsistency.UNITS_ACTIVE_ON_IDLE_CHIP),
        ),
        (
            {"chip_busy": 0.3, "slowest_chip_busy": 0.8},
            dict.fromkeys((Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY), Inconsistency.MEAN_BEYOND_EXTREMES),
        ),
        (
            {"compute_active": 0.63, "exposed_communication": 0.7, "least_exposed": 0.05, "launch_gaps": 0.05},
            dict.fromkeys(
                (Field.EXPOSED_COMMUNICATION, Field.LEAST_EXPOSED, Field.LAUNCH_GAPS), Inconsistency.TRACE_DISTORTED
            ),
        ),
        ({"compute_active": 0.63, "exposed_communication": 0.3, "launch_gaps": 0.1}, {}),
        ({"compute_active": 0.9, "exposed_communication": 0.05, "input_wait": 0.6}, {}),
        (
            {"memory_used": 40e9, "memory_total": 24e9},
            {Field.MEMORY_TOTAL: Inconsistency.MEMORY_OVERFULL},
        ),
        ({"chip_busy": 1.02, "compute_active": 0.99, "matrix_active": 0.6, "memory_bandwidth": 0.9}, {}),
        ({"chip_busy": 0.6, "input_wait": 0.5, "exposed_communication": 0.3}, {}),
    ],
)
def test_what_cannot_be_so_is_set_aside(readings: dict[str, float], aside: dict[Field, Inconsistency]) -> None:
    profile = built(window(samples_per_second=100.0, pods=1.0, **readings))
    assert profile.set_aside == aside
    given_fields = {Field[name.upper()] for name in readings}
    assert profile.readings.keys() & given_fields == given_fields - aside.keys()
    assert profile.complete, "the throughput was measured all the same"


def test_a_trace_that_slowed_the_program_accuses_no_rank() -> None:
    """DDP of ConvNeXt on two GPUs: SMs .62 and .65 of the time, and 22% of it computing by a trace."""
    counters = {"chip_busy": 0.83, "compute_active": 0.63, "matrix_active": 0.2, "memory_bandwidth": 0.3}
    trace = {"exposed_communication": 0.6, "least_exposed": 0.05, "launch_gaps": 0.15}
    h200 = load_catalog().get("H200-SXM-141GB")
    assert diagnose(built(window(**counters, **trace), 2), h200).bottleneck is not Bottleneck.STRAGGLER
    plausible = {**trace, "exposed_communication": 0.3}
    assert diagnose(built(window(**counters, **plausible), 2), h200).bottleneck is Bottleneck.STRAGGLER


GARBAGE = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-0.5, 1.5)
VALUES = st.dictionaries(st.sampled_from(list(Field)), GARBAGE, max_size=12)
WHOLE = st.none() | st.integers(1, 10**15)
TRAITS = st.builds(
    ModelTraits,
    precision=st.none() | st.sampled_from(MODEL_PRECISIONS),
    parameter_dtype=st.none() | st.sampled_from(MODEL_PRECISIONS),
    parameters=WHOLE,
    parameter_bytes=WHOLE,
    batch=WHOLE,
    parallelism=st.builds(Parallelism, WHOLE, WHOLE, WHOLE, WHOLE),
)


@example(values={}, rate=1e308, traits=UNKNOWN_TRAITS, chips=1, batch=Batch.PER_CHIP)
@given(
    values=VALUES,
    rate=st.none() | GARBAGE,
    traits=TRAITS,
    chips=st.sampled_from([1, 2, 8]),
    batch=st.sampled_from(Batch),
)
def test_garbage_gives_a_positive_number_or_a_reason(
    values: dict[Field, float], rate: float | None, traits: ModelTraits, chips: int, batch: Batch
) -> None:
    samples = Window()
    more = {} if rate is None else {Field.SAMPLES_PER_SECOND: rate}
    for number in range(31):
        samples.append(Sample(1000.0 + 10.0 * number, {Field.STEPS: 100.0 + number, **values, **more}, traits=traits))
    profile = built(samples, chips)
    assert not profile.set_aside.keys() & profile.readings.keys()
    targets = [at(where, size, max(1, size // 8)) for where in (A100, A10G, TPU) for size in (1, 2, 8, 16)]
    for found in predicted(profile, at(A100, chips), *targets, batch=batch):
        if isinstance(found, Missing):
            continue
        assert isinstance(found, Estimate)
        assert 0.0 < found.median < math.inf and 0.0 <= found.sd < math.inf
