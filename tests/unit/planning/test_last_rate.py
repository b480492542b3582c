"""What a job does right before it is asked to save, after its newest window: measured, kept, and judged by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.decisions.stories import OFTEN
from benchmarks.decisions.verdicts import RIGHT, WRONG, judged
from benchmarks.decisions.world import BEGAN, HOUR, STEP, Maker, pool, world
from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import MAX_BASELINE_RATES, Migration, Phase
from rightpool.api.state import JobState
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_window import LEAST_PART, LONGEST_PART, RevisionWindow
from rightpool.planning.moves.transitions import advance
from rightpool.profiles.sample import Field, Sample
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, NOW, changed, running, spec
from tests.unit.planning.world import A100, on_a100
from tests.unit.planning.world import moved as decided

INTERVAL = 10.0
WINDOW = running().spec.profiling.window.total_seconds()
EACH = int(WINDOW / INTERVAL)


def planned(job: Job) -> Job:
    """The same job, of which a move waits to begin."""
    here = job.state.revision
    assert here is not None
    there = replace(here, revision=here.revision + 1)
    return changed(job, migration=Migration("d-1", Action.MOVE, Phase.PLANNED, here, there, NOW, NOW, Reason.MOVING))


def sample(number: int, rate: float, others: Mapping[Field, float] = MappingProxyType({})) -> Sample:
    """The reading that comes after so many intervals. others: fields that differ from the usual ones; NaN: missing."""
    values = {
        Field.STEPS: 1000.0 + 20.0 * number,
        Field.SAMPLES: 64.0 * (1000.0 + 20.0 * number),
        Field.SAMPLES_PER_SECOND: rate,
        Field.STEP_SECONDS: 0.5,
        Field.PODS: 1.0,
        Field.CLOCK: 0.5,
        Field.THROTTLE: 0.0,
        **others,
    }
    return Sample(NOW + INTERVAL * number, {name: value for name, value in values.items() if value == value})


def filled(rates: Sequence[float]) -> tuple[RevisionWindow, float]:
    """What is kept after these readings, and when its newest window ended."""
    job = running()
    window = RevisionWindow.of(job, 1)
    for number, rate in enumerate(rates):
        window.append(sample(number, rate))
        seen = window.observe(job, None, NOW + INTERVAL * number)
    assert seen.variation is not None
    return window, seen.variation.as_of


def last_rate(window: RevisionWindow, readings: int) -> float | None:
    """What is observed of a move that waits to begin, right after so many readings."""
    return window.observe(planned(running()), None, NOW + INTERVAL * (readings - 1)).last_rate


def steady_until(seconds: float) -> tuple[RevisionWindow, int]:
    """A steady job, so many seconds after its newest window has ended, and readings up to then."""
    job = running()
    window = RevisionWindow.of(job, 1)
    for number in range(12 * EACH):
        at = NOW + INTERVAL * number
        window.append(sample(number, 128.0))
        seen = window.observe(job, None, at)
        if number > 6 * EACH and seen.variation is not None and at - seen.variation.as_of == seconds:
            return window, number + 1
    raise AssertionError("never")


def test_it_is_the_mean_of_the_newest_readings_that_no_window_has_in_it() -> None:
    window, count = steady_until(INTERVAL)
    part = round(LONGEST_PART * EACH)
    for number in range(count, count + part - 1):
        window.append(sample(number, 128.0 if number < count + 4 else 64.0))
    assert last_rate(window, count + part - 1) == pytest.approx((5 * 128.0 + (part - 5) * 64.0) / part), "all of them"
    for number in range(count + part - 1, count + part + 4):
        window.append(sample(number, 64.0))
    assert last_rate(window, count + part + 4) == pytest.approx(64.0), "the newest"


def test_it_is_looked_at_of_moves_that_wait_to_begin_alone() -> None:
    window, count = steady_until(INTERVAL * 12)
    at = NOW + INTERVAL * (count - 1)
    assert window.observe(running(), None, at).last_rate is None
    assert window.observe(planned(running()), None, at).last_rate == pytest.approx(128.0), "without a new reading"
    assert window.observe(running(), None, at + 1.0).last_rate is None


def test_what_waits_for_approval_is_looked_at_once_it_is_given() -> None:
    """It may wait for days."""
    window, count = steady_until(INTERVAL * 12)
    at = NOW + INTERVAL * (count - 1)
    waits = planned(running(made=spec(adaptation={"mode": "Auto", "requireApproval": True})))
    assert window.observe(waits, None, at).last_rate is None
    assert window.observe(replace(waits, approved="d-1"), None, at).last_rate == pytest.approx(128.0)


def test_a_short_time_tells_nothing() -> None:
    for share in (LEAST_PART - 0.05, LEAST_PART, 0.9):
        window, count = steady_until(INTERVAL * round(share * EACH))
        assert (last_rate(window, count) is None) is (share < LEAST_PART)


@pytest.mark.parametrize(
    "others",
    [
        {Field.STEPS: 10.0, Field.SAMPLES: 640.0},
        {Field.SAMPLES_PER_SECOND: math.nan, Field.SAMPLES: math.nan, Field.STEPS_PER_SECOND: 2.0},
        {Field.THROTTLE: 1.0},
        {Field.PODS: 0.0},
    ],
    ids=["a counter that restarted", "another unit", "a fault", "pods that are missing"],
)
def test_what_does_not_compare_with_the_windows_is_missing(others: Mapping[Field, float]) -> None:
    window, count = steady_until(INTERVAL * 2)
    for number in range(count, count + 10):
        grown = {name: value + 20.0 * (number - count) for name, value in others.items() if name is Field.STEPS}
        window.append(sample(number, 128.0, {**others, **grown}))
    assert last_rate(window, count + 10) is None


def test_after_a_restart_of_the_operator_it_is_missing() -> None:
    """The windows are stored, and readings are not."""
    window, count = steady_until(INTERVAL * 8)
    assert last_rate(window, count) is not None
    stored = planned(running()).with_state(replace(planned(running()).state, variation=window.variation))
    anew = RevisionWindow.of(stored, 1)
    for number in range(count, count + 8):
        anew.append(sample(number, 128.0))
    assert anew.observe(stored, None, NOW + INTERVAL * (count + 7)).last_rate is None


@given(
    st.lists(st.floats(10.0, 1000.0), min_size=2 * EACH, max_size=4 * EACH),
    st.lists(st.sampled_from([-1.0, 0.0, 50.0, 500.0]), max_size=EACH),
)
def test_whatever_is_read_it_is_the_mean_of_the_newest_readings(rates: list[float], later: list[float]) -> None:
    """Of a reading that is missing (-1) it is the mean of the others."""
    before, _ = filled(rates)
    for number, rate in enumerate(later, len(rates)):
        before.append(sample(number, math.nan if rate < 0.0 else rate))
        before.observe(running(), None, NOW + INTERVAL * number)
    all_rates = [*rates, *later]
    part = last_rate(before, len(all_rates))
    assert before.variation is not None
    ended = round((before.variation.as_of - NOW) / INTERVAL)
    since = len(all_rates) - 1 - ended
    read = [rate for rate in all_rates[-min(since, round(LONGEST_PART * EACH)) :] if rate >= 0.0] if since else []
    assert part is None or part == pytest.approx(sum(read) / len(read))
    assert part is None or since >= LEAST_PART * EACH


# --- what becomes of it ----------------------------------------------------------------------------------------------


def asked(**observed: object) -> tuple[Job, float]:
    """A job that was asked to save, as stored, and when. observed: what was seen then, beside its windows."""
    world = decided(on_a100())
    job = changed(world.observed(), **{"last_rate": 700.0, **observed})
    after = advance(job, None, AUTO, world.now, decision_text)
    assert after.state.migration is not None and after.state.migration.phase is Phase.CHECKPOINTING
    return replace(after, state=JobState.from_dict(after.state.to_dict())), world.now


def left(job: Job, now: float, as_of: float) -> Migration:
    """Its migration once it has saved, where its newest window ended at as_of."""
    variation = job.observed.variation
    assert variation is not None
    seen = changed(job, variation=replace(variation, as_of=as_of), checkpoint_at=now, last_rate=None)
    migration = advance(seen, None, AUTO, now, decision_text).state.migration
    assert migration is not None and migration.phase is Phase.DRAINING
    return migration


def test_it_counts_as_one_window_more() -> None:
    """Also where the operator is killed in between: it is stored before the save is asked for."""
    job, at = asked()
    assert job.state.migration is not None and job.state.migration.last_rate == 700.0
    migration = left(job, at + 20.0, at - 15.0)
    assert migration.baseline_rates == (1000.0, 1000.0, 1000.0, 700.0)
    assert (migration.baseline, migration.baseline_windows) == (pytest.approx(925.0), 4)
    assert migration.last_rate is None, "it is among them"
    assert migration.predicted is not None and migration.predicted.median == pytest.approx(0.9 * 925.0)


def test_a_window_that_ended_since_has_that_time_in_it() -> None:
    job, at = asked()
    migration = left(job, at + 40.0, at + 15.0)
    assert migration.baseline_rates == (1000.0,) * 3 and migration.baseline == 1000.0


def test_where_it_is_not_known_the_windows_count_alone() -> None:
    job, at = asked(last_rate=None)
    assert left(job, at + 20.0, at - 15.0).baseline_rates == (1000.0,) * 3


@pytest.mark.parametrize("rate", [0.0, 10.0])
def test_a_pause_right_before_the_save_is_no_window(rate: float) -> None:
    """A minute of an evaluation is not how fast it is: the baseline would be a quarter less, and hide a wrong move."""
    job, at = asked(last_rate=rate)
    migration = left(job, at + 20.0, at - 15.0)
    assert migration.baseline_rates == (1000.0,) * 3 and migration.baseline == 1000.0


def test_no_more_windows_are_kept_with_it() -> None:
    job, at = asked()
    variation = job.observed.variation
    assert variation is not None
    many = changed(job, variation=replace(variation, recent=tuple(1000.0 + place for place in range(20))))
    migration = left(many, at + 20.0, at - 15.0)
    assert migration.baseline_windows == 21 and len(migration.baseline_rates) == MAX_BASELINE_RATES
    assert migration.baseline_rates[-2:] == (1019.0, 700.0)


def test_a_way_back_knows_nothing_of_it() -> None:
    world = on_a100()
    world.rates["a10g"] = 150.0
    decided(world)
    world.reach(Phase.CHECKPOINTING, back=True)
    assert world.job.state.migration is not None and world.job.state.migration.last_rate is None
    world.settle()
    assert world.job.state.revision is not None and world.job.state.revision.placement == A100


def test_a_block_of_noise_that_ends_before_a_right_move_does_not_undo_it() -> None:
    """A third less from a minute after the last window on, for half an hour."""
    before, after = [1200.0] * 12, [800.0] * 5 + [1200.0] * 19
    without, _ = judged(before, after, RIGHT[0], 240.0)
    now, _ = judged(before, after, RIGHT[0], 240.0, last=800.0)
    assert (without, now) == (True, False)


@pytest.mark.parametrize("part", [400.0, 900.0, 1000.0, 1100.0])
def test_a_wrong_move_is_undone_whatever_was_before_the_save(part: float) -> None:
    undone, _ = judged([1000.0] * 12, [1000.0 * WRONG[1]] * 24, WRONG[0], 240.0, last=part)
    assert undone


def test_a_fleet_measures_it() -> None:
    """The rate falls by a third once the last window before the move has ended."""

    def baseline(falls_at: float) -> tuple[Migration, float]:
        pools = [pool("base", "A100-SXM4-80GB", 3.00), pool("better", "A100-SXM4-80GB", 2.55)]
        job = Maker(5, "quiet", pools, 2.0).job("base", 4, adaptation=OFTEN)
        usual = job.noise

        def noise(name: str):  # type: ignore[no-untyped-def]
            factors = usual(name).copy()
            factors[round((falls_at - BEGAN) / STEP) :] *= 2.0 / 3.0
            return factors

        job.noise = noise
        simulator = world(pools)
        simulator.add([job])
        asked_at = 0.0
        while simulator.now < BEGAN + 1.5 * HOUR:
            simulator.run(simulator.now + 20.0)
            migration = job.job.state.migration
            if migration is not None and migration.phase is Phase.CHECKPOINTING:
                asked_at = migration.phase_since
            if migration is not None and migration.phase is Phase.DRAINING:
                return migration, asked_at
        raise AssertionError("it never left")

    steady, at = baseline(BEGAN + 2.0 * HOUR)
    count = len(steady.baseline_rates)
    usual = steady.baseline_rates[0]
    fallen, again = baseline(at - 40.0)
    assert again == at and len(fallen.baseline_rates) == count
    assert fallen.baseline_rates[-1] < 0.95 * usual < fallen.baseline_rates[-2]
