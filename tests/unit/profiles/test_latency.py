"""Shares and quantiles that are told from counts at edges, compared with the requests themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.latency import Between, Distribution

times = st.lists(st.floats(0.001, 100), min_size=1, max_size=60)
edge_sets = st.lists(st.floats(0.001, 100), max_size=8, unique=True).map(sorted)
limits = st.floats(0.001, 100)


def counted(seconds: Sequence[float], edges: Sequence[float]) -> Distribution:
    buckets = [(edge, float(sum(one <= edge for one in seconds))) for edge in edges]
    found = Distribution.of([*buckets, (math.inf, float(len(seconds)))])
    assert found is not None
    return Distribution(found.edges, found.counts, found.total, math.fsum(seconds))


@given(times, edge_sets, limits)
def test_the_true_share_is_inside(seconds: list[float], edges: list[float], limit: float) -> None:
    found = counted(seconds, edges).later_than(limit)
    late = sum(one > limit for one in seconds) / len(seconds)
    assert found is not None
    assert 0 <= found.low <= late + 1e-12
    assert late - 1e-12 <= found.high <= 1


@given(times, edge_sets.filter(len), st.data())
def test_at_an_edge_the_share_is_exact(seconds: list[float], edges: list[float], data: st.DataObject) -> None:
    limit = data.draw(st.sampled_from(edges))
    found = counted(seconds, edges).later_than(limit)
    assert found is not None
    assert found.exact
    assert found.low == pytest.approx(sum(one > limit for one in seconds) / len(seconds))


@given(times, edge_sets, st.floats(0.01, 1))
def test_the_true_quantile_is_inside(seconds: list[float], edges: list[float], share: float) -> None:
    found = counted(seconds, edges).quantile(share)
    assert found is not None
    wanted = share * len(seconds)
    truth = next(one for rank, one in enumerate(sorted(seconds), 1) if rank >= wanted)
    assert found.low <= truth <= found.high


@given(times, times, edge_sets)
def test_what_came_since_and_what_was_before_are_all(first: list[float], then: list[float], edges: list[float]) -> None:
    before, after = counted(first, edges), counted([*first, *then], edges)
    grown = after.since(before)
    assert grown is not None
    assert (grown.counts, grown.total) == (counted(then, edges).counts, len(then))
    assert before.plus(grown).counts == after.counts
    assert grown.sum == pytest.approx(math.fsum(then))


@given(times, times, edge_sets, edge_sets, limits)
def test_replicas_of_other_edges_add_up_at_the_shared_ones(
    here: list[float], there: list[float], edges: list[float], others: list[float], limit: float
) -> None:
    both = counted(here, edges).plus(counted(there, others))
    assert set(both.edges) == {*edges} & {*others}
    assert both == counted(there, others).plus(counted(here, edges))
    found = both.later_than(limit)
    late = sum(one > limit for one in (*here, *there)) / (len(here) + len(there))
    assert found is not None
    assert found.low - 1e-12 <= late <= found.high + 1e-12


@given(times, st.lists(st.floats(0.001, 100), max_size=3), edge_sets)
def test_a_server_started_anew_says_nothing_of_the_time_between(
    many: list[float], few: list[float], edges: list[float]
) -> None:
    if len(few) < len(many):
        assert counted(few, edges).since(counted(many, edges)) is None


def test_other_edges_are_another_series() -> None:
    assert counted([1.0, 2.0], [1.5]).since(counted([1.0], [0.5])) is None


def test_a_first_edge_above_the_limit_tells_nothing_below_it() -> None:
    found = counted([0.1] * 98 + [0.9, 2.0], [0.3, 1.0])
    assert found.edges_around(0.05) == (None, 0.3)
    assert found.later_than(0.05) == Between(0.02, 1.0)
    assert found.edges_around(5.0) == (1.0, None)
    assert found.later_than(5.0) == Between(0.0, 0.01)
    assert found.quantile(0.999) == Between(1.0, math.inf)


def test_nobody_was_late_where_nobody_came_is_not_said() -> None:
    none = counted([], [0.1])
    assert none.later_than(0.1) is None
    assert none.quantile(0.99) is None
    assert none.mean is None


@pytest.mark.parametrize(
    "buckets",
    [
        [(0.1, 5.0), (math.inf, 3.0)],
        [(0.1, 5.0), (0.2, 4.0), (math.inf, 6.0)],
        [(0.1, 1.0), (0.1, 2.0), (math.inf, 2.0)],
        [(0.1, -1.0), (math.inf, 2.0)],
        [(0.1, math.nan), (math.inf, 2.0)],
        [(0.1, 1.0)],
        [],
    ],
    ids=["more than all", "falling", "twice", "negative", "not a number", "no total", "nothing"],
)
def test_counts_that_are_none(buckets: list[tuple[float, float]]) -> None:
    assert Distribution.of(buckets) is None


def test_edges_in_milliseconds_are_the_limit() -> None:
    assert counted([0.2, 0.4], [300 * 0.001]).later_than(0.3) == Between(0.5, 0.5)
