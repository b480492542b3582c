"""Samples that are derived from steps."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.work_unit import WorkUnit
from rightpool.profiles.profile import WARM_UP_STEPS
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.step_count import LOST_READINGS, Basis, StepCount


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


def test_the_programs_own_count_goes_before_and_is_not_given_up_for_one_reading() -> None:
    count = StepCount(32.0, steps_suffice=True)
    own = reading(10.0, steps=100, samples=999)
    assert count.complete(own) is own
    later = reading(20.0, steps=110)
    assert count.complete(later) is later


def lost(count: StepCount, *, at: float = 20.0, steps: float = 110.0, readings: int = LOST_READINGS) -> list[Sample]:
    """So many readings without samples, each with ten steps more."""
    return [count.complete(reading(at + 10.0 * n, steps=steps + 10.0 * n)) for n in range(readings)]


def test_a_count_that_stays_away_is_gone_on_with_from_where_it_was() -> None:
    count = StepCount(32.0, steps_suffice=True)
    count.complete(reading(10.0, steps=100, samples=999, samples_per_second=90))
    *waited, last = lost(count)
    assert all(Field.SAMPLES not in sample.values for sample in waited)
    assert count.basis is Basis.DERIVED
    made = 10.0 * LOST_READINGS
    assert last.values[Field.SAMPLES] == 999 + 32 * made, "what was counted stays, and no step counts twice"
    assert last.values[Field.SAMPLES_PER_SECOND] == 32.0
    assert last.derived == {Field.SAMPLES, Field.SAMPLES_PER_SECOND}


def test_without_the_users_number_steps_take_its_place() -> None:
    count = StepCount(None, steps_suffice=True)
    count.complete(reading(10.0, steps=100, samples=999))
    *_, last = lost(count)
    assert count.basis is Basis.STEPS and last.values[Field.STEPS_PER_SECOND] == 1.0
    silent = StepCount(None, steps_suffice=False)
    silent.complete(reading(10.0, steps=100, samples=999))
    lost(silent)
    assert silent.basis is None


def test_who_makes_no_steps_has_lost_no_count() -> None:
    count = StepCount(32.0, steps_suffice=True)
    count.complete(reading(10.0, steps=100, samples=999))
    for number in range(20):
        still = reading(20.0 + number, steps=100)
        assert count.complete(still) is still
    assert count.basis is Basis.COUNTED
    count.complete(reading(50.0, steps=101))
    assert count.basis is Basis.COUNTED


def test_a_count_that_comes_back_goes_before_again() -> None:
    count = StepCount(32.0, steps_suffice=True)
    count.complete(reading(10.0, steps=100, samples=999))
    lost(count)
    own = reading(100.0, steps=200, samples=4000)
    assert count.complete(own) is own and count.basis is Basis.COUNTED


def test_a_restart_meanwhile_is_counted_from_its_first_step() -> None:
    count = StepCount(10.0, steps_suffice=True)
    count.complete(reading(10.0, steps=100, samples=999))
    *_, last = lost(count, steps=5.0)
    assert last.values[Field.SAMPLES] == 10 * (5 + 10 * (LOST_READINGS - 1))


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=60))
def test_whatever_is_heard_the_count_of_one_process_never_falls(heard: list[tuple[int, bool]]) -> None:
    """Where the user's number is right, it is never off either."""
    count, steps, before = StepCount(8.0, steps_suffice=True), 0, 0.0
    for number, (more, own) in enumerate(heard):
        steps += more
        values = {"steps": float(steps)} | ({"samples": 8.0 * steps} if own else {})
        found = count.complete(reading(10.0 * number, **values)).values.get(Field.SAMPLES)
        if found is not None:
            assert found == 8.0 * steps and found >= before
            before = found


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
