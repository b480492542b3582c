"""A job whose steps are seen and whose samples are not: what its user says of a step, or nothing."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.conditions import ConditionType, Reason
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Observed
from rightpool.planning.jobs.revision_window import RevisionWindow
from rightpool.planning.work.progress import progress_of
from rightpool.profiles.sample import Field, Quality, Sample
from rightpool.profiles.step_count import LOST_READINGS, Basis
from tests.unit.planning.jobs import NOW, changed, running, spec
from tests.unit.reporting.test_conditions import condition_of


def observed(chips: int = 4, own: float | None = None, **sections: Any) -> Observed:
    """After a window in which each pod makes 2 steps a second. own: samples a second that the program counts from the
    middle of the window on."""
    job = running(made=spec(chips, **sections))
    assert job.state.revision is not None
    window = RevisionWindow.of(job, job.state.revision.revision)
    at = NOW
    for number in range(40):
        at = NOW + 10.0 * number
        values = {Field.STEPS: 1000.0 + 20 * number, Field.STEP_SECONDS: 0.5, Field.PODS: 1.0}
        if own is not None and number >= 5:
            values |= {Field.SAMPLES_PER_SECOND: own, Field.SAMPLES: own * 10 * number}
        window.append(Sample(at, values))
    return window.observe(job, None, at)


def test_without_the_users_word_throughput_is_in_steps() -> None:
    seen = observed()
    profile = seen.profile
    assert profile is not None and profile.complete and profile.unit is WorkUnit.STEPS
    assert Field.SAMPLES_PER_SECOND not in profile.readings
    assert profile.throughput == (pytest.approx(2.0), pytest.approx(2.0), pytest.approx(2.0), Quality.MEASURED)
    assert seen.variation is not None and seen.variation.unit is WorkUnit.STEPS
    assert seen.track is not None and seen.track.unit is WorkUnit.STEPS
    assert seen.track.counter == 1000 + 20 * 39
    condition = condition_of(ConditionType.PROFILED, changed(running(), profile=profile))
    assert (condition.status, condition.reason) == ("True", Reason.MEASURED)
    assert "steps/s" in condition.message and "spec.progress.samplesPerStep" in condition.message, "sizes may change"
    fixed = running(made=spec(elasticity={}))
    assert "samplesPerStep" not in condition_of(ConditionType.PROFILED, changed(fixed, profile=profile)).message


@pytest.mark.parametrize(
    ("sections", "field"),
    [
        ({"progress": {"totalSamples": 10**6}}, "progress.totalSamples"),
        ({"targets": {"maxCostPerMillionSamples": "1"}}, "targets.maxCostPerMillionSamples"),
    ],
)
def test_who_declares_samples_is_asked_for_the_samples_of_a_step(sections: dict[str, Any], field: str) -> None:
    profile = observed(**sections).profile
    assert profile is not None and not profile.complete and profile.throughput is None
    condition = condition_of(ConditionType.PROFILED, changed(running(made=spec(**sections)), profile=profile))
    assert condition.reason == Reason.PARTIAL_TELEMETRY
    assert f"which spec.{field} needs" in condition.message
    assert "spec.progress.samplesPerStep" in condition.message
    assert observed(**{**sections, "progress": {"totalSamples": 10**6, "samplesPerStep": 8}}).profile.complete  # type: ignore[union-attr]


def test_samples_that_come_to_be_known_never_meet_steps() -> None:
    seen = observed(own=1000.0)
    assert seen.profile is not None and seen.profile.unit is WorkUnit.SAMPLES
    assert Field.STEPS_PER_SECOND not in seen.profile.readings
    assert seen.track is not None and (seen.track.unit, seen.track.first) == (WorkUnit.SAMPLES, 1000.0 * 50)
    assert seen.variation is not None and seen.variation.unit is WorkUnit.SAMPLES
    assert all(rate == pytest.approx(1000.0) for rate in seen.variation.recent)


@given(st.lists(st.sampled_from(("steps", "counted", "none", "said", "unsaid", "total")), min_size=1, max_size=60))
def test_whatever_comes_to_be_known_no_window_mixes_units(events: list[str]) -> None:
    """The program's own count begins or goes missing, and the spec is edited, at any time."""
    made = spec()
    job = running(made=made)
    window = RevisionWindow.of(job, 1)
    steps, at = 0.0, NOW
    for event in events:
        if event in ("said", "unsaid", "total"):
            progress = {"said": {"samplesPerStep": 32}, "unsaid": None, "total": {"totalSamples": 10**6}}[event]
            job = running(made=spec(**({} if progress is None else {"progress": progress})))
        for _ in range(4):
            at, steps = at + 10.0, steps + 20.0
            values = {Field.STEPS: steps, Field.STEP_SECONDS: 0.5, Field.PODS: 1.0}
            if event == "counted":
                values |= {Field.SAMPLES_PER_SECOND: 64.0, Field.SAMPLES: 32.0 * steps}
            elif event == "none":
                del values[Field.STEPS]
            seen = window.observe(job, None, at)
            window.append(Sample(at, values))
            seen = window.observe(job, None, at)
            rates = [
                window.window.column(field).tolist() for field in (Field.SAMPLES_PER_SECOND, Field.STEPS_PER_SECOND)
            ]
            assert (
                job.spec.counts_samples is None or not window.count.basis or window.count.basis.unit is WorkUnit.SAMPLES
            )
            known = [any(value == value for value in column) for column in rates]
            assert not all(known), "one unit alone"
            if seen.profile is not None and seen.profile.throughput is not None:
                unit, rate = seen.profile.unit, seen.profile.throughput.value
                assert rate == pytest.approx(2.0 if unit is WorkUnit.STEPS else 64.0)
                assert seen.track is not None and seen.track.unit is unit
            if seen.variation is not None and seen.variation.recent:
                expected = 2.0 if seen.variation.unit is WorkUnit.STEPS else 64.0
                assert all(rate == pytest.approx(expected) for rate in seen.variation.recent)


@pytest.mark.parametrize(
    ("batch", "chips", "expected"), [("Global", 2, 64.0), ("PerChip", 4, 64.0), ("PerChip", 2, 128.0)]
)
def test_throughput_is_steps_times_what_a_step_takes(batch: str, chips: int, expected: float) -> None:
    """The job runs on four chips, and was asked for on `chips`."""
    elasticity = {"minChips": 1, "maxChips": 8, "batch": batch}
    seen = observed(chips, elasticity=elasticity, progress={"samplesPerStep": 32})
    assert seen.profile is not None and seen.profile.complete
    reading = seen.profile.readings[Field.SAMPLES_PER_SECOND]
    assert (reading.value, reading.quality) == (pytest.approx(expected), Quality.DERIVED)
    assert seen.track is not None and seen.track.counter == pytest.approx((1000 + 20 * 39) * expected / 2)


def test_what_the_program_counts_replaces_what_was_derived() -> None:
    seen = observed(own=1000.0, progress={"samplesPerStep": 1})
    assert seen.profile is not None
    reading = seen.profile.readings[Field.SAMPLES_PER_SECOND]
    assert (reading.low, reading.high, reading.quality) == (1000.0, 1000.0, Quality.MEASURED)
    assert seen.track is not None and seen.track.first == 1000.0 * 50


@pytest.mark.parametrize("per_step", [16, 32, 64])
def test_work_is_counted_once_whatever_it_is_counted_by(per_step: int) -> None:
    """A program that makes 2 steps a second of 32 samples counts them, ceases to, and counts again. The user says so
    many of a step, which may be wrong."""
    job = running(made=spec(progress={"samplesPerStep": per_step, "totalSamples": 10**6}))
    window, steps, done = RevisionWindow.of(job, 1), 0, [0]
    for number in range(90):
        at, steps = NOW + 10.0 * number, steps + 20
        own = not 30 <= number < 60
        counted = {Field.SAMPLES_PER_SECOND: 64.0, Field.SAMPLES: 32.0 * steps} if own else {}
        window.append(Sample(at, {Field.STEPS: float(steps), Field.STEP_SECONDS: 0.5, Field.PODS: 1.0} | counted))
        seen = window.observe(job, None, at)
        job = changed(job, profile=seen.profile, track=seen.track)
        progress = progress_of(job, at)
        done.append(progress.done)
        if number % 7 == 0:
            job = job.with_state(replace(job.state, progress=progress))
        basis = Basis.DERIVED if 30 + LOST_READINGS <= number < 60 else None if 30 <= number < 60 else Basis.COUNTED
        assert basis is None or window.count.basis is basis
    assert done == sorted(done), "nothing goes back"
    assert done[-1] >= 32 * steps
    assert done[-1] <= 32 * steps + max(0, per_step - 32) * 20 * 30, "no more than the user's number is off by"
    assert seen.profile is not None and seen.profile.readings[Field.SAMPLES_PER_SECOND].quality is Quality.MEASURED


def test_a_count_that_ceases_leaves_the_job_with_a_throughput() -> None:
    """For the rest of its Revision nothing was decided about it, though its steps were seen."""
    job = running()
    window = RevisionWindow.of(job, 1)
    for number in range(60):
        values = {Field.STEPS: 20.0 * number, Field.STEP_SECONDS: 0.5, Field.PODS: 1.0}
        if number < 20:
            values |= {Field.SAMPLES_PER_SECOND: 64.0, Field.SAMPLES: 640.0 * number}
        window.append(Sample(NOW + 10.0 * number, values))
        seen = window.observe(job, None, NOW + 10.0 * number)
    assert seen.profile is not None and seen.profile.complete and seen.profile.unit is WorkUnit.STEPS
    assert seen.profile.throughput is not None and seen.profile.throughput.value == pytest.approx(2.0)
