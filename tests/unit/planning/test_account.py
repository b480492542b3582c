"""Money: spent never shrinks, saved is told against where the job would be without its moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.planning.account import Account

HOUR = 3600.0


def test_an_hour_on_the_meter() -> None:
    account = Account().started(8.0, 0.0).settled(HOUR)
    assert account.spent == pytest.approx(8.0)
    assert account.stopped(2 * HOUR).settled(9 * HOUR).spent == pytest.approx(16.0)


def test_time_without_a_price_is_told_apart() -> None:
    account = Account().started(None, 0.0).settled(HOUR)
    assert (account.spent, account.unpriced_seconds) == (0.0, HOUR)


def test_two_moves_save_against_the_first_place() -> None:
    # $40/h at 1000/s, then $8/h at 900/s, then $2/h at 450/s: a sample costs 11.1, 2.47, 1.23 dollars a million.
    costs = [40 / HOUR / 1000 * 1e6, 8 / HOUR / 900 * 1e6, 2 / HOUR / 450 * 1e6]
    account = Account().started(8.0, 0.0)
    account = account.moved(
        baseline=1000, baseline_cost=costs[0], realised=900, realised_cost=costs[1], now=0.0
    ).started(2.0, 0.0)
    account = account.moved(baseline=900, baseline_cost=costs[1], realised=450, realised_cost=costs[2], now=0.0)
    assert account.saving_per_hour == pytest.approx((costs[0] - costs[2]) / 1e6 * 450 * HOUR)
    assert account.settled(HOUR).saved == pytest.approx(account.saving_per_hour)


def test_an_undone_move_costs() -> None:
    assert Account().charged(0.5).saved == -0.5


STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "stop", "settle"]), st.floats(0, 1e6), st.none() | st.floats(0, 1e4)),
    max_size=30,
)


@given(STEPS)
def test_spent_never_shrinks_and_is_never_negative(steps: list[tuple[str, float, float | None]]) -> None:
    account, now = Account(), 0.0
    for kind, seconds, price in steps:
        now += seconds
        before = account.spent
        if kind == "start":
            account = account.started(price, now)
        else:
            account = account.stopped(now) if kind == "stop" else account.settled(now)
        assert account.spent >= before >= 0
        assert account.settled(now - 1).spent == account.spent, "a clock that goes back books nothing"
