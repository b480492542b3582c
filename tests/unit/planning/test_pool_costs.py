"""What pools cost by day: with what jobs have spent and what was idle it reconciles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.hardware.accelerator import Price
from rightpool.planning.books.pool_costs import LONGEST_GAP, PoolCost, PoolCosts
from rightpool.reporting.pool_costs_object import is_pool_costs, pool_costs_object, read_pool_costs
from tests.unit.prediction.fixtures import A10G, A100

NOW = 1_800_000_000.0  # 2027-01-15, 8:00
DAY = 86_400.0
MINUTE = 60.0
FULL = replace(A100, total=16, free=4)


def looked_at(costs: PoolCosts, begin: float, minutes: int) -> PoolCosts:
    for minute in range(minutes + 1):
        costs.book([FULL, A10G], begin + minute * MINUTE)
    return costs


def test_an_hour_costs_what_its_chips_do() -> None:
    costs = looked_at(PoolCosts(), NOW, 60)
    by_pool = costs.sums("pool", "2027-01-15")
    assert by_pool["a100"] == pytest.approx((16 * 4.0, 4 * 4.0))
    assert by_pool["a10g"] == pytest.approx((64 * 1.0, 64 * 1.0)), "all of it is free"
    assert sum(one.cost for one in by_pool.values()) == pytest.approx(
        costs.sums("day", "2027-01-15")["2027-01-15"].cost
    )


def test_days_are_apart_and_those_before_are_left_out() -> None:
    costs = looked_at(PoolCosts(), NOW, 60)
    costs.until = None
    looked_at(costs, NOW + DAY, 60)
    assert set(costs.sums("day", "2027-01-15")) == {"2027-01-15", "2027-01-16"}
    assert set(costs.sums("day", "2027-01-16")) == {"2027-01-16"}
    costs.until = None
    looked_at(costs, NOW + 70 * DAY, 1)
    assert min(day for day, _ in costs.rows) > "2027-01-16", "older days than the books keep"


def test_what_nobody_has_seen_is_not_booked() -> None:
    costs = looked_at(PoolCosts(), NOW, 0)
    assert not costs.rows, "of the time before nothing is known"
    costs.book([FULL], NOW + LONGEST_GAP + 1.0)
    assert not costs.rows
    costs.book([FULL], NOW)
    assert not costs.rows and costs.until == NOW + LONGEST_GAP + 1.0, "a clock that is behind books nothing twice"
    costs.book([replace(FULL, price=Price(None, None))], NOW + LONGEST_GAP + 61.0)
    assert not costs.rows, "a pool without a price costs nobody knows what"


@given(st.lists(st.tuples(st.integers(-3, 20), st.floats(0.0, LONGEST_GAP)), min_size=1, max_size=20))
def test_idle_chips_are_a_part_and_what_is_stored_is_read(looks: list[tuple[int, float]]) -> None:
    costs, now = PoolCosts(until=NOW), NOW
    for free, seconds in looks:
        now += seconds
        costs.book([replace(FULL, free=free)], now)
    assert all(0.0 <= one.idle <= one.cost for one in costs.rows.values())
    assert sum(one.cost for one in costs.rows.values()) == pytest.approx(16 * 4.0 * (now - NOW) / 3600.0)
    body = pool_costs_object("rightpool-system", "rightpool-pool-costs", costs, "7")
    assert is_pool_costs(body) and body["metadata"]["resourceVersion"] == "7"
    again = read_pool_costs(body)
    assert again.rows.keys() == costs.rows.keys() and again.until == pytest.approx(now, abs=1e-3)
    assert again.table() == costs.table()


@pytest.mark.parametrize("data", [{}, {"costs.csv": "day,pool\n"}, {"costs.csv": "day,pool,cost,idle\na,b,c,d\n"}])
def test_what_can_not_be_read_is_a_typed_error(data: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"data has no|the columns are|could not convert"):
        read_pool_costs({"data": data})


def test_a_sum() -> None:
    assert PoolCost(2.0, 1.0).plus(PoolCost(3.0, 0.5)) == (5.0, 1.5)
