"""A program that does nothing for half an hour may evaluate: that is no reason to undo a move, and hides none."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rightpool.api.conditions import Reason
from rightpool.api.estimate import Estimate
from rightpool.api.migration import MAX_BASELINE_RATES, Migration, Phase
from rightpool.api.state import JobState
from rightpool.api.variation import Variation
from rightpool.planning.judge.series import FEWEST_WINDOWS
from rightpool.planning.judge.silence import longest_silence
from rightpool.planning.judge.verdict import Verdict
from rightpool.planning.moves.migration_texts import verified_text
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.targets.registry import yardstick_of
from rightpool.planning.work.verification import Verification, verify
from rightpool.profiles.profile import Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, Sample
from rightpool.profiles.silence import silent_for
from rightpool.profiles.steadiness import counted
from rightpool.profiles.track import Track
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import changed
from tests.unit.planning.test_verification import SAME_CHIPS
from tests.unit.planning.world import complete_profile, moved, on_a100, spec

STEADY = (1000.0,) * 12
SPEC = spec(profiling={"window": "5m"})
LOWER = 8.5
MUCH_LOWER = 7.5
# Dollars an hour, of 10 before.


def judged(
    before: Sequence[float], after: Sequence[float], price: float, reason: Reason = SAME_CHIPS.reason
) -> tuple[int, Verification]:
    """The verdict on a move to the same chips, and after how many windows it is given."""
    seen, mean = None, sum(before) / len(before)
    for number, rate in enumerate(before, 1 - len(before)):
        seen = counted(seen, 1, rate, 300.0 * number, 300.0)
    move = replace(
        SAME_CHIPS,
        reason=reason,
        target=replace(SAME_CHIPS.target, cost_per_hour=price),
        baseline=mean,
        baseline_windows=len(before),
        baseline_rates=tuple(before)[-MAX_BASELINE_RATES:],
        predicted=Estimate(mean, 0.02),
    )
    for number, rate in enumerate(after, 1):
        seen = counted(seen, 2, rate, 300.0 * (number + 1), 300.0)
        result = verify(move, complete_profile(2, rate, 300.0), SPEC, seen, yardstick=yardstick_of(reason))
        if result.verdict is not Verdict.OPEN:
            return number, result
    raise AssertionError("there is a verdict after so many windows")


@pytest.mark.parametrize(
    "after",
    [
        (0.0, 0.0, 0.0, 0.0, *[1000.0] * 20),  # at once
        (500.0, 0.0, 0.0, 0.0, 0.0, 300.0, *[1000.0] * 18),  # from within the first window
    ],
)
def test_a_long_pause_undoes_no_right_move(after: tuple[float, ...]) -> None:
    number, result = judged(STEADY, after, LOWER)
    assert result.verdict is Verdict.BETTER and number > 4, "nothing is said while it pauses"


def test_a_long_pause_before_does_not_hide_a_wrong_move() -> None:
    before = (*[1000.0] * 6, 400.0, 0.0, 0.0, 0.0, 500.0, 1000.0)
    _, result = judged(before, [600.0] * 24, MUCH_LOWER)
    assert result.verdict is Verdict.WORSE


def test_a_wrong_move_is_undone_once_the_pause_is_over() -> None:
    number, result = judged(STEADY, [600.0, 600.0, 0.0, 0.0, 0.0, *[600.0] * 19], MUCH_LOWER)
    assert result.verdict is Verdict.WORSE and 5 < number < 24


def test_where_it_pauses_for_hours_the_pauses_count() -> None:
    """In all for more than an hour: that is not what it does everywhere."""
    _, result = judged(STEADY, [500.0, 0.0, 0.0, 0.0, 0.0, 1000.0] * 4, MUCH_LOWER)
    assert result.verdict is Verdict.WORSE


@pytest.mark.parametrize("before", [STEADY, (*[1000.0] * 8, 0.0, 0.0, 0.0, 0.0)])
@pytest.mark.parametrize("first", [(), (500.0,)])
def test_a_program_that_hangs_there_is_worse_off(before: tuple[float, ...], first: tuple[float, ...]) -> None:
    number, result = judged(before, [*first, *[0.0] * 24], LOWER)
    assert (number, result.verdict, result.throughput) == (len(first) + longest_silence(300.0), Verdict.IDLE, 0.0)
    assert "the program does nothing there" in verified_text(SAME_CHIPS, result)


@pytest.mark.parametrize("reason", [Reason.MAX_COST_PER_HOUR_EXCEEDED, Reason.PLACEMENT_DISALLOWED])
def test_a_move_that_slowness_does_not_undo_waits_to_see_whether_a_slow_program_goes_on(reason: Reason) -> None:
    """One that hangs after its first steps has worked in a part of its first window."""
    number, result = judged(STEADY, [400.0, *[0.0] * 24], LOWER, reason)
    assert (number, result.verdict, result.throughput) == (1 + longest_silence(300.0), Verdict.IDLE, 0.0)
    number, result = judged(STEADY, [400.0] * 24, LOWER, reason)
    assert (number, result.verdict) == (FEWEST_WINDOWS, Verdict.SAME)
    number, result = judged(STEADY, [1000.0] * 24, LOWER, reason)
    assert (number, result.verdict) == (1, Verdict.BETTER)


@pytest.mark.parametrize(("window", "windows"), [(300.0, 12), (600.0, 12), (180.0, 20), (60.0, 24), (30.0, 24)])
def test_it_may_be_silent_for_an_hour_where_so_many_windows_are_kept(window: float, windows: int) -> None:
    assert longest_silence(window) == windows


def test_what_counts_once_in_ninety_minutes_does_not_hang_in_between() -> None:
    """It was silent for most of the time before, too."""
    turn = (*[0.0] * 17, 18_000.0)
    _, result = judged((*turn[-12:], *turn)[-24:], turn * 2, LOWER)
    assert result.throughput > 0.0
    number, result = judged(turn, [0.0] * 30, LOWER)
    assert (number, result.verdict, result.throughput) == (24, Verdict.IDLE, 0.0)


def test_after_a_burst_it_is_not_silent() -> None:
    """As where a counter jumps: against what it did before the move it works as it did."""
    recent = (1000.0, 60_000.0, *[1000.0] * 12)
    assert silent_for(recent) == 12 and silent_for(recent, 1000.0) == 0
    seen = None
    for number, rate in enumerate(recent, 1):
        seen = counted(seen, 2, rate, 300.0 * number, 300.0)
    move = replace(SAME_CHIPS, baseline=1000.0, baseline_rates=STEADY)
    assert verify(move, complete_profile(2, 1000.0, 4200.0), SPEC, seen).throughput > 0.0


def verifying(windows: Sequence[float], seconds: float, worked_until: float) -> Migration | None:
    """What becomes of a move so many seconds after it arrived, with windows of a minute, of which the newest are these.
    worked_until: seconds after it arrived."""
    world = on_a100(profiling={"window": "1m"})
    moved(world).reach(Phase.VERIFYING)
    began, track = world.now, Track()
    for at in range(0, int(seconds) + 1, 30):
        track.add(Sample(began + at, {Field.SAMPLES: 900.0 * min(at, worked_until), Field.PODS: 1.0}), 1)
    now = began + seconds
    there = Variation(2, now, tuple(windows), window_seconds=60.0)
    seen = changed(world.observed(), variation=there, profile=complete_profile(2, windows[-1], now), track=track)
    return advance(seen, None, world.policy, now, decision_text).state.migration


def test_with_short_windows_too_it_may_do_nothing_for_an_hour() -> None:
    """As many windows as are kept are less than half of that."""
    evaluates = verifying([0.0] * 24, 2400.0, 600.0)
    assert evaluates is not None and evaluates.phase is Phase.VERIFYING and not evaluates.rolling_back
    again = verifying([*[0.0] * 21, *[900.0] * 3], 2400.0, 2400.0)
    assert again is not None and again.phase is Phase.VERIFYING, "nothing is told by three windows"
    hangs = verifying([0.0] * 24, 4260.0, 600.0)
    assert hangs is not None and hangs.rolling_back and hangs.phase is Phase.CHECKPOINTING


@pytest.mark.parametrize("killed", [False, True])
def test_what_hangs_with_short_windows_leaves_without_a_save(killed: bool) -> None:
    """killed: the operator, while it waits for the save. The next one does not know the count of an hour ago."""
    world = on_a100(profiling={"window": "1m"})
    moved(world).reach(Phase.VERIFYING)
    began, track = world.now, Track()
    for at in range(0, 4201, 30):
        track.add(Sample(began + at, {Field.SAMPLES: 5.0, Field.PODS: 1.0}), 1)
    job, now = world.observed(), began + 4200.0
    for later in (now, now + 121.0):
        there = Variation(2, later, (0.0,) * 24, window_seconds=60.0)
        seen = changed(job, variation=there, profile=complete_profile(2, 0.0, later), track=track)
        job = advance(seen, None, world.policy, later, decision_text)
        job = job.with_state(JobState.from_dict(job.state.to_dict()))
        track = Track() if killed else track
    migration = job.state.migration
    assert migration is not None and migration.rolling_back and migration.phase is Phase.DRAINING


def test_what_worked_there_at_first_and_was_started_anew_leaves_without_a_save() -> None:
    """Its windows tell that it worked, and it shows no step since."""
    world = on_a100(profiling={"window": "5m"})
    moved(world).reach(Phase.VERIFYING)
    started = Reading(0.0, 0.0, 0.0, Quality.MEASURED)
    job, now = world.observed(), world.now
    for later in (now + 5.0 * 3600.0, now + 5.0 * 3600.0 + 121.0):
        profile = replace(complete_profile(2, 0.0, later), steadiness=Steadiness.WARMING_UP)
        seen = changed(
            job,
            variation=Variation(2, now, (900.0,) * 3),
            profile=replace(profile, readings={Field.STEPS: started}),
        )
        job = advance(seen, None, world.policy, later, decision_text)
    migration = job.state.migration
    assert migration is not None and migration.rolling_back and migration.phase is Phase.DRAINING


@pytest.mark.parametrize("works", [False, True])
def test_what_stops_in_its_warm_up_goes_back_too(works: bool) -> None:
    """Three steps, and no more: no window of it is ever complete. One that makes a step in 25 minutes does not hang."""
    world = on_a100(profiling={"window": "5m"})
    moved(world).reach(Phase.WARMING_UP)
    world.answers, job, began, track = False, world.observed(), world.now, Track()
    for later in range(60, 3 * 3600, 60):
        steps = min(3.0, 1.0 + later // 1500) if works or later > 60 else 0.0
        counted_so_far = 1.5e6 * (later // 1500 if works else 3.0)
        track.add(Sample(began + later, {Field.SAMPLES: counted_so_far, Field.PODS: 1.0}), 1)
        made = Reading(steps, steps, steps, Quality.MEASURED)
        profile = replace(complete_profile(2, 0.0, began + later), steadiness=Steadiness.WARMING_UP)
        seen = changed(job, profile=replace(profile, readings={Field.STEPS: made}), variation=None, track=track)
        job = advance(seen, None, world.policy, began + later, decision_text)
        if job.state.migration is None or job.state.migration.phase is Phase.DRAINING:
            break
    if works:
        assert job.state.migration is None and job.state.history[-1].reason is Reason.TELEMETRY_UNAVAILABLE
    else:
        assert job.state.migration is not None and job.state.migration.rolling_back
        assert "no step within 60 min after its first ones there" in (job.state.migration.failure_message or "")
