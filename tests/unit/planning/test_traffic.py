"""A new side of a server against its limit, and against the old side in the same minutes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.planning.judge.traffic import (
    Answered,
    BatchTimes,
    TrafficBlock,
    TrafficComparison,
    TrafficVerdict,
    at_least,
    at_most,
    judge_traffic,
    more_often,
)

LATE, FAILING = 0.01, 0.001
CALM = Answered(1000, 2, 0, 0)


def one(new: Answered, old: Answered | None = CALM, late: float | None = LATE) -> TrafficComparison:
    """In three blocks of the same."""
    new, old = _third(new), None if old is None else _third(old)
    return judge_traffic([TrafficBlock(new, old)] * 3, late, FAILING)


def _third(whole: Answered) -> Answered:
    return Answered(*(count / 3.0 for count in whole))


@pytest.mark.parametrize(("requests", "late"), [(534, 0.0025), (1449, 0.005)])
def test_requests_that_show_a_limit_to_be_held(requests: int, late: float) -> None:
    assert one(Answered(requests, math.floor(requests * late), 0, 0)).verdict is TrafficVerdict.HELD
    assert one(Answered(requests // 3, math.ceil(requests * late / 3), 0, 0)).verdict is TrafficVerdict.OPEN


@pytest.mark.parametrize(("requests", "late"), [(43, 0.10), (162, 0.05), (473, 0.03)])
def test_requests_that_show_it_to_be_broken(requests: int, late: float) -> None:
    assert one(Answered(requests, math.floor(requests * late), 0, 0)).verdict is TrafficVerdict.LATE


def test_a_burst_that_both_sides_meet_undoes_nothing() -> None:
    assert one(Answered(500, 100, 0, 0), Answered(500, 95, 0, 0)).verdict is TrafficVerdict.OPEN


def test_requests_of_one_burst_are_no_independent_ones() -> None:
    calm = [TrafficBlock(Answered(100, 0, 0, 0), Answered(100, 0, 0, 0))] * 11
    burst = TrafficBlock(Answered(100, 25, 0, 0), Answered(100, 12, 0, 0))
    spread = [TrafficBlock(Answered(100, late, 0, 0), Answered(100, 1, 0, 0)) for late in (4, 3, 3, 3) * 3]
    assert judge_traffic([*calm, burst], LATE, FAILING).verdict is TrafficVerdict.OPEN
    assert judge_traffic(spread, LATE, FAILING).verdict is TrafficVerdict.LATE


def test_alone_it_may_be_as_late_as_an_hour_may() -> None:
    assert one(Answered(1500, 40, 0, 0), None).verdict is TrafficVerdict.OPEN
    assert one(Answered(1500, 90, 0, 0), None).verdict is TrafficVerdict.LATE


@pytest.mark.parametrize("requests", [3, 20, 1500])
def test_a_side_that_answers_with_errors_is_left_at_once(requests: int) -> None:
    assert one(Answered(requests, 0, 0, requests)).verdict is TrafficVerdict.FAILING
    assert one(Answered(requests, 0, 0, requests), late=None).verdict is TrafficVerdict.FAILING


def test_errors_that_the_old_side_has_too_are_not_its_own() -> None:
    assert one(Answered(1000, 0, 0, 20), Answered(1000, 0, 0, 25)).verdict is not TrafficVerdict.FAILING


def test_what_the_edges_leave_open_neither_holds_nor_undoes() -> None:
    found = one(Answered(2000, 0, 60, 0))
    assert (found.verdict, found.likely) == (TrafficVerdict.OPEN, False)


def test_too_few_requests_are_kept_unless_they_speak_against_it() -> None:
    assert one(Answered(0, 0, 0, 0)).likely
    assert one(Answered(20, 0, 0, 0)).likely
    assert not one(Answered(20, 1, 0, 0)).likely


def test_a_burst_after_silence_shows_nothing_yet() -> None:
    """A step further would meet the next one with more replicas, and how long batches take is not known."""
    silent, burst = TrafficBlock(Answered(0, 0, 0, 0), Answered(0, 0, 0, 0)), TrafficBlock(Answered(520, 0, 0, 0), CALM)
    assert judge_traffic([silent] * 6 + [burst], LATE, FAILING).verdict is TrafficVerdict.OPEN
    assert judge_traffic([silent] * 6 + [burst] * 3, LATE, FAILING).verdict is TrafficVerdict.HELD


def test_without_a_limit_failures_alone_are_judged() -> None:
    assert one(Answered(10, 0, 0, 0), late=None).verdict is TrafficVerdict.OPEN
    assert one(Answered(300, 300, 0, 0), late=None).verdict is TrafficVerdict.HELD


@pytest.mark.parametrize(
    ("longer", "verdict"),
    [
        ([1.5] * 3, TrafficVerdict.SLOW),
        ([1.5] * 2, TrafficVerdict.OPEN),
        ([1.2] * 100, TrafficVerdict.HELD),
        ([1.33] * 3, TrafficVerdict.OPEN),
        ([1.33] * 30, TrafficVerdict.SLOW),
        ([6.0, 1.0, 1.0, 1.0], TrafficVerdict.OPEN),
        ([6.0, *[1.0] * 9], TrafficVerdict.HELD),
        ([], TrafficVerdict.HELD),
    ],
    ids=("surely", "two", "room", "rather", "surely in time", "warms up", "is warm", "unknown"),
)
def test_batches_that_take_longer_than_the_limit_allows_at_the_peak(
    longer: list[float], verdict: TrafficVerdict
) -> None:
    """Though none is late yet."""
    good = [TrafficBlock(CALM, CALM)] * 3
    batches = BatchTimes([math.log(one) for one in longer], spare=1.3)
    assert judge_traffic(good, LATE, FAILING, batches).verdict is verdict
    without = judge_traffic(good, None, FAILING, batches)
    assert without.verdict is (
        verdict if verdict is not TrafficVerdict.OPEN or not batches.fit else TrafficVerdict.HELD
    )
    assert judge_traffic(good, None, FAILING).verdict is TrafficVerdict.HELD, "nothing was promised"


@pytest.mark.parametrize(
    ("longer", "requests", "held"),
    [([1.1] * 3, 300, True), ([1.1] * 3, 200, False), ([1.1] * 2, 300, False), ([1.29] * 3, 300, False)],
    ids=("room", "few requests", "the first ones warm up", "close"),
)
def test_where_no_distribution_is_there_batches_show_that_the_limit_is_kept(
    longer: list[float], requests: int, held: bool
) -> None:
    batches = BatchTimes([math.log(one) for one in longer], spare=1.3)
    block = TrafficBlock(Answered(requests / 3, 0, requests / 3, 0), None)
    found = judge_traffic([block] * 3, LATE, FAILING, batches)
    assert (found.verdict is TrafficVerdict.HELD, found.late, found.likely) == (held, None, True)
    assert judge_traffic([block] * 3, LATE, FAILING).verdict is TrafficVerdict.OPEN, "nothing tells"


SIDE = st.integers(0, 3000).flatmap(
    lambda requests: st.builds(
        lambda late, doubtful, failed: Answered(requests, late, min(doubtful, requests - late), failed),
        st.integers(0, requests),
        st.integers(0, requests),
        st.integers(0, requests),
    )
)


@given(st.lists(st.builds(TrafficBlock, SIDE, st.none() | SIDE), max_size=6))
def test_any_blocks_have_a_verdict(blocks: list[TrafficBlock]) -> None:
    found = judge_traffic(blocks, LATE, FAILING)
    assert found.late is None or 0.0 <= found.late <= 1.0 + 1e-9
    assert 0.0 <= found.failed <= 1.0 + 1e-9
    assert not (found.verdict.undoes and found.likely)


@given(st.lists(st.builds(TrafficBlock, SIDE, SIDE), min_size=1, max_size=4))
def test_what_is_undone_is_worse_than_what_was(blocks: list[TrafficBlock]) -> None:
    found = judge_traffic(blocks, LATE, FAILING)
    if found.verdict is TrafficVerdict.LATE:
        assert found.late is not None and found.late > LATE
        swapped = [TrafficBlock(block.old or CALM, block.new) for block in blocks]
        assert judge_traffic(swapped, LATE, FAILING).verdict is not TrafficVerdict.LATE


@given(st.integers(0, 40), st.integers(1, 40), st.floats(0.001, 0.999))
def test_tails_of_the_binomial(count: int, of: int, share: float) -> None:
    count = min(count, of)
    exact = math.fsum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(count, of + 1))
    assert at_least(count, of, share) == pytest.approx(exact, abs=1e-9)
    assert at_most(count, of, share) + at_least(count + 1, of, share) == pytest.approx(1.0, abs=1e-9)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_fishers_test_is_that_of_the_hypergeometric(one: int, of: int, other: int, of_others: int) -> None:
    one, other = min(one, of), min(other, of_others)
    both, whole = one + other, of + of_others
    exact = math.fsum(math.comb(of, k) * math.comb(of_others, both - k) for k in range(one, min(both, of) + 1))
    assert more_often(one, of, other, of_others) == pytest.approx(exact / math.comb(whole, both), abs=1e-9)
