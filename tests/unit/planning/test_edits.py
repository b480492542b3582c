"""A user edits what a job runs, and where it runs and how big it is stays: is it slower since?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.program_edit import EditVerdict, ProgramEdit
from rightpool.api.state import JobState
from rightpool.api.traits import ModelTraits
from rightpool.api.variation import MAX_RECENT, SlowStart, SpanDifference, Variation
from rightpool.api.wording import MESSAGE
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.edits import with_edit_judged
from rightpool.planning.moves.news import at_rest
from rightpool.profiles.profile import Profile, Reading
from rightpool.profiles.sample import Field, Quality
from tests.unit.planning.jobs import NOW, changed, running
from tests.unit.planning.world import A10G, A100, World, complete_profile, decide, moved, on_a100

OLD, NEW = "trainer:1.4", "trainer:1.5"


def program(world: World, digest: str, image: str | None) -> World:
    """The user edits the template."""
    world.job = replace(world.job, workload_hash=digest, image=image, generation=world.job.generation + 1)
    return world


def first() -> World:
    """A job that runs its first program."""
    world = on_a100()
    world.job, world.windows = replace(world.job, image=OLD), 8
    world.settle(1)
    assert world.job.state.image == OLD
    return world


def edited(world: World, rate: float, digest: str = "h2", image: str | None = NEW, cycles: int = 40) -> World:
    """The edit is carried out where the job is, and it does `rate` from then on."""
    assert world.job.state.revision is not None
    place, number = world.job.state.revision.placement, world.job.state.revision.revision
    program(world, digest, image)
    for _ in range(20):
        world.cycle(decide(Action.UPDATE, place, rate) if world.job.state.migration is None else None)
        world.live()
        if world.job.state.revision.revision != number:
            break
        assert world.job.state.revision is not None
    world.rates[place.pool] = rate
    world.settle(cycles)
    return world


def unmeasured(world: World) -> World:
    """Nothing is measured where it runs."""
    world.rates.clear()
    return world


def verdict_on(world: World) -> ProgramEdit | None:
    return world.observed().state.judged_edit


def test_a_slower_program_is_a_regression_by_both_images() -> None:
    found = verdict_on(edited(first(), 800.0))
    assert found is not None and (found.verdict, found.rates) == (EditVerdict.REGRESSED, ())
    assert found.ratio == pytest.approx(0.8)
    assert found.message.startswith("samples/s -20.0% (-2") and "trainer:1.5 against trainer:1.4" in found.message


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [(1200.0, EditVerdict.IMPROVED), (1000.0, EditVerdict.NO_WORSE), (1.0, EditVerdict.REGRESSED)],
)
def test_faster_and_no_slower_are_told_apart(rate: float, verdict: EditVerdict) -> None:
    found = verdict_on(edited(first(), rate))
    assert found is not None and found.verdict is verdict


def test_what_an_operator_goes_on_from_is_the_status() -> None:
    world = edited(first(), 800.0, cycles=0)
    state = world.job.state
    restored = JobState.from_dict(JobState.restored(JobState.stored(state.to_dict())))
    assert restored.edit is not None and restored.edit.image == OLD
    assert restored.edit == state.edit
    world.job = world.job.with_state(restored)
    world.settle()
    assert (found := verdict_on(world)) is not None and found.verdict is EditVerdict.REGRESSED


def test_another_size_is_no_such_edit() -> None:
    world = first()
    program(world, "h2", NEW).cycle(decide(Action.UPDATE, Placement("a100", 4, 1), 500.0))
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.CARRIED_OUT
    assert world.job.state.edit is None
    world = first()
    world.cycle(decide(Action.UPDATE, Placement("a100", 4, 1), 500.0))
    world.settle()
    assert world.job.state.edit is None


def test_an_edit_while_a_move_is_judged_is_compared_with_what_ran_there() -> None:
    world = moved(first())
    world.rates["a10g"] = 300.0
    world.reach(Phase.WARMING_UP)
    program(world, "h2", NEW).live()
    world.cycle()
    assert world.job.state.migration is None and world.job.state.history[-1].outcome is Outcome.SUPERSEDED
    found = verdict_on(edited(world, 200.0))
    assert found is not None
    assert found.ratio == pytest.approx(2 / 3)


def test_a_second_edit_before_a_verdict_is_compared_with_what_was_before_both() -> None:
    world = unmeasured(edited(first(), 800.0, cycles=0))
    assert world.observed().state.edit_to_judge is not None
    found = verdict_on(edited(world, 700.0, "h3", "trainer:1.6"))
    assert found is not None and found.ratio == pytest.approx(0.7)
    assert "trainer:1.6 against trainer:1.4" in found.message


def test_a_second_edit_after_a_verdict_is_compared_with_the_first() -> None:
    found = verdict_on(edited(edited(first(), 800.0), 1000.0, "h3", "trainer:1.6"))
    assert found is not None and found.verdict is EditVerdict.IMPROVED
    assert "trainer:1.6 against trainer:1.5" in found.message


def test_an_edit_that_is_taken_back_before_a_verdict_is_none() -> None:
    world = edited(unmeasured(edited(first(), 800.0, cycles=0)), 1000.0, "h1", OLD)
    assert world.observed().state.edit_to_judge is None and verdict_on(world) is None
    assert at_rest(world.observed())


def test_a_verdict_is_of_the_place_where_the_program_runs() -> None:
    world = edited(first(), 800.0)
    moved(world).settle()
    assert world.job.state.revision is not None and world.job.state.revision.placement == A10G
    assert verdict_on(world) is None


def test_nothing_is_judged_of_what_was_not_measured() -> None:
    world = first()
    rate = world.rates.pop("a100")
    program(world, "h2", NEW).cycle(decide(Action.UPDATE, A100, rate))
    world.settle()
    assert world.job.state.edit is None


# --- the verdict itself -------------------------------------------------------------------------------------------


def open_edit(*rates: float, spread: float = 0.01, unit: WorkUnit = WorkUnit.SAMPLES, **fields: object) -> Job:
    """A job whose first program did 1000 units a second, and whose second one does these."""
    measured = replace(complete_profile(1, rates[-1] or 1.0, NOW, unit=unit), chips=4)
    spans = tuple(SpanDifference(length, 60.0, spread**2) for length in (1, 3))
    job = running(measured=measured, variation=Variation(1, NOW, rates, spans, unit))
    edit = replace(ProgramEdit("h0", OLD, (1000.0,) * 8, unit), **fields)  # type: ignore[arg-type]
    return job.with_state(replace(job.state, edit=edit, image=NEW))


def verdict_of(job: Job) -> EditVerdict | None:
    edit = with_edit_judged(job).state.judged_edit
    return None if edit is None else edit.verdict


def test_it_is_looked_at_after_some_windows_alone() -> None:
    noisy = (900.0, 500.0, 700.0)
    assert with_edit_judged(job := open_edit(800.0, 800.0)) is job
    assert verdict_of(open_edit(*noisy)) is None and not at_rest(open_edit(*noisy))
    assert verdict_of(open_edit(*noisy, *[500.0] * 2)) is None, "the first three are looked at until there are six"
    assert verdict_of(open_edit(*noisy, *[600.0] * 9)) is EditVerdict.REGRESSED
    short = (1000.0,) * 7
    assert verdict_of(open_edit(*[800.0] * 11, rates=short)) is None, "few windows do not say what it does by itself"
    assert verdict_of(open_edit(*[800.0] * 12, rates=short)) is EditVerdict.REGRESSED


def test_what_varies_too_much_is_not_known_in_the_end() -> None:
    job = with_edit_judged(open_edit(*[1300.0, 600.0] * (MAX_RECENT // 2)))
    assert verdict_of(job) is EditVerdict.UNKNOWN and at_rest(job)
    assert job.state.edit is not None and job.state.edit.ratio is None


def test_a_job_that_was_seen_to_vary_for_long_is_judged_by_that() -> None:
    assert verdict_of(open_edit(850.0, 850.0, 850.0)) is EditVerdict.REGRESSED
    assert verdict_of(open_edit(850.0, 850.0, 850.0, spread=0.2)) is None


def test_a_slow_start_says_nothing_of_the_program() -> None:
    job = open_edit(500.0, 500.0, 1000.0, 1000.0)
    assert job.observed.variation is not None
    window = job.spec.profiling.window.total_seconds()
    start = SlowStart(2 * window, 300.0, 0)
    slow = changed(job, variation=replace(job.observed.variation, slow_start=start))
    assert with_edit_judged(slow) is slow
    recent = (500.0, 500.0, 1000.0, 1000.0, 1000.0)
    slow = changed(job, variation=replace(job.observed.variation, slow_start=start, recent=recent))
    assert verdict_of(slow) is EditVerdict.NO_WORSE


def test_throttled_chips_say_nothing_of_the_program() -> None:
    job = open_edit(500.0, 500.0, 500.0)
    assert job.observed.variation is not None
    hot = changed(job, variation=replace(job.observed.variation, throttled=True))
    assert with_edit_judged(hot) is hot


def test_what_hangs_is_a_regression() -> None:
    job = with_edit_judged(open_edit(*[0.0] * MAX_RECENT))
    assert verdict_of(job) is EditVerdict.REGRESSED
    assert job.state.edit is not None and job.state.edit.ratio == 0.0
    assert "does nothing with trainer:1.5 against trainer:1.4" in job.state.edit.message


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(None, None, EditVerdict.UNKNOWN), (64, 128, EditVerdict.UNKNOWN), (64, 64, EditVerdict.REGRESSED)],
)
def test_steps_compare_where_they_have_as_many_samples(
    before: int | None, after: int | None, verdict: EditVerdict
) -> None:
    job = open_edit(500.0, 500.0, 500.0, unit=WorkUnit.STEPS, batch=before)
    profile = job.observed.profile
    assert profile is not None
    job = changed(job, profile=replace(profile, traits=ModelTraits(batch=after)))
    assert verdict_of(job) is verdict


def test_a_sentence_names_what_moved_and_fits() -> None:
    def at(profile: Profile, busy: float, waits: float) -> Profile:
        # Nothing tells what its four chips send to each other.
        shares = {Field.CHIP_BUSY: busy, Field.INPUT_WAIT: waits}
        readings = {name: Reading(share, share, share, Quality.MEASURED) for name, share in shares.items()}
        return replace(profile, readings={**profile.readings, **readings})

    name = "a-trainer-with-a-name-that-nobody-would-type:"
    job = open_edit(400.0, 400.0, 400.0, precision="bf16")
    profile, edit = job.observed.profile, job.state.edit
    assert profile is not None and edit is not None
    edit = replace(edit, shares=(0.02, 0.0, 0.0, None, 0.98), image=f"{name}2026.11.28-0123abcd")
    job = changed(job, profile=at(profile, 0.39, 0.61))
    job = job.with_state(replace(job.state, edit=edit, image=f"{name}2026.11.29-0123abcd"))
    message = with_edit_judged(job).state.edit.message  # type: ignore[union-attr]
    assert message.endswith("; waiting for input went from 2% to 61% of a step") and len(message) <= MESSAGE
    assert "2026.11.29" in message and "2026.11.28" in message
    other = changed(job, profile=replace(at(profile, 0.39, 0.61), traits=ModelTraits(precision="fp32")))
    message = with_edit_judged(other).state.edit.message  # type: ignore[union-attr]
    assert message.endswith("; it computes in fp32, and did in bf16")
