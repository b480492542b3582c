"""Model FLOPs utilization: from what it is known, where it is absent, and what its target does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.conditions import Reason
from rightpool.api.traits import ModelTraits
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.flops import flops_per_unit
from rightpool.planning.offers.flops_texts import unknown_flops_text
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.prediction.precision import dense_peak
from rightpool.profiles.bottleneck import Bottleneck, Diagnosis
from rightpool.profiles.work_findings import NothingCounted
from rightpool.reporting.conditions.context import Context, Statement
from rightpool.reporting.conditions.measured import efficient, profiled
from rightpool.reporting.conditions.targets import targets_met
from tests.unit.planning.jobs import NOW, POOLS, changed, decision_and_text, in_steps, judged, running, spec
from tests.unit.prediction.fixtures import A10G_CHIP, A100_CHIP

# Four A100 chips at 312 TFLOP/s in bf16, and 1000 samples a second of 0.312 TFLOP each: a quarter of their peak.
PER_SAMPLE = 0.312e12
QUARTER = {"flopsPerSample": "3.12e11"}


def job(traits: ModelTraits | None = None, **sections: Any) -> Job:
    made = running(made=spec(**sections))
    assert made.observed.profile is not None
    profile = replace(made.observed.profile, traits=traits or ModelTraits(precision="bf16"))
    return changed(made, profile=profile, diagnosis=Diagnosis(Bottleneck.COMPUTE, NothingCounted(1)))


def utilization(job: Job) -> float | None:
    current = judged(job).current
    assert current is not None
    return current.flops_utilization


def conditions(job: Job, assessment: Assessment) -> tuple[tuple[str, str], tuple[str, str]]:
    """Status and reason of TargetsMet and of Efficient."""
    context = Context(assessment, POOLS["a100"].price, True, NOW)
    met, enough = targets_met(job, context), efficient(job, context)
    return (met.status, met.reason), (enough.status, enough.reason)


def test_it_is_what_the_user_says_of_a_sample_times_throughput_over_the_peak() -> None:
    assert utilization(job(progress=QUARTER)) == pytest.approx(0.25)


def test_it_is_what_the_program_counts_where_the_user_says_nothing() -> None:
    counted = ModelTraits(precision="bf16", batch=50, step_flops=50 * PER_SAMPLE)
    assert utilization(job(counted)) == pytest.approx(0.25)
    assert utilization(job(counted, progress={"flopsPerSample": "624000000000"})) == pytest.approx(0.5)
    no_batch = replace(counted, batch=None)
    assert utilization(job(no_batch)) is None
    assert utilization(job(no_batch, progress={"samplesPerStep": 50})) == pytest.approx(0.25)


def test_steps_count_by_the_flops_of_a_step() -> None:
    counted = ModelTraits(precision="bf16", step_flops=PER_SAMPLE)
    assert utilization(in_steps(job(counted))) == pytest.approx(0.25)
    made = in_steps(job(progress=QUARTER))
    assert utilization(made) is None and "samplesPerStep" in unknown_flops_text(made, judged(made).current)


@pytest.mark.parametrize(
    ("made", "lacking"),
    [
        (job(), "spec.progress.flopsPerSample"),
        (job(ModelTraits(), progress=QUARTER), "precision is not known"),
        (job(ModelTraits(precision="fp64"), progress=QUARTER), "the FLOP/s of its chips in fp64 are not known"),
        (changed(job(progress=QUARTER), profile=None), "was not measured"),
    ],
)
def test_where_something_is_not_known_it_is_absent_and_said_what(made: Job, lacking: str) -> None:
    current = judged(made).current
    assert lacking in unknown_flops_text(made, current)
    assert current is None or current.flops_utilization is None


def test_the_peak_is_that_of_the_very_precision() -> None:
    chip = replace(A100_CHIP, peak_flops={"fp32": 1.0, "tf32": 8.0, "bf16": 16.0})
    assert [dense_peak(chip, name) for name in ("fp32", "tf32", "bf16", "fp8", None)] == [1.0, 8.0, 16.0, None, None]
    assert dense_peak(replace(chip, peak_flops={"fp32": 1.0}), "tf32") == 1.0, "as a chip without tf32 computes it"


IMPOSSIBLE = {"flopsPerSample": "1.56e12"}  # 390 TFLOP/s of each chip


def profiled_of(made: Job) -> Statement:
    return profiled(made, Context(judged(made), POOLS["a100"].price, True, NOW))


def test_more_than_the_peak_is_missing_and_told() -> None:
    made = job(progress=IMPOSSIBLE, targets={"minModelFlopsUtilization": "0.9"}, elasticity={"minChips": 1})
    assessment = judged(made)
    assert [each.flops_utilization for each in assessment.candidates] == [None] * len(assessment.candidates)
    assert all(each.peak_exceeded is None for each in assessment.candidates), "that is known of where it is"
    assert conditions(made, assessment)[0] == ("Unknown", Reason.FLOPS_UNKNOWN)
    found = profiled_of(made)
    assert (found.status, found.reason) == ("True", Reason.PEAK_EXCEEDED)
    assert "would be 125%: 390 TFLOP/s of a chip in bf16, and A100-80GB can do 312" in found.message
    assert "spec.progress.flopsPerSample is too high" in found.message and "AcceleratorPool a100" in found.message


def test_where_the_profiler_counts_too_much_the_user_can_say_better() -> None:
    counted = ModelTraits(precision="bf16", batch=1, step_flops=5 * PER_SAMPLE)
    assert "set spec.progress.flopsPerSample" in profiled_of(job(counted)).message
    assert profiled_of(job(counted, progress=QUARTER)).reason is Reason.MEASURED
    assert "set spec.progress.samplesPerStep and flopsPerSample" in profiled_of(in_steps(job(counted))).message


def test_a_target_that_holds_is_met() -> None:
    made = job(progress=QUARTER, targets={"minModelFlopsUtilization": "0.2"})
    assert conditions(made, judged(made))[0] == ("True", Reason.TARGETS_HOLD)


def test_a_target_of_which_nothing_is_known_is_neither_met_nor_missed() -> None:
    made = job(targets={"minModelFlopsUtilization": "0.9"})
    assessment = judged(made)
    assert conditions(made, assessment)[0] == ("Unknown", Reason.FLOPS_UNKNOWN)
    assert all(
        each.rejection is None or each.rejection.reason is not RejectionReason.FLOPS_UTILIZATION
        for each in assessment.candidates
    )


def test_a_missed_target_is_repaired_where_it_is_predicted_to_hold() -> None:
    made = job(progress=QUARTER, targets={"minModelFlopsUtilization": "0.35", "objective": "MinimizeTime"})
    assessment = judged(made)
    decision, text = decision_and_text(assessment)
    assert decision.reason is Reason.MIN_FLOPS_UTILIZATION_MISSED, text
    assert conditions(made, assessment) == (
        ("False", Reason.MIN_FLOPS_UTILIZATION_MISSED),
        ("False", Reason.LOW_FLOPS_UTILIZATION),
    )
    taken = decision.candidate
    assert taken is not None and taken.flops_utilization is not None and taken.flops_utilization >= 0.35


def test_a_target_that_nothing_holds_is_the_users_to_change() -> None:
    made = job(
        progress=QUARTER,
        targets={"minModelFlopsUtilization": "0.99"},
        elasticity={"minChips": 4, "maxChips": 4},
        placement={"pools": {"allow": ["a100"]}},
    )
    decision, text = decision_and_text(judged(made))
    assert decision.reason is Reason.LOW_FLOPS_UTILIZATION
    assert "25% of the chips' peak FLOP/s, below targets.minModelFlopsUtilization 99%" in text


@given(
    per_sample=st.floats(1e6, 1e15),
    least=st.decimals("0.01", "0.99", places=2),
    precision=st.sampled_from(["bf16", "fp8", None]),
)
def test_a_candidate_is_ruled_out_by_its_own_utilization_alone(
    per_sample: float, least: object, precision: str | None
) -> None:
    """What a gate over columns says of each candidate is what the candidate shows."""
    made = job(
        ModelTraits(precision=precision),
        progress={"flopsPerSample": f"{per_sample:.3e}"},
        targets={"minModelFlopsUtilization": str(least)},
        elasticity={"minChips": 1, "maxChips": 4, "batch": "PerChip"},
    )
    flops = flops_per_unit(made)
    assert flops is not None
    home = dense_peak(A100_CHIP, precision)
    contradictory = home is not None and 1000.0 * flops > 4 * home
    for each in judged(made).candidates:
        chip = A100_CHIP if each.placement.pool == "a100" else A10G_CHIP if each.placement.pool == "a10g" else None
        peak = None if chip is None else dense_peak(chip, precision)
        low = each.rejection is not None and each.rejection.reason is RejectionReason.FLOPS_UTILIZATION
        if each.throughput is None or peak is None:
            assert not low
            continue
        expected = each.throughput.median * flops / (each.placement.chips * peak)
        if contradictory or expected > 1.0001:
            assert each.flops_utilization is None and not low
        elif expected < 0.9999:
            assert each.flops_utilization == pytest.approx(expected)
        if low:
            assert expected < float(str(least)) * 1.0001
