"""A record put through a server, against every request at it."""

import math

import numpy as np
import pytest

from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.replay import Replica, spread, tail
from rightpool.prediction.server import Lines, LoadLine
from rightpool.profiles.demand import SLOT

SURE = (1e-10, 1e-10, 0.0)
HOUR = round(3600 / SLOT)


def one_by_one(arrivals: Floats, line: LoadLine) -> Floats:
    """Latencies of a single server, request by request."""
    found, first, free = np.empty(len(arrivals)), 0, 0.0
    while first < len(arrivals):
        start = max(free, arrivals[first])
        waiting = int(np.searchsorted(arrivals, start, side="right")) - first
        taken = min(max(waiting, 1), round(line.most))
        free = start + line.fixed + line.each * taken
        found[first : first + taken] = free - arrivals[first : first + taken]
        first += taken
    return found


def line_of(full: float, batch: float, share: float = 0.4) -> LoadLine:
    return LoadLine(full * share, full * (1 - share) / batch, SURE, batch, batch)


def bursts(mean: float, hours: int, seed: int = 1) -> Floats:
    """Counts of windows whose rate changes from one to the next."""
    draw = np.random.default_rng(seed)
    return draw.poisson(mean * np.exp(draw.normal(0.0, 0.4, hours * HOUR) - 0.08)).astype(float)


@pytest.mark.parametrize(("batch", "full"), [(16.0, 2.0), (16.0, 0.05)])
@pytest.mark.parametrize("busy", [0.6])
def test_the_tail_is_that_of_every_request(batch: float, full: float, busy: float) -> None:
    counts = bursts(busy * batch / full * SLOT, 1)
    line, ones = line_of(full, batch), np.ones(HOUR)
    seen = [np.quantile(one_by_one(spread(counts, ones, seed), line), 0.99) for seed in (10, 11)]
    assert tail(line, counts, ones, 0.99).whole == pytest.approx(float(np.mean(seen)), rel=0.12)


def test_late_shares_are_those_of_every_request() -> None:
    counts, line, limit = bursts(9.0 * SLOT, 2), line_of(0.8, 16.0), 2.0
    seen = one_by_one(spread(counts, np.ones(len(counts)), 9), line)
    one = Lines(floats([line.fixed]), floats([line.each]))
    found = Replica.of(one, 16.0, floats([limit])).replay(counts, np.ones(len(counts)))
    assert found.late[0, 0] == pytest.approx((seen > limit).mean(), rel=0.3)
    assert found.worst_hour[0, 0] >= found.late[0, 0]


def test_more_replicas_never_make_more_late() -> None:
    counts, line = bursts(1000.0 * SLOT, 24), line_of(0.05, 16.0)
    shares = [tail(line, counts, np.full(len(counts), float(n)), 0.99).whole for n in (4, 6, 12)]
    assert shares == sorted(shares, reverse=True)


def test_what_is_left_over_is_late_afterwards() -> None:
    counts = np.full(HOUR, 100.0 * SLOT)
    counts[40:44] = 1000.0 * SLOT  # a minute of three times what it serves: then two minutes of work are left
    line = line_of(0.05, 16.0)
    found = Replica.of(Lines(floats([line.fixed]), floats([line.each])), 16.0, floats([0.5])).replay(
        counts, np.ones(HOUR)
    )
    late = found.late[0, 0] * counts.sum() / SLOT
    left = (1000.0 - line.capacity) * 60.0
    drained = left / (line.capacity - 100.0)
    assert late * SLOT == pytest.approx(60_000 + drained * 100.0, rel=0.05)


def test_a_server_that_never_catches_up_has_no_tail() -> None:
    counts = np.full(HOUR * 30, 1000.0 * SLOT)
    assert tail(line_of(0.05, 16.0), counts, np.ones(len(counts)), 0.99).whole == math.inf


def test_unknown_windows_are_left_out() -> None:
    counts, line = bursts(100.0 * SLOT, 6), line_of(0.05, 16.0)
    gap = counts.copy()
    gap[HOUR : 2 * HOUR] = np.nan
    ones = np.ones(len(counts))
    assert tail(line, gap, ones, 0.99).whole == pytest.approx(tail(line, counts, ones, 0.99).whole, rel=0.1)


def chance(line: LoadLine, counts: Floats, replicas: Floats, limit: float) -> float:
    """That 99% are within the limit."""
    return float(Replica.of(line.draws(), line.most, floats([limit])).replay(counts, replicas).held(0.99).mean())


def test_doubt_makes_the_chance() -> None:
    counts, replicas = np.full(6 * HOUR, 1000.0 * SLOT), np.full(6 * HOUR, 5.0)
    known = line_of(0.05, 16.0)
    unknown = LoadLine(known.fixed, known.each, (0.1, 0.1, 0.0), 16.0, 16.0)
    assert chance(known, counts, replicas, 0.12) > 0.95
    assert 0.3 < chance(unknown, counts, replicas, 0.12) < 0.9
    assert chance(known, counts, np.full(6 * HOUR, 2.0), 0.12) == 0.0
