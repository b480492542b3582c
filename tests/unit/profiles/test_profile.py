"""From a window to a Profile: steadiness, coverage, quality, and statistics that invent nothing."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.traits import UNKNOWN_TRAITS, ModelTraits, Parallelism
from rightpool.api.work_unit import WorkUnit
from rightpool.profiles.profile import Profile, Steadiness, build_profile, stale_after
from rightpool.profiles.sample import PER_STEP, Field, Quality, Sample
from rightpool.profiles.window import Window
from tests.unit.profiles.windows import KEY, window
from tests.yardstick import work_of


def build(samples: Window, **more: Any) -> Profile:
    arguments: dict[str, Any] = {"window": 300.0, "interval": 10.0, "expected_pods": 1, "now": 1300.0, **more}
    return build_profile(KEY, 1, samples, **arguments)


def was(samples: Window, steadiness: Steadiness) -> Profile:
    """A profile that was so before."""
    return dataclasses.replace(build(samples), steadiness=steadiness)


def test_a_full_window_is_steady() -> None:
    built = build(window(step_seconds=0.2, samples_per_second=100.0, pods=1.0))
    assert built.steadiness is Steadiness.STEADY
    assert built.covered == 1.0
    assert built.complete
    assert (built.newest, built.pods, built.expected) == (1300.0, 1, 1)
    assert built.value(Field.SAMPLES_PER_SECOND) == 100.0
    assert built.value(Field.POWER) is None, "missing stays missing"


def test_nothing_was_ever_read() -> None:
    built = build(Window())
    assert built.steadiness is Steadiness.ABSENT
    assert (built.readings, built.covered, built.newest, built.pods) == ({}, 0.0, None, 0)
    assert not built.complete


@pytest.mark.parametrize(("interval", "limit"), [(5.0, 30.0), (10.0, 30.0), (15.0, 45.0), (60.0, 180.0)])
def test_staleness(interval: float, limit: float) -> None:
    assert stale_after(interval) == limit
    long = {"window": max(300.0, 20 * interval), "interval": interval}
    count = round(long["window"] / interval)
    samples = window(count + 1, interval, 1300.0 - count * interval, step_seconds=0.2)
    assert build(samples, now=1300.0 + limit, **long).steadiness is Steadiness.STEADY
    assert build(samples, now=1300.1 + limit, **long).steadiness is Steadiness.STALE


def test_a_steady_profile_stays_steady_within_the_hysteresis() -> None:
    """A late scrape or a gap does not change the verdict; a long one does, and it changes back by the full measure."""
    full = window(step_seconds=0.2)
    late, gone = 1300.0 + 1.5 * stale_after(10.0), 1300.1 + 2 * stale_after(10.0)
    assert build(full, now=late).steadiness is Steadiness.STALE
    assert build(full, now=late, before=was(full, Steadiness.STEADY)).steadiness is Steadiness.STEADY
    assert build(full, now=gone, before=was(full, Steadiness.STEADY)).steadiness is Steadiness.STALE
    three_quarters = window(23, 10.0, 1075.0, step_seconds=0.2)
    assert build(three_quarters).steadiness is Steadiness.WARMING_UP
    assert build(three_quarters, before=was(three_quarters, Steadiness.STALE)).steadiness is Steadiness.WARMING_UP
    assert build(three_quarters, before=was(three_quarters, Steadiness.STEADY)).steadiness is Steadiness.STEADY


def test_stale_readings_are_shown_until_they_leave_the_window() -> None:
    samples = window(step_seconds=0.2)
    assert build(samples, now=1400.0).value(Field.STEP_SECONDS) == 0.2
    gone = build(samples, now=1600.0)
    assert gone.steadiness is Steadiness.STALE
    assert gone.newest == 1300.0
    assert gone.readings == {}


def test_a_window_that_is_not_full_warms_up() -> None:
    built = build(window(20, 10.0, 1110.0, step_seconds=0.2))
    assert built.steadiness is Steadiness.WARMING_UP
    assert built.covered == pytest.approx(200 / 300)
    assert built.value(Field.STEP_SECONDS) == 0.2, "shown all the same"
    assert build(window(24, 10.0, 1070.0, step_seconds=0.2)).steadiness is Steadiness.STEADY


def test_a_gap_is_not_covered() -> None:
    samples = Window()
    for number in [*range(10), *range(22, 31)]:
        samples.append(Sample(1000.0 + 10 * number, {Field.STEP_SECONDS: 0.2}))
    built = build(samples)
    # 8 × 10 s, of 130 s without readings as long as they were not stale, 8 × 10 s, and the first reading's own.
    assert built.covered == pytest.approx((80 + 30 + 80 + 10) / 300)
    assert built.steadiness is Steadiness.WARMING_UP


def test_scrapes_rarer_than_the_interval_cover_the_window() -> None:
    assert build(window(11, 30.0, 1000.0, step_seconds=0.2)).steadiness is Steadiness.STEADY


def test_the_first_steps_are_left_out() -> None:
    samples = Window()
    for number in range(31):
        seconds = 9.0 if number < 5 else 0.2
        samples.append(Sample(1000.0 + 10 * number, {Field.STEPS: float(number), Field.STEP_SECONDS: seconds}))
    built = build(samples)
    assert built.readings[Field.STEP_SECONDS].high == 0.2
    assert built.covered == pytest.approx(260 / 300)


def test_a_step_time_that_drifts_is_not_believed() -> None:
    samples = Window()
    for number in range(31):
        samples.append(Sample(1000.0 + 10 * number, {Field.STEP_SECONDS: 3.0 * 0.8**number}))
    assert build(samples).steadiness is Steadiness.WARMING_UP


def test_a_step_time_that_rises_is_no_warm_up() -> None:
    """It has another reason, and waiting does not take it away: the window has both paces until the old one is gone."""
    samples, rates = Window(), Window()
    for number in range(31):
        seconds = 0.2 if number < 16 else 0.25
        samples.append(Sample(1000.0 + 10 * number, {Field.STEP_SECONDS: seconds}))
        rates.append(Sample(1000.0 + 10 * number, {Field.SAMPLES_PER_SECOND: 64.0 / seconds}))
    assert build(samples).steadiness is Steadiness.STEADY
    assert build(rates).steadiness is Steadiness.STEADY


# Steps a second of a program with tiny batches, alone on an H100, from one second to the next.
TINY_BATCHES = [
    *[192, 191, 207, 227, 208, 211, 200, 223, 216, 175, 181, 198, 185, 177],
    *[217, 210, 225, 223, 250, 210, 210, 230, 223, 194, 226, 205, 183],
]


def test_a_pace_that_goes_up_and_down_is_steady_although_rates_overlap() -> None:
    samples = Window()
    for number in range(10, len(TINY_BATCHES)):
        rate = sum(TINY_BATCHES[number - 9 : number + 1]) / 10
        samples.append(Sample(1000.0 + number, {Field.STEP_SECONDS: 1.0 / rate}, span=10.0))
    newest = samples.newest or 0.0
    assert build(samples, window=14.0, interval=1.0, now=newest).steadiness is Steadiness.STEADY


def test_a_shift_starts_the_profile_over() -> None:
    samples = Window()
    for number in range(31):
        samples.append(Sample(1000.0 + 10 * number, {Field.STEP_SECONDS: 0.4 if number < 16 else 0.2}))
    built = build(samples)
    assert built.steadiness is Steadiness.WARMING_UP
    assert built.value(Field.STEP_SECONDS) == 0.2
    assert 0.4 < built.covered < 0.65


def test_rates_that_begin_late_in_a_short_window_are_awaited() -> None:
    """As recorded: counters read every 2 s, rates over 10 s, and steps that took four times as long at first."""
    rates: dict[float, tuple[float, float]] = {11.0: (5009.0, 0.102)} | dict.fromkeys((13.0, 15.0), (6144.0, 0.0836))
    rates |= dict.fromkeys((17.0, 19.0, 21.0, 23.0, 25.0), (6144.0, 0.0837))
    steps = [5.0, 11.0, *(23.0 + 24.0 * number for number in range(11))]
    young, profile = Window(), None
    for number, count in enumerate(steps):
        at = 1.0 + 2.0 * number
        values = {Field.STEPS: count}
        if at in rates:
            values[Field.SAMPLES_PER_SECOND], values[Field.STEP_SECONDS] = rates[at]
        young.append(Sample(1000.0 + at, values))
        profile = build_profile(
            KEY, 1, young, window=15.0, interval=2.0, expected_pods=1, now=1000.0 + at, before=profile
        )
        assert (profile.steadiness is Steadiness.STEADY) == (at >= 23.0), at
    assert profile is not None
    assert profile.readings[Field.SAMPLES_PER_SECOND].value == 6144.0


def test_without_step_times_the_rate_is_judged() -> None:
    samples = Window()
    for number in range(31):
        samples.append(Sample(1000.0 + 10 * number, {Field.SAMPLES_PER_SECOND: 100.0 * 1.2**number}))
    assert build(samples).steadiness is Steadiness.WARMING_UP
    assert build(window(chip_busy=0.9)).steadiness is Steadiness.STEADY, "and without either, the time"


def test_a_silent_pod_leaves_sums_out() -> None:
    samples = Window()
    for number in range(31):
        pods, rate = (2.0, 200.0) if number < 20 else (1.0, 100.0)
        fields = {Field.PODS: pods, Field.SAMPLES_PER_SECOND: rate, Field.STEP_SECONDS: 0.2}
        samples.append(Sample(1000.0 + 10 * number, fields))
    built = build(samples, expected_pods=2)
    assert built.readings[Field.SAMPLES_PER_SECOND].low == 200.0
    assert (built.pods, built.expected) == (1, 2)
    assert not built.complete
    never = build(window(pods=1.0, samples_per_second=100.0, step_seconds=0.2), expected_pods=2)
    assert Field.SAMPLES_PER_SECOND not in never.readings, "half the pods are not the job"
    assert never.value(Field.STEP_SECONDS) == 0.2


def test_throughput_in_steps_is_the_mean_over_readings_of_all_pods() -> None:
    """Steps that take longer than readings are apart come in whole numbers."""
    samples = Window()
    for number in range(31):
        fields = {Field.PODS: 2.0, Field.STEPS_PER_SECOND: 0.4 if number % 4 == 0 else 0.0, Field.STEP_SECONDS: 10.0}
        samples.append(Sample(1000.0 + 10 * number, fields))
    built = build(samples, expected_pods=2)
    assert built.unit is WorkUnit.STEPS and built.complete
    assert built.throughput is not None and built.throughput.value == pytest.approx(0.1, rel=0.1)
    alone = build(window(pods=1.0, steps_per_second=2.0, step_seconds=0.5), expected_pods=2)
    assert alone.throughput is None, "half the pods are not the job"


def test_states_are_the_newest_and_memory_is_the_highest() -> None:
    samples = Window()
    for number in range(31):
        fields = {
            Field.STEPS: 100.0 + number,
            Field.MEMORY_USED: 9e9 if number == 7 else 5e9,
            Field.CHECKPOINT_TIMESTAMP: 900.0 if number < 30 else 1299.0,
            Field.STEP_SECONDS: 0.2,
        }
        samples.append(Sample(1000.0 + 10 * number, fields))
    built = build(samples)
    assert built.value(Field.STEPS) == 130.0
    assert built.value(Field.MEMORY_USED) == 9e9
    assert built.value(Field.CHECKPOINT_TIMESTAMP) == 1299.0


def test_one_derived_reading_makes_the_field_derived() -> None:
    samples = window(step_seconds=0.2, power=300.0)
    samples.append(Sample(1301.0, {Field.POWER: 300.0, Field.STEP_SECONDS: 0.2}, frozenset({Field.POWER})))
    built = build(samples, now=1301.0)
    assert built.readings[Field.POWER].quality is Quality.DERIVED
    assert built.readings[Field.STEP_SECONDS].quality is Quality.MEASURED


def test_readings_before_the_window_do_not_count() -> None:
    samples = window(61, 10.0, 700.0, step_seconds=0.2)
    early = Window()
    for entry in samples.samples():
        busy = 0.1 if entry.at <= 1000.0 else 0.9
        early.append(dataclasses.replace(entry, values={**entry.values, Field.CHIP_BUSY: busy}))
    assert build(early).readings[Field.CHIP_BUSY].low == 0.9


def test_building_a_profile_is_cheap() -> None:
    fields = {field.name.lower(): 0.5 for field in Field if field is not Field.STEPS}
    samples = window(**fields)
    assert work_of(lambda: [build(samples) for _ in range(200)]) < 30, "two milliseconds a job"


streams = st.lists(
    st.dictionaries(st.sampled_from(list(Field)), st.floats(0, 1e9), min_size=1), min_size=0, max_size=40
)


@given(streams, st.floats(1000.0, 1700.0), st.integers(0, 3))
def test_readings_invent_nothing(stream: list[dict[Field, float]], now: float, pods: int) -> None:
    samples = Window()
    for number, values in enumerate(stream):
        samples.append(Sample(1000.0 + 10 * number, values))
    built = build(samples, now=now, expected_pods=pods)
    kept = list(samples.samples())
    assert 0.0 <= built.covered <= 1.0
    for field, reading in built.readings.items():
        if field in PER_STEP.values():
            continue
        seen = [entry.values[field] for entry in kept if field in entry.values and entry.at > now - 300.0]
        assert min(seen) <= reading.low <= reading.high <= max(seen)
        assert min(seen) <= reading.value <= max(seen)
        assert math.isfinite(reading.value)
    made = {made for rate, made in PER_STEP.items() if rate in built.readings}
    assert set(built.readings) <= {field for entry in kept for field in entry.values} | made
    if built.steadiness is Steadiness.STEADY:
        assert built.covered >= 0.8 and built.newest is not None and now - built.newest <= 30.0


def test_the_profile_has_what_was_said_last_and_a_restart_forgets_it() -> None:
    traits, samples = ModelTraits("bf16", parameters=110_000_000, parallelism=Parallelism(8, 1, 1, 1)), Window()
    for number in range(31):
        given = traits if number == 3 else None
        samples.append(Sample(1000.0 + 10 * number, {Field.STEPS: 100.0 + number}, traits=given))
    assert build(samples).traits == traits
    samples.append(Sample(1310.0, {Field.STEPS: 1.0}))
    assert samples.traits == UNKNOWN_TRAITS
