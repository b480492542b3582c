"""Samples that are derived from steps."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.work_unit import WorkUnit
from rightpool.profiles.profile import WARM_UP_STEPS
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.step_count import Basis, StepCount


def reading(at: float, **values: float) -> Sample:
    return Sample(at, {Field[name.upper()]: value for name, value in values.items()})


def test_samples_are_steps_times_what_a_step_takes() -> None:
    count = StepCount(32.0, steps_suffice=True)
    first = count.complete(reading(10.0, steps=100))
    assert first.values[Field.SAMPLES] == 3200
    assert Field.SAMPLES_PER_SECOND not in first.values, "one reading has no rate"
    second = count.complete(reading(20.0, steps=150))
    assert (second.values[Field.SAMPLES], second.values[Field.SAMPLES_PER_SECOND]) == (4800, 160)
    assert second.derived == {Field.SAMPLES, Field.SAMPLES_PER_SECOND}
    assert count.basis is Basis.DERIVED


def test_without_the_users_number_nothing_is_derived() -> None:
    count = StepCount(None, steps_suffice=False)
    sample = reading(10.0, steps=100)
    assert count.complete(sample) is sample
    assert count.basis is None


def test_the_programs_own_count_goes_before_for_good() -> None:
    count = StepCount(32.0, steps_suffice=True)
    own = reading(10.0, steps=100, samples=999)
    assert count.complete(own) is own
    later = reading(20.0, steps=110)
    assert count.complete(later) is later


def test_a_restart_counts_anew() -> None:
    count = StepCount(10.0, steps_suffice=True)
    count.complete(reading(10.0, steps=100))
    again = count.complete(reading(20.0, steps=5))
    assert again.values == {Field.STEPS: 5, Field.SAMPLES: 50}


def test_another_number_does_not_change_what_is_counted() -> None:
    count = StepCount(10.0, steps_suffice=True)
    count.complete(reading(10.0, steps=100))
    count.per_step = 20.0
    assert count.complete(reading(20.0, steps=101)).values[Field.SAMPLES] == 1020


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 1000))
def test_rates_add_up_to_the_count(made: list[int], per_step: int) -> None:
    count, steps, total = StepCount(float(per_step), steps_suffice=True), 0, 0.0
    for at, more in enumerate(made):
        steps += more
        sample = count.complete(reading(float(10 * at), steps=steps))
        total += 10 * sample.values.get(Field.SAMPLES_PER_SECOND, 0.0)
    assert sample.values[Field.SAMPLES] == steps * per_step
    assert abs(total - (steps - made[0]) * per_step) < 1e-6 * max(1, steps * per_step)


def test_without_anything_said_steps_are_the_unit() -> None:
    count = StepCount(None, steps_suffice=True)
    first = reading(10.0, steps=100)
    assert count.complete(first).values == first.values, "one reading has no rate"
    second = count.complete(reading(20.0, steps=150))
    assert second.values[Field.STEPS_PER_SECOND] == 5.0
    assert Field.SAMPLES not in second.values and not second.derived
    assert count.basis is Basis.STEPS and count.basis.unit is WorkUnit.STEPS


def test_the_first_steps_do_not_decide_the_unit() -> None:
    count = StepCount(None, steps_suffice=True)
    for number in range(WARM_UP_STEPS):
        count.complete(reading(10.0 * number, steps=number))
        assert count.basis is None, "a program that counts samples may not have said so yet"
    count.complete(reading(100.0, steps=20, samples=640))
    assert count.basis is Basis.COUNTED
    own = reading(110.0, steps=40)
    assert count.complete(own) is own, "a count that goes missing for once does not make steps the unit"


def test_a_job_that_was_counted_in_steps_before_is_from_the_first_one_on() -> None:
    count = StepCount(None, steps_suffice=True, known=True)
    count.complete(reading(10.0, steps=0))
    assert count.basis is Basis.STEPS


def test_what_is_derived_stays_derived() -> None:
    count = StepCount(None, steps_suffice=True)
    count.complete(reading(10.0, steps=100))
    shown = replace(reading(20.0, steps=150), derived=frozenset({Field.STEPS}))
    assert count.complete(shown).derived == {Field.STEPS, Field.STEPS_PER_SECOND}


def test_a_restart_has_no_rate_in_steps() -> None:
    count = StepCount(None, steps_suffice=True)
    count.complete(reading(10.0, steps=100))
    assert Field.STEPS_PER_SECOND not in count.complete(reading(20.0, steps=7)).values
    assert count.complete(reading(30.0, steps=27)).values[Field.STEPS_PER_SECOND] == 2.0
