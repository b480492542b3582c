"""Money: spent never shrinks, saved is told against where the job would be without its moves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.account import Account
from rightpool.api.counterfactual import Counterfactual
from rightpool.api.placement import Placement

HOUR = 3600.0
THERE = Counterfactual(Placement("a100", 8, 1), cost_per_hour=40.0)


def test_an_hour_on_the_meter() -> None:
    account = Account().started(8.0, 0.0, 8).settled(HOUR)
    assert account.spent == pytest.approx(8.0)
    assert account.stopped(2 * HOUR).settled(9 * HOUR).spent == pytest.approx(16.0)
    assert account.stopped(2 * HOUR).settled(9 * HOUR).chip_seconds == 16 * HOUR


def test_time_without_a_price_is_told_apart() -> None:
    account = Account().started(None, 0.0).settled(HOUR)
    assert (account.spent, account.unpriced_seconds) == (0.0, HOUR)


MEASURED = st.lists(st.tuples(st.floats(0.05, 20.0), st.floats(0, 1e5), st.floats(0, 100.0)), max_size=20)


@given(MEASURED)
def test_what_was_saved_is_what_the_work_would_have_cost_less_what_it_did(
    steps: list[tuple[float, float, float]],
) -> None:
    """However often the ratio is measured, the newest counts for all the time since the move."""
    now = 0.0
    account = Account(spent=100.0, saved=7.0).started(8.0, now, 8).moved(THERE, now)
    spent = account.spent
    hours = 0.0
    ratio = 1.0
    for ratio, seconds, price in steps:
        assert account.counterfactual is not None
        account = replace(account.settled(now), cost_per_hour=price)
        assert account.counterfactual is not None
        account = replace(account, counterfactual=replace(account.counterfactual, per_hour=40.0))
        account = account.measured(ratio, 0.0, now)
        now += seconds
        hours += seconds / HOUR
        account = account.settled(now)
    would = 40.0 * hours / ratio
    assert account.saved == pytest.approx(7.0 + would - (account.spent - spent), rel=1e-9, abs=1e-6)
    assert account.saved <= 7.0 + would + 1e-6


def test_how_doubtful_savings_are_is_kept_when_the_job_moves_on() -> None:
    """An hour at a place that would have cost $40 elsewhere, known within 10%, then home again, then another one."""
    account = Account().started(8.0, 0.0, 8).moved(THERE, 0.0)
    account = replace(account, counterfactual=replace(account.counterfactual or THERE, per_hour=40.0))
    assert account.saved_sd == 0.0, "not measured"
    account = account.measured(0.8, 0.1, 0.0).settled(HOUR)
    assert account.saved == pytest.approx(42.0) and account.saved_sd == pytest.approx(5.0)
    home = account.moved(None, HOUR)
    assert home.settled(2 * HOUR).saved_sd == home.unlinked().saved_sd == pytest.approx(5.0)
    again = home.moved(THERE, HOUR)
    again = replace(again, counterfactual=replace(again.counterfactual or THERE, per_hour=20.0))
    assert again.measured(1.0, 0.2, HOUR).settled(2 * HOUR).saved_sd == pytest.approx(5.0 + 4.0)


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


@given(st.floats(0, 1e4), st.floats(-1e4, 1e4), st.floats(-10.0, 1e6))
def test_a_sum_by_itself_is_that_of_the_settled_account(price: float, saving: float, seconds: float) -> None:
    account = Account(spent=5.0, saved=-2.0, since=1e9, cost_per_hour=price, saving_per_hour=saving, chips=8)
    for one in (account, account.stopped(1e9)):
        settled = one.settled(1e9 + seconds)
        assert (one.spent_by(1e9 + seconds), one.saved_by(1e9 + seconds)) == (settled.spent, settled.saved)
