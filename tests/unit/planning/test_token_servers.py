"""A server that makes tokens is sized and moved by how soon its first and its next tokens come."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.latency import Percentile
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.time_limits import sized_limits
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.servers.places import PoolChip, with_places
from rightpool.planning.offers.servers.recorded import recorded_sizing, with_servable
from rightpool.planning.offers.servers.sizing import LatencyTarget
from rightpool.prediction.columns import floats
from rightpool.prediction.server import LoadLine
from rightpool.prediction.tokens import TokenLines, TokenTimes, cache_ratio
from rightpool.profiles.latency import Distribution
from rightpool.profiles.loads import Loads, Points, TokenPoints, batch_of
from rightpool.profiles.served import RequestCounter, RequestLevel, RequestTime, ServedWindow, ServerCounts
from tests.unit.planning.jobs import NOW, changed, decided_text, find, judged, reason
from tests.unit.planning.test_server_move import LIMIT, moving, replaced, seen, sides, step
from tests.unit.planning.test_server_offers import POOLS, demand, unsized

TOKENS = 200.0  # of an answer
TIMES = {"timeToFirstToken": {"p95": "1s"}, "interTokenLatency": {"p95": "60ms"}}
SEEN = Points(
    floats([2.0, 8.0, 20.0, 40.0]),
    floats([0.0134, 0.0146, 0.0170, 0.0210]),
    floats([20.0] * 4),
    TokenPoints(floats([0.2] * 4), floats([0.062, 0.068, 0.080, 0.100]), floats([0.3] * 4), floats([math.nan] * 4)),
)


def simulated(rate: float, times: TokenTimes, tokens: float, arrivals: int) -> tuple[list[float], list[float]]:
    """Seconds to the first token, and the share of time with so many requests, of every request at one replica."""
    draw, now, there, waiting = np.random.default_rng(4), 0.0, 0, 0
    spent, first = np.zeros(times.places + 1), []
    for _ in range(arrivals):
        left = float(draw.exponential(1.0 / rate))
        while True:
            ends = float(draw.exponential(tokens * times.between[0, there - 1] / there)) if there else math.inf
            spent[there] += min(left, ends)
            if ends >= left:
                break
            left, there = left - ends, there - 1
            if waiting:
                waiting, there = waiting - 1, there + 1
        now += left
        if there < times.places:
            first.append(float(times.first[0, there]))
            there += 1
        else:
            first.append(math.inf)
            waiting += 1
    return first, (spent / spent.sum()).tolist()


def test_so_many_share_it_as_a_replay_of_every_request_has() -> None:
    at_once = np.arange(1.0, 33.0)
    times = TokenTimes((0.01 + 0.001 * at_once)[np.newaxis], (0.05 + 0.01 * at_once)[np.newaxis], 0.0, 0.0)
    rate = 0.8 * 32 / (TOKENS * 0.042)
    first, spent = simulated(rate, times, TOKENS, 20_000)
    limit_first, limit_between = 0.295, 0.0305  # of 24 requests, and of 20
    found = times.replica(TOKENS, floats([limit_first]), floats([limit_between])).replay(
        np.full(960, rate * 15.0), np.ones(960)
    )
    brought = [share * n / times.between[0, n - 1] if n else 0.0 for n, share in enumerate(spent)]
    assert found.late[0, 0] == pytest.approx(np.mean(np.array(first) > limit_first), abs=0.05)
    assert found.late[0, 1] == pytest.approx(sum(brought[21:]) / sum(brought), abs=0.05)


def test_more_replicas_make_fewer_tokens_late() -> None:
    line = LoadLine(0.01, 0.001, (1e-4, 1e-4, 0.0), 40.0, 60.0)
    lines = TokenLines(line, LoadLine(0.05, 0.002, (1e-4, 1e-4, 0.0), 40.0, 60.0), 0.2, 0.3, TOKENS)
    replica, counts = lines.likely().replica(TOKENS, floats([0.5]), floats([0.05])), np.full(960, 150.0)
    late = [replica.replay(counts, np.full(960, float(number))).late.mean(axis=0) for number in (2, 3, 6)]
    assert all((more <= fewer + 1e-9).all() for fewer, more in itertools.pairwise(late))
    assert late[0][0] > 0.5 and late[2][0] < 0.01


def page(
    between: float, many: float, *, first: float = 0.06, levels: Mapping[RequestLevel, float] | None = None
) -> ServedWindow:
    """100 requests in 15 s, with so many seconds between tokens, of which all but 2% are below `many`."""
    made = 100 * TOKENS
    times = {
        RequestTime.BETWEEN_TOKENS: Distribution((many,), (0.98 * made,), made, made * between),
        RequestTime.FIRST_TOKEN: Distribution((0.1,), (98.0,), 100.0, 100 * first),
    }
    counters = {RequestCounter.REQUESTS: 100.0, RequestCounter.TOKENS_OUT: made}
    return ServedWindow(NOW, 15.0, ServerCounts(counters, times, levels or {}), 2, True)


def cached(used: float, running: float) -> Loads:
    """Of two replicas, together."""
    loads = Loads()
    levels = {RequestLevel.CACHE_USED: used, RequestLevel.CONCURRENCY: running}
    loads.extend(page(0.015, 0.025, levels=levels), "a100/1", "h")
    return loads


def test_what_one_request_has_of_the_cache_is_remembered() -> None:
    loads = cached(1.2, 24.0)
    for read in (loads, Loads.read(loads.stored())):
        points = read.at("a100/1")
        assert points is not None and points.tokens is not None
        assert points.tokens.cache.tolist() == pytest.approx([0.05])


@pytest.mark.parametrize(
    ("used", "running"), [(0.0, 0.0), (0.0, 4.0), (0.08, 4.0), (0.5, 0.0)], ids=["idle", "none", "little", "odd"]
)
def test_a_cache_that_is_hardly_used_says_nothing(used: float, running: float) -> None:
    points = cached(used, running).at("a100/1")
    assert points is not None and points.tokens is not None
    assert np.isnan(points.tokens.cache).all()


GIB = float(2**30)


@pytest.mark.parametrize(
    ("there", "needed", "ratio"),
    [
        (80.0, 30.0, 1.0),
        (40.0, 0.0, 0.5),
        (40.0, 27.0, 9.0 / 45.0),
        (40.0, 36.0, 0.0),
        (40.0, 75.0, 0.0),
        (160.0, 30.0, 2.0),
    ],
    ids=["as large", "nothing beside it", "smaller", "nothing left", "more than here", "larger"],
)
def test_another_chip_holds_at_least_so_many_times_as_much(there: float, needed: float, ratio: float) -> None:
    found = cache_ratio(80.0 * GIB, there * GIB, needed * GIB)
    assert found == pytest.approx(ratio)
    if needed < 72.0:
        weights = np.linspace(0.0, min(needed, 0.9 * there), 9)
        assert found <= ((0.9 * there - weights) / (72.0 - weights)).min() + 1e-9, "whatever of it the weights are"


def test_what_shares_a_step_follows_from_the_seconds_between_tokens() -> None:
    load, seconds = batch_of(page(0.015, 0.025))
    assert load == pytest.approx(1.0 + 100 * TOKENS * 0.015 / 15.0 / 2) and seconds == pytest.approx(0.015)
    loads = Loads()
    loads.extend(page(0.015, 0.025), "a100/1", "h")
    for read in (loads, Loads.read(loads.stored())):
        points = read.at("a100/1")
        assert points is not None and points.tokens is not None
        spread = float(points.tokens.spread[0])
        above = 0.5 * math.erfc((math.log(0.025 / 0.015) / spread + 0.5 * spread) / math.sqrt(2.0))
        assert above == pytest.approx(0.02, rel=0.02) and points.tokens.first[0] == pytest.approx(0.06)


def holding(requests: float) -> Points:
    """With a cache for so many requests on an A100."""
    assert SEEN.tokens is not None
    return SEEN._replace(tokens=SEEN.tokens._replace(cache=floats([1.0 / requests] * 4)))


def token_server(
    targets: Mapping[str, Any] = TIMES, *, points: Points = SEEN, rate: float = 15.0, needed: str = "10Gi"
) -> Job:
    job = unsized(targets, placement={"memoryPerChip": needed})
    declared = float(job.spec.placement.memory_per_chip or 0)
    limits = sized_limits(job.spec.targets)
    counts, target = demand(rate), LatencyTarget.of(limits, 1)
    sizing = with_servable(recorded_sizing(counts, points, limits, "a100/1", NOW, TOKENS), counts)
    chips = [PoolChip(name, pool.accelerator) for name, pool in POOLS.items()]
    return changed(job, sizing=with_places(sizing, "a100", chips, {"a100": points}.get, counts, target, declared))


@pytest.mark.parametrize(
    ("held", "here", "there"), [(math.inf, 60, 60), (120.0, 60, 21), (50.0, 50, 9)], ids=["unknown", "ample", "scarce"]
)
def test_no_more_are_at_once_than_the_cache_holds(held: float, here: int, there: int) -> None:
    sizing = token_server(points=holding(held)).observed.sizing
    assert sizing is not None and isinstance(sizing.line, TokenLines)
    assert sizing.line.most == here
    size = sizing.at("a10g")
    ratio = cache_ratio(POOLS["a100"].accelerator.memory_bytes, POOLS["a10g"].accelerator.memory_bytes, 10.0 * GIB)
    assert size is not None and size.held == (None if math.isinf(held) else pytest.approx(held * ratio, rel=1e-3))
    assert sizing.line.elsewhere((1.0, 0.1), (1.0, 0.1), ratio).most == there


@pytest.mark.parametrize(
    ("points", "needed", "requests"),
    [(holding(50.0), "19.8Gi", "0.335"), (holding(50.0), "21Gi", "0"), (SEEN, "21Gi", "0")],
    ids=["less than one", "none", "of a server that does not tell what its cache holds"],
)
def test_chips_with_no_memory_beside_it_are_refused(points: Points, needed: str, requests: str) -> None:
    found = judged(token_server(points=points, needed=needed), POOLS)
    assert reason(found, "a10g") is RejectionReason.MEMORY
    refused = find(found, "a10g").rejection
    assert refused is not None and f"keys and values of {requests} requests" in refused.text()
    assert len(refused.text()) <= 160


def test_it_is_sized_and_offered_a_cheaper_pool_by_its_tokens() -> None:
    job = token_server()
    sizing = job.observed.sizing
    assert sizing is not None and sizing.servable is not None and sizing.servable.at_least > 0.0
    found = judged(job, POOLS)
    there, here = find(found, "a10g"), found.current
    assert here is not None and here.size is not None and here.size.first is not None and here.size.within is not None
    assert here.cost_per_million is not None and there.cost_per_million is not None
    assert (here.unit, there.unit) == (WorkUnit.TOKENS, WorkUnit.TOKENS)
    assert here.cost_per_million.median < 20.0, "dollars for a million tokens, not requests"
    assert found.decision.action is Action.MOVE and found.decision.target == there.placement
    assert "per million tokens" in decided_text(found)


def test_what_no_number_of_replicas_keeps_is_said() -> None:
    found = judged(token_server({"interTokenLatency": {"p95": "20ms"}}), POOLS)
    assert reason(found, "a10g") is RejectionReason.TOO_SLOW_ALONE
    found = judged(token_server({"timeToFirstToken": {"p95": "70ms"}}), POOLS)
    assert reason(found, "a10g") is RejectionReason.LATENCY_NOT_HELD


def test_a_server_of_tokens_is_not_sized_by_whole_requests() -> None:
    limits = {RequestTime.WHOLE: Percentile("p99", 0.99, 5.0)}
    assert recorded_sizing(demand(5.0), SEEN, limits, "a100/1", NOW, TOKENS).line is None


def both(requests: float, first: float, after: float) -> ServedWindow:
    """So many requests late by their first and by their next tokens."""
    times = {
        RequestTime.FIRST_TOKEN: Distribution((1.0,), (requests - first,), requests),
        RequestTime.BETWEEN_TOKENS: Distribution((LIMIT,), (requests - after,), requests),
    }
    counters = {RequestCounter.REQUESTS: requests}
    return ServedWindow(NOW + 15, 15.0, ServerCounts(counters, times, {}), 1, True)


def token_move() -> Job:
    job = moving(new=1, old=1)
    targets = {"timeToFirstToken": {"p99": "1s"}, "interTokenLatency": {"p99": "50ms"}}
    spec = type(job.spec).model_validate(
        job.spec.model_dump(by_alias=True, exclude_none=True, mode="json") | {"targets": targets}
    )
    return seen(step(replace(job, spec=spec)), 1)


@pytest.mark.parametrize(
    ("new", "words"),
    [((200, 1), "of first tokens"), ((1, 200), "of next tokens")],
    ids=["first tokens", "next tokens"],
)
def test_one_of_its_times_undoes_a_move(new: tuple[float, float], words: str) -> None:
    job = seen(token_move(), 1, sides=sides(both(1000, *new), both(1000, 1, 1)))
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, Reason.TOO_LATE)
    assert words in entry.message


def test_a_move_goes_on_once_both_of_its_times_are_held() -> None:
    job = seen(token_move(), 1, sides=sides(both(1000, 1, 1), both(1000, 1, 1)))
    assert job.state.migration is not None and job.state.migration.phase is Phase.HOLDING
    few = seen(token_move(), 1, sides=sides(replaced(both(20, 0, 0), 0.0), both(20, 0, 0)))
    assert few.state.migration is not None and few.state.migration.phase is Phase.SHARING
