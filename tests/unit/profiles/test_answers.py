"""The last minutes of a server in few numbers."""

from __future__ import annotations

import math

import pytest

from rightpool.profiles.answers import Answers, answers_of
from rightpool.profiles.latency import Between, Distribution
from rightpool.profiles.sample import Quality
from rightpool.profiles.served import RequestCounter, RequestTime, ServedWindow, ServerCounts


def window(
    at: float, requests: float, *, errors: float = 0.0, late: float = 0.0, complete: bool = True
) -> ServedWindow:
    counts = {RequestCounter.REQUESTS: requests, RequestCounter.ERRORS: errors}
    times = {RequestTime.WHOLE: Distribution((0.05, 0.1), (requests - late, requests - late), requests)}
    return ServedWindow(at, 15.0, ServerCounts(counts, times, {}), 2, complete)


def test_windows_add_up() -> None:
    answers = answers_of(3, [window(15.0, 150.0), window(30.0, 450.0, errors=6.0)])
    assert answers == Answers(3, 20.0, 0.01, Between(0.0, 0.05), None, Quality.MEASURED)


def test_late_requests_beyond_the_last_edge_leave_no_upper_end() -> None:
    answers = answers_of(1, [window(15.0, 100.0, late=5.0)])
    assert answers is not None
    assert answers.p99 == Between(0.1, math.inf)


def test_a_window_without_all_replicas_says_nothing_of_the_demand() -> None:
    assert answers_of(1, [window(15.0, 10.0, complete=False)]) is None
    answers = answers_of(1, [window(15.0, 150.0), window(30.0, 10.0, complete=False)])
    assert answers is not None
    assert answers.requests_per_second == 10.0


def test_demand_that_varies_a_little_is_the_same() -> None:
    before = Answers(1, 100.0, 0.0, Between(0.0, 0.05))
    assert Answers(1, 109.0, 0.0, Between(0.0, 0.05)).same_as(before)
    for other in (
        Answers(1, 111.0, 0.0, Between(0.0, 0.05)),
        Answers(1, 100.0, 0.01, Between(0.0, 0.05)),
        Answers(1, 100.0, 0.0, Between(0.05, 0.1)),
        Answers(2, 100.0, 0.0, Between(0.0, 0.05)),
        Answers(1, None, 0.0, Between(0.0, 0.05)),
    ):
        assert not other.same_as(before)


def test_the_requests_beyond_a_limit_lie_between_the_edges_around_it() -> None:
    windows = [window(15.0, 100.0, late=5.0)]
    at_edge, between = (answers_of(1, windows, {RequestTime.WHOLE: limit}) for limit in (0.05, 0.07))
    assert at_edge is not None and between is not None
    there, wide = at_edge.late(), between.late()
    assert there is not None and wide is not None
    assert (there.below, there.above) == (0.05, 0.05)
    assert there.share.exact
    assert wide.below == 0.05
    assert wide.share.high >= there.share.high >= wide.share.low
    assert between.same_as(between)
    assert not between.same_as(at_edge)
    without = answers_of(1, windows)
    assert without is not None and without.lates == ()


def test_tokens_are_counted_and_timed() -> None:
    times = {
        RequestTime.FIRST_TOKEN: Distribution((0.25, 0.5), (80.0, 97.0), 100.0),
        RequestTime.BETWEEN_TOKENS: Distribution((0.02, 0.04), (9_000.0, 9_950.0), 10_000.0),
    }
    counts = {RequestCounter.REQUESTS: 100.0, RequestCounter.TOKENS_OUT: 10_100.0}
    windows = [ServedWindow(15.0, 15.0, ServerCounts(counts, times, {}), 1, True)]
    limits = {RequestTime.WHOLE: 1.0, RequestTime.FIRST_TOKEN: 0.5, RequestTime.BETWEEN_TOKENS: 0.03}
    answers = answers_of(1, windows, limits)
    assert answers is not None
    assert answers.tokens_per_second == pytest.approx(673.3, rel=1e-3)
    assert (answers.first_token, answers.between_tokens) == (Between(0.5, math.inf), Between(0.02, 0.04))
    first, after = answers.late(RequestTime.FIRST_TOKEN), answers.late(RequestTime.BETWEEN_TOKENS)
    assert first is not None and first.share == Between(0.03, 0.03)
    assert after is not None and after.share == Between(0.005, 0.1)
    assert answers.late() is None, "no whole request is timed"
    faster = answers_of(1, windows, {**limits, RequestTime.BETWEEN_TOKENS: 0.04})
    assert faster is not None and not faster.same_as(answers)
