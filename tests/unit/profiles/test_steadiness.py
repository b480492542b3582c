"""How windows of a job differ by themselves, and what that says of means of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rightpool.api.variation import MAX_RECENT, SlowStart, SpanDifference, Variation
from rightpool.profiles.profile import Reading
from rightpool.profiles.sample import Quality
from rightpool.profiles.steadiness import (
    GOES_ALONG,
    HOURS_SD,
    PRIOR_SD,
    SPANS,
    counted,
    doubt_of_ratio,
    doubt_of_rest,
    of_window_length,
    pace,
    quantile_of_t,
    variance_between_places,
    variance_of_difference,
    window_doubt,
    worth_keeping,
)

WINDOW = 300.0


def seen(rates: list[float], revision: int = 1, before: Variation | None = None) -> Variation:
    variation, at = before, 0.0 if before is None else before.as_of
    for rate in rates:
        at += WINDOW
        variation = counted(variation, revision, rate, at, WINDOW)
    assert variation is not None
    return variation


def noise(sd: float, length: int, count: int = 600) -> list[float]:
    """Levels that last for so many windows."""
    draw = np.random.default_rng(1)
    levels = np.exp(sd * draw.standard_normal(count // length + 1))
    return [1000.0 * float(level) for level in np.repeat(levels, length)[:count]]


@pytest.mark.parametrize("sd", [0.02, 0.2])
def test_what_two_windows_differ_by_is_found(sd: float) -> None:
    variance, freedom = variance_of_difference(seen(noise(sd, 1)), 1)
    assert variance == pytest.approx(2.0 * sd**2, rel=0.25)
    assert freedom > 100


def test_noise_that_lasts_longer_than_a_window_is_not_taken_for_none() -> None:
    """Readings of one window are alike, and so are the windows of one block; longer spans tell."""
    blocks = seen(noise(0.2, 6))
    naive = 0.2 / math.sqrt(6.0)
    assert doubt_of_ratio(blocks, 6, 6)[0] > 2.0 * naive
    assert doubt_of_ratio(seen(noise(0.2, 1)), 12, 12)[0] < 0.12


def lasting(windows: float, variance: float = 0.04) -> Variation:
    """Of a job that was watched for ever, whose noise has this correlation time; 0 is white."""

    def difference(length: int) -> float:
        """Twice the variance of a mean, less the covariance with that of the span before it."""
        steps = np.arange(length)
        found = np.exp(-np.abs(steps[:, None] - steps) / windows) if windows else np.eye(length)
        before = np.exp(-(length + steps[:, None] - steps) / windows) if windows else np.zeros((length, length))
        return 2.0 * variance * float(found.mean() - before.mean())

    spans = tuple(SpanDifference(length, 1e9, difference(length)) for length in SPANS)
    return Variation(1, 0.0, (1000.0,), spans)


@pytest.mark.parametrize("windows", [0.0, 1.0, 2.0, 4.0, 8.0, 12.0, 18.0])
def test_noise_of_another_place_is_not_that_of_this_one(windows: float) -> None:
    """Where noise lasts, an hour is like the hour before it. That is so of the job's own noise, wherever it runs, but
    not of two places: their hours differ as hours do that are far apart."""
    variation = lasting(windows)
    one_after_the_other, _ = variance_of_difference(variation, 12)
    steps = np.arange(12)
    found = np.exp(-np.abs(steps[:, None] - steps) / windows) if windows else np.eye(12)
    far_apart = 2.0 * 0.04 * float(found.mean())
    expected = GOES_ALONG * one_after_the_other + (1.0 - GOES_ALONG) * far_apart
    assert variance_between_places(variation, 12) == pytest.approx(expected, rel=0.07)


def test_a_drift_is_not_taken_for_noise_without_end() -> None:
    """Of spans twice as long it makes four times as much."""
    drifting = Variation(1, 0.0, (), tuple(SpanDifference(length, 1e9, 1e-4 * length**2) for length in SPANS))
    assert variance_between_places(drifting, 12) < 3.0 * variance_of_difference(drifting, 12)[0]
    assert variance_between_places(None, 12) == variance_of_difference(None, 12)[0]


def test_a_drift_makes_long_spans_differ_by_more() -> None:
    drifting = seen([1000.0 * math.exp(0.01 * number) for number in range(200)])
    short, long = (variance_of_difference(drifting, length)[0] for length in (1, 12))
    assert long == pytest.approx(0.12**2, rel=0.2)
    assert long > short


def test_before_anything_is_seen_a_prior_holds() -> None:
    assert variance_of_difference(None, 1)[0] == pytest.approx(2.0 * PRIOR_SD**2)
    assert doubt_of_rest(seen([1000.0]), 1) == pytest.approx(HOURS_SD * math.sqrt(2.0))
    assert doubt_of_rest(seen(noise(0.01, 1)), 24) < HOURS_SD / 2.0


def test_windows_of_another_revision_are_not_compared() -> None:
    here = seen([1000.0] * 24)
    there = seen([100.0] * 24, 2, here)
    assert variance_of_difference(there, 1)[0] < 0.01
    assert pace(there, 1) is None
    found = pace(there, 2)
    assert found is not None and (found.rate, found.windows) == (pytest.approx(100.0), 24)


def test_what_was_measured_before_the_operator_was_away_for_long_does_not_count() -> None:
    before = seen([1000.0] * 12)
    assert counted(before, 1, 100.0, before.as_of + 13 * WINDOW, WINDOW).recent == (100.0,)


def test_a_window_without_progress_is_no_certainty() -> None:
    """The 10th percentile of readings is 0 where an evaluation runs: that made the doubt 0."""
    assert window_doubt(Reading(900.0, 0.0, 1000.0, Quality.MEASURED)) > 0.1
    paused = seen([1000.0, 0.0, 1000.0, 1000.0] * 6)
    assert doubt_of_ratio(paused, 1, 1)[0] > 1.0
    found = pace(paused, 1)
    assert found is not None and found.rate == pytest.approx(750.0)


def test_readings_vary_by_more_than_their_mean() -> None:
    reading = Reading(1000.0, 750.0, 1250.0, Quality.MEASURED)
    assert window_doubt(reading) < 0.5 * math.log(1250.0 / 750.0) / 2.56


@pytest.mark.parametrize(
    ("freedom", "exact", "most"),
    [(2.0, 9.925, 0.13), (3.0, 5.841, 0.04), (5.0, 4.032, 0.01), (10.0, 3.169, 0.01), (1e6, 2.576, 0.001)],
)
def test_few_observations_need_more(freedom: float, exact: float, most: float) -> None:
    found = quantile_of_t(2.5758, freedom)
    assert (1.0 - 1e-3) * exact <= found <= (1.0 + most) * exact


def test_what_is_kept_is_small_and_is_read_as_it_was_written() -> None:
    variation = seen(noise(0.1, 3))
    assert len(variation.recent) == MAX_RECENT
    assert len(str(variation.to_dict())) < 1000
    again = Variation.from_dict(variation.to_dict())
    assert again.recent == pytest.approx(variation.recent, rel=1e-4)
    assert again.to_dict() == variation.to_dict()


def test_a_thousand_windows_are_five_writes() -> None:
    stored, written, variation = None, [], None
    for number in range(1000):
        variation = counted(variation, 1, 1000.0, number * WINDOW, WINDOW)
        if worth_keeping(stored, variation):
            stored = variation
            written.append(number)
    assert written == [12, 24, 48, 96, 192]


def test_what_is_learned_of_a_start_is_written_at_once() -> None:
    plain = None
    for number in range(400):
        plain = counted(plain, 1, 1000.0, number * WINDOW, WINDOW)
    assert plain is not None
    slow = replace(plain, as_of=plain.as_of + WINDOW, slow_start=SlowStart(2700.0, 1234.56789, 1))
    assert worth_keeping(plain, slow)
    stored = Variation.from_dict(slow.to_dict())
    assert not worth_keeping(stored, replace(slow, as_of=slow.as_of + WINDOW)), "what is stored has fewer digits"
    assert worth_keeping(stored, replace(plain, as_of=slow.as_of + WINDOW)), "else a restart would bring it back"


def test_what_was_counted_of_windows_of_another_length_is_forgotten() -> None:
    """An hour of one is five minutes of the other."""
    stored = Variation.from_dict(seen(noise(0.3, 3)).to_dict())
    assert of_window_length(stored, WINDOW) is stored and of_window_length(None, WINDOW) is None
    short = of_window_length(stored, WINDOW / 12)
    assert short is not None
    assert doubt_of_ratio(short, 3, 3) == doubt_of_ratio(None, 3, 3) != doubt_of_ratio(stored, 3, 3)


def test_windows_of_another_length_are_stored_once_there_are_enough() -> None:
    """A day of the former ones does not keep them out."""
    stored = variation = None
    for number in range(400):
        stored = counted(stored, 1, 1000.0, number * WINDOW, WINDOW)
    assert stored is not None
    variation, written = stored, []
    for number in range(1, 50):
        variation = counted(variation, 1, 1000.0, stored.as_of + number * 60.0, 60.0)
        if worth_keeping(stored, variation):
            written.append(number)
            break
    assert written == [13]


@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=80))
@example([0.0, 5e-324])
def test_whatever_is_measured_gives_numbers(rates: list[float]) -> None:
    variation = seen(rates)
    sd, freedom = doubt_of_ratio(variation, 3, 6)
    assert 0.0 < variance_of_difference(variation, 12)[0] <= variance_between_places(variation, 12)
    assert math.isfinite(sd) and sd > 0.0 and freedom > 0.0
    found = pace(variation, 1)
    variance, _ = variance_of_difference(variation, 3)
    assert found is None or (found.rate > 0.0 and math.isfinite(variance) and variance >= 0.0)
