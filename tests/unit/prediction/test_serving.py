"""Serving: latencies against an exact simulation, and what must hold for any demand and any server."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.serving.simulation import latencies
from rightpool.prediction.batch_queue import SATURATED
from rightpool.prediction.columns import floats
from rightpool.prediction.serving import SURE, Served, Server, fixed_shares

BATCHES = (1, 2, 7, 32, 64, 300)
RATES = st.floats(0.01, 1e6)
SDS = st.one_of(st.just(0.0), st.floats(0.01, 1.5))
DEMANDS = st.floats(1e-3, 1e8)
SECONDS = st.floats(1e-4, 3600.0)
MORE = st.floats(1.0, 20.0)


@cache
def server(batch: int) -> Server:
    return Server.of(batch, fixed_shares(batch))


@pytest.mark.parametrize(
    ("batch", "fixed", "utilisation"),
    [(1, 1.0, 0.3), (1, 1.0, 0.9), (8, 0.1, 0.6), (32, 0.4, 0.3), (32, 0.4, 0.9), (64, 0.05, 0.6)],
)
def test_latency_is_that_of_an_exact_simulation(batch: int, fixed: float, utilisation: float) -> None:
    curves = Server.of(batch, (fixed,))
    seen = latencies(batch, fixed, utilisation, 150_000, seed=4)
    predicted = np.interp(utilisation, curves.tail.utilisation, curves.tail.latency[0])
    assert predicted == pytest.approx(np.quantile(seen, 0.99), rel=0.06)
    # A median may lie in a gap between what one service and two take: so it is compared as a probability.
    half = np.interp(utilisation, curves.half.utilisation, curves.half.latency[0])
    assert np.mean(seen <= half * 1.03) >= 0.48 and np.mean(seen <= half * 0.9) <= 0.55


def test_a_queue_without_batches_is_the_textbooks() -> None:
    """M/D/1: the mean wait is u / 2(1 - u) services, and half of the requests wait less than that (Erlang 1909)."""
    seen = latencies(1, 1.0, 0.8, 150_000, seed=2)
    assert seen.mean() == pytest.approx(1.0 + 0.8 / 0.4, rel=0.05), "the simulation is right"
    curves = Server.of(1, (1.0,))
    assert np.interp(0.8, curves.tail.utilisation, curves.tail.latency[0]) == pytest.approx(
        np.quantile(seen, 0.99), rel=0.05
    )


def test_an_idle_server_takes_the_time_of_one_request() -> None:
    curves = Server.of(10, (0.3,))
    assert curves.tail.latency[0, 0] == pytest.approx(0.3 + 0.7 / 10)
    assert curves.half.latency[0, 0] == pytest.approx(0.3 + 0.7 / 10)


def _ordered(served: Served) -> None:
    for ends in (served.capacity, served.median_latency, served.tail_latency, served.alone):
        for column in (ends.low, ends.median, ends.high):
            assert not np.isnan(column).any() and (column >= 0.0).all()
        assert (ends.low <= ends.median).all() and (ends.median <= ends.high).all()


@given(st.sampled_from(BATCHES), RATES, SDS, DEMANDS, SECONDS)
def test_what_is_told_is_in_order_and_never_nan(
    batch: int, rate: float, sd: float, requests: float, limit: float
) -> None:
    served = server(batch).serve(floats([rate]), floats([sd]), requests, limit)
    _ordered(served)
    assert 0.0 <= served.probability[0] <= 1.0
    if np.isfinite(served.replicas[0]):
        assert served.replicas[0] >= 1.0
        assert served.probability[0] >= SURE - 1e-6
        assert served.tail_latency.high[0] <= limit * (1.0 + 1e-6)
        assert requests / served.replicas[0] <= SATURATED * rate * math.exp(6.0 * sd) * 1.2
    else:
        assert served.alone.high[0] >= limit * 0.98, "one request by itself is too slow"


@given(st.sampled_from(BATCHES), RATES, SDS, DEMANDS, SECONDS, MORE)
def test_more_requests_never_wait_less(
    batch: int, rate: float, sd: float, requests: float, limit: float, more: float
) -> None:
    one = server(batch)
    rates, sds, limits = floats([rate, rate]), floats([sd, sd]), floats([limit, limit])
    few, many = one.probability(rates, sds, floats([requests, requests * more]), limits)
    assert many <= few + 1e-9
    served = [one.serve(floats([rate]), floats([sd]), demand, limit) for demand in (requests, requests * more)]
    assert served[1].replicas[0] >= served[0].replicas[0]


@given(st.sampled_from(BATCHES), RATES, SDS, DEMANDS, SECONDS, MORE)
def test_a_faster_chip_or_more_replicas_never_wait_longer(
    batch: int, rate: float, sd: float, requests: float, limit: float, more: float
) -> None:
    one = server(batch)
    sds, limits = floats([sd, sd]), floats([limit, limit])
    slow, fast = one.probability(floats([rate, rate * more]), sds, floats([requests, requests]), limits)
    assert fast >= slow - 1e-9
    alone, shared = one.probability(floats([rate, rate]), sds, floats([requests, requests / more]), limits)
    assert shared >= alone - 1e-9
    served = one.serve(floats([rate, rate * more]), sds, requests, limit)
    assert served.replicas[1] <= served.replicas[0]
    assert (served.capacity.low[1], served.capacity.median[1]) >= (served.capacity.low[0], served.capacity.median[0])


@given(st.sampled_from(BATCHES), RATES, st.floats(0.0, 1.0), st.floats(0.01, 1.5), MORE)
def test_latencies_rise_with_requests_and_fall_with_the_rate(
    batch: int, rate: float, sd: float, busy: float, more: float
) -> None:
    rates, requests = floats([rate, rate, rate * more]), floats([rate * busy, rate * busy * more, rate * busy])
    for ends in server(batch).latencies(rates, np.full(3, sd), requests):
        for column in (ends.low, ends.median, ends.high):
            assert not np.isnan(column).any() and (column > 0.0).all()
            usual, more_requests, faster = column
            assert more_requests >= usual * (1.0 - 1e-6) and faster <= usual * (1.0 + 1e-6)


@pytest.mark.parametrize("batch", BATCHES)
def test_latency_never_falls_with_utilisation(batch: int) -> None:
    for curve in (server(batch).half, server(batch).tail):
        assert (np.diff(curve.latency, axis=1) >= 0.0).all()


@given(st.integers(1, 100_000), st.floats(-0.5, 1.5), st.floats(-0.5, 1.5))
def test_shares_are_within_what_counters_tell(batch: int, least: float, most: float) -> None:
    shares = fixed_shares(batch, least, most)
    assert list(shares) == sorted(set(shares)) and all(0.0 <= share <= 1.0 for share in shares)
    if batch > 1 and 0.0 <= least <= most <= 1.0:
        assert all(least <= share <= most for share in shares)


def test_doubt_about_the_rate_widens_what_is_told() -> None:
    served = server(32).serve(floats([1000.0, 1000.0]), floats([0.05, 0.5]), 100.0, 1.0)
    sure, unsure = np.log(served.tail_latency.high / served.tail_latency.low)
    assert unsure > sure
