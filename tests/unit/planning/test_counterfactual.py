"""What a job would do without its moves: the measured ratio and the predicted one, each by how sure it is."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.counterfactual import Counterfactual
from rightpool.api.estimate import Z80
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.variation import SlowStart, SpanDifference, Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.books.accounting import remeasured
from rightpool.planning.books.counterfactual import (
    BEFORE_SECONDS,
    Level,
    counterfactual_of_move,
    drift_of,
    level_after,
    speed,
)
from rightpool.planning.jobs.job import Job
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.steadiness import PRIOR_SD, SPANS, counted
from rightpool.profiles.track import Track
from tests.unit.planning.jobs import changed
from tests.unit.planning.world import World

HOME = Placement("home", 4, 1)
WINDOW = 300.0


def there(measured: float = 1000.0, predicted: float | None = None, doubt: float = 0.05) -> Counterfactual:
    return Counterfactual(
        HOME,
        10.0,
        since=0.0,
        baseline=measured,
        baseline_at=-150.0,
        predicted=predicted,
        predicted_doubt=doubt,
        windows=1,
    )


def varying(spread: float, windows: int = 48, length: int = 1) -> Variation:
    """Of a job whose rate is e^spread and e^-spread times the usual by turns, for so many windows each."""
    variation = None
    for number in range(windows):
        factor = math.exp(spread * (-1) ** (number // length))
        variation = counted(variation, 2, 1000.0 * factor, number * WINDOW, WINDOW)
    assert variation is not None
    return variation


def ratio(made: Counterfactual, rate: float, spread: float = 0.05, hours: float = 1.0) -> float:
    variation = varying(spread)
    found = speed(made, Level(rate, 0.0, windows=round(hours * 3600.0 / WINDOW)), variation)
    assert found is not None
    return found.ratio


def test_noise_that_lasts_makes_a_slow_hour_before_a_move_count_for_less() -> None:
    """Hours that follow each other differ by the same, but with one kind of noise because each is by itself, and with
    the other although one is like the next. An hour of another place is not like either."""

    def spans(growth: float) -> Variation:
        by_length = {1: 0.02, 3: 0.02, 6: 0.014 / growth, 12: 0.014}
        return Variation(2, 0.0, (), tuple(SpanDifference(length, 288.0, by_length[length]) for length in SPANS))

    made = replace(there(750.0, predicted=1.0), windows=12)
    brief, lasting = (speed(made, Level(1000.0, 0.0, 24), spans(growth)) for growth in (0.5, 1.3))
    assert brief is not None and lasting is not None
    assert math.log(lasting.ratio) > 0.9 * math.log(brief.ratio), "nearer to what was predicted"


def test_a_slow_quarter_of_an_hour_before_a_move_is_no_saving() -> None:
    """Of two pools of the same chip one was measured 25% slower, by a job that varies by 20%."""
    assert ratio(there(800.0, predicted=1.0), 1000.0, spread=0.2) == pytest.approx(1.0, abs=0.05)


def test_a_steady_job_is_believed() -> None:
    """A pool of throttled chips: the model knows nothing of it."""
    assert ratio(there(800.0, predicted=1.0), 1000.0, spread=0.001) == pytest.approx(0.8, abs=0.02)


def test_without_a_prediction_the_measurement_counts() -> None:
    assert ratio(there(800.0), 1000.0, spread=0.05) == pytest.approx(0.8, abs=0.01)


def test_the_mean_of_what_is_divided_by_is_not_the_inverse_of_its_mean() -> None:
    """Windows of e^±0.2: 1/r is larger in the mean than 1 over the mean r, by half of the variance of their ratio."""
    assert ratio(there(800.0), 1000.0, spread=0.2) == pytest.approx(0.8 * math.exp(0.4**2 / 2.0), rel=0.01)


@given(st.floats(1.0, 1e6), st.floats(1.0, 1e6), st.floats(0.01, 100.0), st.floats(0.0, 2.0), st.floats(0.0, 0.5))
def test_it_is_between_what_was_measured_and_what_was_predicted(
    before: float, after: float, predicted: float, doubt: float, spread: float
) -> None:
    found = ratio(there(before, predicted, doubt), after, spread)
    low, high = sorted((before / after, predicted))
    assert low * 0.999 <= found <= high * math.exp(2.0 * spread**2 + 0.01)


@given(st.floats(0.5, 2.0), st.floats(0.0, 0.3), st.none() | st.floats(0.01, 0.5))
def test_noise_alone_errs_one_way_as_often_as_the_other(apart: float, spread: float, doubt: float | None) -> None:
    """Two spans of one length, the one first or the other: what is left is what the mean of an inverse takes."""
    variation, windows = varying(spread), round(BEFORE_SECONDS / WINDOW)
    logs = []
    for before, after in ((1000.0, 1000.0 * apart), (1000.0 * apart, 1000.0)):
        made = there(before, None if doubt is None else 1.0, doubt or 0.0)
        found = speed(replace(made, windows=windows), Level(after, 0.0, windows), variation)
        assert found is not None
        logs.append(math.log(found.ratio))
    most = max(2.0 * PRIOR_SD**2, *(span.variance for span in variation.spans))
    assert -1e-9 <= sum(logs) <= most + 1e-9


def running(rate: Callable[[float], float], hours: float, began: float = 0.0) -> Job:
    """A job that has counted `rate` samples a second since `began` until so many hours after a move at 0."""
    track, counter = Track(), 0.0
    for at in range(round(began), round(hours * 3600.0) + 1, 60):
        counter += 60.0 * rate(at - 60.0)
        track.add(Sample(float(at), {Field.SAMPLES: counter, Field.PODS: 1.0}), 1)
    job = World.fresh(profiling={"interval": "10s", "window": "5m"}).job
    return changed(job.with_state(JobState(revision=Revision(2, HOME, since=0.0))), track=track)


def test_what_was_measured_in_a_slow_start_is_compared_with_the_same_part_of_the_start_here() -> None:
    """Half as fast for 45 minutes. The half hour before the move was the first one there."""
    job = running(lambda at: 500.0 if at < 2700.0 else 1000.0, hours=3.0)
    made = replace(there(500.0), windows=6, baseline_age=900.0)

    def level(made: Counterfactual, variation: Variation | None) -> float:
        found = level_after(changed(job, variation=variation), made, 10_800.0)
        assert found is not None
        return found.rate

    known = Variation(2, 10_800.0, slow_start=SlowStart(2700.0, 1350.0, 2))
    assert level(made, known) == pytest.approx(500.0)
    assert level(made, replace(known, slow_start=None)) == pytest.approx(812.5, rel=0.01), (
        "nobody knows that it was one"
    )
    assert level(replace(made, baseline_age=None), known) == pytest.approx(812.5, rel=0.01)
    assert level(replace(made, baseline_age=3600.0, windows=6), known) == pytest.approx(812.5, rel=0.01), "it was over"
    # A part of it was: the same part here.
    assert level(replace(made, baseline_age=1800.0, windows=12), known) == pytest.approx(625.0, rel=0.01)
    # A new operator has not seen all of that part here.
    first = Level(500.0, 900.0, 6)
    for began in (1200.0, 3600.0):
        late = running(lambda _: 1000.0, hours=3.0, began=began)
        assert level_after(changed(late, variation=known), later(made, first), 10_800.0) == first
    # A move within a start that is known to be slow.
    before = replace(known, slow_start=SlowStart(2700.0, 1350.0, 1))
    assert level(made, before) == pytest.approx(500.0)


def test_that_a_job_becomes_faster_after_its_slow_start_is_no_drift() -> None:
    job = running(lambda at: 500.0 if at < 2700.0 else 1000.0, hours=3.9)
    made = replace(there(500.0), windows=6, baseline_age=900.0, baseline_at=-900.0, speed=1.0)
    known = Variation(2, 14_040.0, slow_start=SlowStart(2700.0, 1350.0, 2))
    job = changed(job.with_state(replace(job.state, account=Account(counterfactual=made))), variation=known)
    here = level_after(job, made, 14_040.0)
    assert here is not None and drift_of(job, here) > 0.0
    counted_here = remeasured(job, 14_040.0).state.account.counterfactual
    found = speed(made, here, known)
    assert counted_here is not None and (counted_here.speed, counted_here.speed_doubt) == found


@pytest.mark.parametrize(
    ("windows", "ago", "age"), [(6, 1800.0, 900.0), (12, 4200.0, 2400.0), (12, 7100.0, 5300.0), (12, 7200.0, None)]
)
def test_how_old_a_revision_was_when_it_was_measured_is_kept_where_it_may_have_been_a_slow_start(
    windows: int, ago: float, age: float | None
) -> None:
    """ago: when it began to run, seconds before the move."""
    source, target = Revision(1, HOME, since=-ago), Revision(2, Placement("there", 4, 1))
    move = Migration(
        "d-1", Action.MOVE, Phase.DRAINING, source, target, 0.0, 0.0, Reason.CHEAPER_POOL_MEETS_TARGETS, ""
    )
    job = running(lambda _: 1000.0, hours=1.0)
    job = job.with_state(replace(job.state, revision=source))
    before = Level(1000.0, -windows * WINDOW / 2.0, windows)
    made = counterfactual_of_move(job, before, move)
    assert made is not None and made.baseline_age == age
    unknown = replace(move, source=replace(source, since=None))
    made = counterfactual_of_move(job, before, unknown)
    assert made is not None and made.baseline == 1000.0 and made.baseline_age is None


def later(made: Counterfactual, level: Level) -> Counterfactual:
    return replace(made, rate=level.rate, rate_at=level.at, rate_windows=level.windows, speed=1.0)


def test_what_happens_hours_later_is_not_the_moves() -> None:
    job = running(lambda at: 1000.0 if at < 7200.0 else 500.0, hours=3.5)
    level = level_after(job, there(), 3.5 * 3600.0)
    assert level is not None and level.rate == pytest.approx(1000.0) and level.at == 3600.0 and level.windows == 24


def test_what_was_measured_after_a_move_survives_a_restart_of_the_operator() -> None:
    first = level_after(running(lambda _: 1000.0, hours=1.0), there(), 3600.0)
    assert first is not None
    begun_anew = running(lambda _: 500.0, hours=6.0, began=2.0 * 3600.0)
    assert level_after(begun_anew, later(there(), first), 6.0 * 3600.0) == first
    # As stored before it was kept: what is known of the ratio stays as it is.
    assert level_after(begun_anew, replace(there(), speed=1.0), 6.0 * 3600.0) is None


@given(st.floats(-0.05, 0.05), st.sampled_from((0.0, 0.02)))
def test_what_the_rate_drifts_is_not_saved(an_hour: float, spread: float) -> None:
    """A job whose sequence grows does fewer samples a second after the move than before it."""

    def rate(at: float) -> float:
        return 1000.0 * math.exp(an_hour * at / 3600.0)

    made = replace(there(rate(-1800.0), predicted=None), baseline_at=-1800.0, windows=12)
    first = level_after(running(rate, hours=3.0), made, 3.0 * 3600.0)
    assert first is not None
    late = changed(running(rate, hours=12.0), variation=varying(spread, 288))
    here = level_after(late, later(made, first), 12 * 3600.0)
    assert here == first
    found = speed(made, here, late.observed.variation, drift_of(late, here))
    assert found is not None and found.ratio == pytest.approx(1.0, abs=0.005)


def test_a_slope_that_may_be_noise_is_none() -> None:
    """Of a job that does half more or less for two hours at a time."""
    job = running(lambda at: 1000.0 if at < 7200.0 else 1500.0, hours=3.5)
    here = level_after(job, there(), 3.5 * 3600.0)
    assert here is not None
    rough, steady = (drift_of(changed(job, variation=varying(spread, 96, 24)), here) for spread in (0.2, 0.001))
    assert 0.0 < 3.0 * rough < steady
    assert drift_of(job, replace(here, unit=WorkUnit.STEPS)) == 0.0


def test_a_few_hours_that_happen_to_be_alike_make_little_of_a_difference() -> None:
    """Half hours differ by 40%, and two pairs of hours hardly did so far. Half hours that are alike say otherwise."""
    made, here = replace(there(800.0, predicted=1.0), windows=12), Level(1000.0, 0.0, 12)
    rough, even = speed(made, here, varying(0.2, 36, 6)), speed(made, here, varying(0.001, 36, 6))
    assert rough is not None and even is not None
    assert even.ratio < 0.9 < 0.95 < rough.ratio


def test_how_a_job_varies_is_known_better_after_a_day() -> None:
    """Half hours differ by 40%, and hours do not: three hours say little of that, a day says it."""
    made, here = replace(there(850.0, predicted=1.0), windows=12), Level(1000.0, 0.0, 12)
    early, late = speed(made, here, varying(0.2, 36, 6)), speed(made, here, varying(0.2, 288, 6))
    assert early is not None and late is not None
    assert 0.85 < late.ratio < early.ratio < 1.0


def test_the_truth_is_within_the_doubt_as_often_as_it_says() -> None:
    """Two hours there and here of a job whose windows vary by 5% by themselves, and promises that are as doubtful as
    they say. Other jobs of such windows may vary from hour to hour, so that more than 80% hold the truth."""
    draw = np.random.default_rng(7)
    windows, held = 24, 0
    for _ in range(400):
        truth = math.exp(draw.normal(0.0, 0.15))
        variation, rates = None, []
        for number in range(2 * windows):
            rates.append(1000.0 * math.exp(draw.normal(0.0, 0.05)))
            variation = counted(variation, 2, rates[-1], number * WINDOW, WINDOW)
        before, after = truth * sum(rates[:windows]) / windows, sum(rates[windows:]) / windows
        made = replace(there(before, truth * math.exp(draw.normal(0.0, 0.1)), 0.1), windows=windows)
        found = speed(made, Level(after, 0.0, windows), variation)
        assert found is not None and found.doubt < 0.1
        held += abs(math.log(found.ratio / truth)) < Z80 * found.doubt
    assert held / 400 > 0.8
