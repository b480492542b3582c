"""Which of several functions is the step, and how it is counted."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rightpool_agent import steps  # type: ignore[import-not-found]
from rightpool_agent.steps import StepLog, Track


def play(log: StepLog, *tracks: Track, steps: int, each: float = 0.1, rows: int = 4, start: float = 0.0) -> float:
    """Each step calls the tracks one after the other; returns the time of the last call."""
    at = start
    for _ in range(steps):
        for track in tracks:
            at += each / len(tracks)
            log.add(track, at, rows)
    log.drain()
    return at


def test_the_step_is_the_heaviest_function_called_once_per_step() -> None:
    log, light, heavy = StepLog(), Track(1.0, True), Track(1000.0, True)
    play(log, light, heavy, light, steps=10)
    assert log.dominant is heavy
    assert (log.steps, log.samples) == (10, 40)
    assert sum(log.counts) == 9, "the first call has no interval"


def test_setup_is_no_step() -> None:
    log, start = StepLog(), Track(1e9, True)
    log.add(start, 0.0, 1)
    log.add(start, 100.0, 1)
    log.drain()
    assert (log.dominant, log.steps) == (None, 0)


def test_totals_continue_when_the_step_changes() -> None:
    """A program that goes from pre-training to fine-tuning: no jump, no decrease, and nothing is missed."""
    log, first, second = StepLog(), Track(10.0, True), Track(10.0, True)
    at = play(log, first, steps=10)
    assert log.steps == 10
    at = play(log, second, steps=10, start=at)
    assert (log.dominant, log.steps, log.samples) == (second, 20, 80)
    at = play(log, second, steps=10, start=at)
    assert (log.steps, log.samples) == (30, 120)
    assert 25 <= sum(log.counts) <= 28, "the first calls of each have no interval"


@given(
    phases=st.lists(st.tuples(st.integers(0, 3), st.integers(6, 40), st.integers(1, 9)), min_size=1, max_size=8),
    drains=st.integers(1, 50),
)
def test_phases_are_counted_whenever_the_agent_looks(phases: list[tuple[int, int, int]], drains: int) -> None:
    """Models in turn, each with functions of its own, in one look or in many."""
    log, tracks = StepLog(), [Track(10.0, True) for _ in range(4)]
    helper, at, calls, before = Track(1.0, False, trains=False), 0.0, 0, (0, 0)
    for which, steps_of_phase, rows in phases:
        for _ in range(steps_of_phase):
            at += 0.01
            log.add(tracks[which], at, rows)
            log.add(helper, at + 0.001, 0)
            calls += 1
            if calls % drains == 0:
                log.drain()
                assert (log.steps, log.samples) >= before
                before = log.steps, log.samples
    log.drain(final=True)
    assert (log.steps, log.samples) == (calls, sum(count * rows for _, count, rows in phases))
    assert log.has_samples


@pytest.mark.parametrize("critics", [1, 2, 5, 50])
def test_functions_that_take_turns_within_a_step_are_no_phases(critics: int) -> None:
    """A GAN, whose critic may make several steps for each of the generator's."""
    log, critic, generator = StepLog(), Track(10.0, True), Track(9.0, True)
    at = 0.0
    for step in range(40):
        for _ in range(critics):
            at += 0.01
            log.add(critic, at, 4)
        at += 0.01
        log.add(generator, at, 4)
        if step % 7 == 0:
            log.drain()
    log.drain(final=True)
    assert (log.dominant, log.steps, log.samples) == (critic, 40 * critics, 160 * critics)


@pytest.mark.parametrize("drains", [1, 7, 300, 10_000])
def test_functions_that_take_turns_may_have_phases_too(drains: int) -> None:
    """Optimizers that are compared, each with a function of its own, in two parts of a notebook. The first one of each
    part has the smallest state, and is not the step once the others have been called."""
    log, at, calls = StepLog(), 0.0, 0
    for count in (800, 400):
        tracks = [Track(10.0, True) for _ in range(4)]
        for track, state in zip(tracks, (8.0, 30.0, 40.0, 20.0), strict=True):
            track.recurs, track.state = True, state
        for _ in range(count):
            for track in tracks:
                at += 0.001
                log.add(track, at, 4)
            calls += 1
            if calls % drains == 0:
                log.drain()
    log.drain(final=True)
    assert (log.steps, log.samples) == (1200, 4800)


@pytest.mark.parametrize("known", [(True, False), (False, True)])
def test_samples_are_absent_where_one_phase_does_not_show_them(known: tuple[bool, bool]) -> None:
    log, first, second = StepLog(), Track(10.0, known[0]), Track(10.0, known[1])
    at = play(log, first, steps=10)
    assert log.has_samples is known[0]
    play(log, second, steps=10, start=at)
    assert log.steps == 20 and not log.has_samples


@pytest.mark.parametrize("unlike", ["state", "weight", "products", "trains", "opaque", "doubtful"])
def test_what_is_unlike_the_step_begins_no_phase(unlike: str) -> None:
    """Metrics, a sampler, an environment, a loop of unknown length: they come after the training, and are no steps."""
    log, step, other = StepLog(), Track(10.0, True), Track(10.0, True)
    for track in (step, other):
        track.recurs, track.state, track.products = True, 100.0, {"float32": 1.0}
    setattr(other, unlike, {"state": 20.0, "weight": 2.0, "products": {}, "trains": False}.get(unlike, True))
    if unlike == "trains":
        other.recurs = False
    at = play(log, step, steps=40)
    play(log, other, steps=10, start=at)
    assert (log.dominant, log.steps, log.samples) == (step, 40, 160)


@pytest.mark.parametrize("recurs", [True, False])
def test_what_may_be_a_helper_is_the_step_once_it_gets_its_own_state_back(recurs: bool) -> None:
    log, update = StepLog(), Track(10.0, False)
    update.doubtful, update.recurs, update.each = True, recurs, 1
    at = play(log, update, steps=10)
    assert log.steps == (10 if recurs else 0)
    later = Track(10.0, False)
    later.doubtful, later.recurs, later.each = True, recurs, 1
    play(log, later, steps=10, start=at)
    assert log.steps == (20 if recurs else 0), "a phase with an update of its own"


def test_a_helper_that_was_counted_too_early() -> None:
    """Looked at before the first step had ended, the helper was all there was."""
    log, helper, step = StepLog(), Track(1.0, False), Track(1000.0, True)
    at = play(log, helper, steps=5, rows=0, each=0.001)
    assert (log.steps, log.samples) == (5, 0)
    play(log, helper, step, steps=20, start=at)
    assert log.dominant is step
    assert (log.steps, log.samples) == (20, 80)


def test_the_step_has_yet_to_reach_what_was_counted_too_early() -> None:
    """The first call of a network may loop over time, and looks like a training loop until the step is seen."""
    log, loop, step = StepLog(), Track(10.0, False), Track(1000.0, True)
    for track, state in ((loop, 10.0), (step, 1000.0)):
        track.recurs, track.state = True, state
    at = play(log, loop, steps=8, each=0.001)
    at = play(log, step, steps=3, start=at)
    assert (log.dominant, log.steps) == (step, 8)
    at = play(log, step, steps=3, start=at)
    assert log.steps == 8, "no decrease, and no jump"
    play(log, step, steps=14, start=at)
    assert (log.steps, log.samples) == (20, 80)


def test_a_phase_of_a_smaller_model_stays_counted() -> None:
    log, small, large = StepLog(), Track(10.0, True), Track(1000.0, True)
    for track, state in ((small, 10.0), (large, 1000.0)):
        track.recurs, track.state = True, state
    at = play(log, small, steps=500)
    play(log, large, steps=3, start=at)
    before = log.steps
    play(log, large, steps=5, start=at + 1.0)
    assert before >= 500 and log.steps == before + 5


def test_an_evaluation_that_keeps_its_scores_is_no_step_however_long_it_takes() -> None:
    """It gets back what it has returned, as a training step does, and its batches may be larger."""
    log, step, evaluation = StepLog(), Track(2000.0, True), Track(3000.0, True)
    for track, state in ((step, 1000.0), (evaluation, 8.0)):
        track.recurs, track.state = True, state
    at = play(log, evaluation, steps=6, each=1.0)  # as before the training, to check that it works
    at = play(log, step, steps=20, start=at)
    play(log, evaluation, steps=6, each=1.0, start=at)
    assert log.dominant is step
    assert (log.steps, log.samples) == (20, 80)


def test_compilation_time_is_not_counted() -> None:
    """The first call of the step compiles and is not counted; its time is not the helper's that was called before."""
    log, helper, step = StepLog(), Track(1.0, False), Track(1000.0, True)
    at = play(log, helper, steps=2, each=0.001)
    log.interruptions.append(at + 60.0)
    at = play(log, helper, steps=3, each=0.001, start=at + 61.0)
    at = play(log, helper, step, steps=20, start=at)
    assert log.dominant is step
    assert log.steps == 20


def test_an_interval_with_a_compilation_is_not_a_step_time() -> None:
    log, track = StepLog(), Track(1.0, True)
    at = play(log, track, steps=5)
    log.interruptions.append(at + 30.0)
    log.add(track, at + 60.0, 4)
    log.drain()
    assert log.steps == 6
    assert log.seconds < 1.0


def test_a_forked_child_begins_at_zero() -> None:
    log, track = StepLog(), Track(1.0, True)
    at = play(log, track, steps=10)
    log.reset()
    assert (log.steps, log.samples, sum(log.counts)) == (0, 0, 0)
    play(log, track, steps=3, start=at + 100)
    assert (log.steps, log.samples, sum(log.counts)) == (3, 12, 2)


def test_a_child_that_is_forked_in_a_later_phase_begins_at_zero() -> None:
    log, first, second = StepLog(), Track(10.0, True), Track(10.0, True)
    at = play(log, first, steps=10)
    for track in (second, first):
        at = play(log, track, steps=10, start=at)
    assert (log.steps, log.samples) == (30, 120)
    log.reset()
    at = play(log, first, steps=5, start=at + 100)
    assert (log.steps, log.samples) == (5, 20)
    play(log, second, steps=10, start=at)
    assert (log.steps, log.samples) == (15, 60)


def test_a_child_forked_late_waits_for_what_trains_as_its_parent_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations before its first step are no steps, however long ago its parent imported the framework."""
    now = [0.0]
    monkeypatch.setattr(steps, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    log, evaluation, step = StepLog(), Track(1000.0, True, trains=False), Track(1000.0, True)
    now[0] = 600.0
    log.reset()
    at = play(log, evaluation, steps=8, start=600.0)
    assert log.steps == 0
    play(log, step, steps=20, start=at)
    assert (log.steps, log.samples) == (20, 80)


def test_a_save_is_found_among_fast_steps() -> None:
    log, track = StepLog(), Track(1.0, True)
    at = play(log, track, steps=100, each=0.001)
    at = play(log, track, steps=100, each=0.001, start=at)
    log.add(track, at + 2.0, 4)
    log.drain()
    at = play(log, track, steps=5000, each=0.001, start=at + 2.0)
    assert abs(log.held_up(0.2 + 1.0) - 1.999) < 0.01
    assert log.held_up(0.05) == 0.0


def test_functions_that_turn_out_to_take_turns_are_one_step_and_nothing_counts_twice() -> None:
    """One of them was the step for a while: what was reported of it stays."""
    for early in (True, False):
        log, main, rest = StepLog(), Track(10.0, True), Track(9.0, True)
        first, second = (rest, main) if early else (main, rest)
        at = play(log, first, steps=4, rows=3)
        assert (log.dominant, log.steps, log.samples) == (first, 4, 12)
        log.add(second, at + 0.1, 5)
        rest.joins = main
        before = log.steps
        play(log, main, rest, steps=10, start=at + 0.1, rows=4)
        assert log.dominant is main and log.steps >= before
        assert (log.steps, log.samples) == (4 + 1 + 20, 12 + 5 + 80)
        assert sum(log.counts) <= log.steps
        at += 2.0
        assert log.seconds <= at


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_of_three_that_turn_out_to_be_one_training_no_step_is_lost(order: tuple[int, int, int]) -> None:
    """Known one after the other, before the agent looks again. The program ends with the main one."""
    log, found = StepLog(), [Track(10.0, True) for _ in range(3)]
    rest, single, main = found
    at = play(log, *(found[place] for place in order), steps=5)
    rest.joins, single.joins = single, main
    play(log, main, steps=5, start=at)
    assert (log.dominant, log.steps, log.samples) == (main, 20, 80)


@pytest.mark.parametrize(("rows", "known"), [(8, False), (4, False), (1, True)])
def test_a_smaller_network_that_learns_several_times_a_step_belongs_to_it(rows: int, known: bool) -> None:
    """As the critic of a WGAN does: the step's parameters are not all, nor are its rows if the critic's are more."""
    log, critic, generator = StepLog(), Track(10.0, True), Track(1000.0, True)
    for track, size in ((critic, 10), (generator, 1000)):
        track.recurs, track.state, track.parameters, track.each, track.flops = True, 4.0 * size, size, 1, 2.0 * size
    at = 0.0
    for _ in range(20):
        at = play(log, critic, steps=4, each=0.01, rows=rows, start=at)
        at = play(log, generator, steps=1, rows=4, start=at)
    assert (log.dominant, log.steps, log.has_samples) == (generator, 20, known)
    assert (log.parameters, log.flops) == (None, None)


def test_another_network_that_learns_now_and_then_is_trained_as_well() -> None:
    log, critic, generator = StepLog(), Track(1000.0, True), Track(10.0, True)
    for track, size in ((critic, 1000), (generator, 10)):
        track.recurs, track.state, track.parameters, track.each, track.flops = True, 4.0 * size, size, 1, 2.0 * size
    at = 0.0
    for _ in range(20):
        at = play(log, critic, steps=5, start=at)
        at = play(log, generator, steps=1, each=0.01, start=at)
    assert (log.dominant, log.steps, log.has_samples) == (critic, 100, True)
    assert (log.parameters, log.flops) == (None, None)
