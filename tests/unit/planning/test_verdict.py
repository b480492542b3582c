"""Two series of numbers: by how much they differ, and what each rule says of that."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.planning.judge.difference import Difference, compare
from rightpool.planning.judge.promise import Promise
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.judge.verdict import RULES, TO_BE_FASTER, TO_STAY, Rule, Verdict, verdict
from tests.unit.planning.world import variation

QUIET = variation(1, 1000.0, 0.0)
KEPT = Promise(0.0, 0.05)


def series(*rates: float, price: float | None = 10.0) -> RateSeries:
    return RateSeries(sum(rates) / len(rates), len(rates), rates, rates, price=price, variation=QUIET)


BEFORE = series(*[1000.0] * 12)
positive = st.floats(1.0, 1e6)
runs = st.lists(positive, min_size=1, max_size=12)
prices = st.none() | st.floats(0.0, 1e3)
all_rules = st.sampled_from([RULES, TO_BE_FASTER, TO_STAY])


@pytest.mark.parametrize(
    ("rates", "price", "rules", "found"),
    [
        ([1000.0] * 3, 8.0, RULES, Verdict.BETTER),
        ([1000.0] * 3, 10.0, RULES, Verdict.SAME),
        ([1000.0] * 3, 13.0, RULES, Verdict.WORSE),
        ([600.0] * 3, 8.0, RULES, Verdict.WORSE),
        ([600.0], 8.0, RULES, Verdict.OPEN),  # one window may be an evaluation
        ([600.0, 600.0, 1000.0], 8.0, RULES, Verdict.OPEN),  # what is over by then is no reason
        ([0.0] * 3, 8.0, RULES, Verdict.OPEN),
        ([0.0] * 12, 8.0, RULES, Verdict.IDLE),
        ([1000.0, 0.0, 0.0, 1000.0], 8.0, RULES, Verdict.OPEN),  # it pauses
        ([100.0] * 3, None, RULES, Verdict.SAME),  # nobody knows what it costs
        ([1000.0] * 3, 20.0, TO_BE_FASTER, Verdict.DEARER),
        ([1000.0] * 3, None, TO_BE_FASTER, Verdict.SAME),
        ([1500.0] * 3, 20.0, TO_BE_FASTER, Verdict.BETTER),
        ([100.0] * 3, 10.0, TO_STAY, Verdict.SAME),
        ([0.0] * 12, 10.0, TO_STAY, Verdict.IDLE),
    ],
)
def test_each_rule(rates: list[float], price: float | None, rules: tuple[Rule, ...], found: Verdict) -> None:
    money = 0.0 if rules is TO_BE_FASTER else 1.0
    assert verdict(compare(BEFORE, series(*rates, price=price), 1.0, money=money), rules) is found


def test_a_start_that_is_slow_everywhere_undoes_nothing_and_hides_no_gain() -> None:
    slow, fast = (replace(series(*[rate] * 3), starting=True) for rate in (400.0, 2000.0))
    found = [verdict(compare(BEFORE, after, 1.0)) for after in (slow, fast)]
    assert found == [Verdict.OPEN, Verdict.BETTER]
    assert verdict(compare(BEFORE, slow, 1.0, last=True)) is Verdict.WORSE


def test_the_first_rule_that_answers_decides() -> None:
    def silent(difference: Difference) -> Verdict | None:
        return None

    def certain(difference: Difference) -> Verdict | None:
        return Verdict.BETTER

    slower = compare(BEFORE, series(*[400.0] * 3), 1.0)
    assert verdict(slower, (silent, certain, *RULES)) is Verdict.BETTER
    assert verdict(slower, (silent, *RULES)) is verdict(slower) is Verdict.WORSE
    assert verdict(slower, (silent,)) is Verdict.OPEN


def test_a_promise_counts_where_windows_tell_little_and_not_where_they_refute_it() -> None:
    varies = variation(1, 1000.0, 0.0, spread=0.2)
    before = replace(BEFORE, rates=(), variation=varies)
    little, lots = (replace(series(rate), rates=(), variation=varies) for rate in (900.0, 200.0))
    some, none = compare(before, little, 1.0, KEPT), compare(before, lots, 1.0, KEPT)
    assert 0.0 < some.likely < some.measured and some.weight < 1.0
    assert none.likely == none.measured and none.weight == 1.0


@given(before=runs, after=runs, price=prices, money=st.sampled_from([0.0, 0.5, 1.0]), rules=all_rules)
def test_when_the_time_is_over_there_is_a_verdict(
    before: list[float], after: list[float], price: float | None, money: float, rules: tuple[Rule, ...]
) -> None:
    found = compare(series(*before), series(*after, price=price), 1.0, KEPT, money=money, last=True)
    assert verdict(found, rules) is not Verdict.OPEN


@given(before=runs, after=runs, units=st.floats(1e-3, 1e3), money=st.sampled_from([0.0, 0.5, 1.0]))
def test_what_is_counted_and_in_which_coin_is_all_the_same(
    before: list[float], after: list[float], units: float, money: float
) -> None:
    one = compare(series(*before), series(*after, price=7.0), 1.0, KEPT, money=money)
    others = series(*(rate * units for rate in before), price=10.0 * units)
    scaled = compare(others, series(*(rate * units for rate in after), price=7.0 * units), 1.0, KEPT, money=money)
    for name in ("by_means", "measured", "likely", "sd", "weight", "price"):
        assert getattr(one, name) == pytest.approx(getattr(scaled, name), rel=1e-6, abs=1e-6)


@given(before=runs, after=runs, price=st.floats(0.1, 1e3))
def test_dollars_add_to_time(before: list[float], after: list[float], price: float) -> None:
    time, both, dollars = (
        compare(series(*before), series(*after, price=price), 1.0, KEPT, money=money) for money in (0.0, 0.5, 1.0)
    )
    assert dollars.likely - time.likely == pytest.approx(math.log(price / 10.0), abs=1e-9)
    assert both.likely == pytest.approx((time.likely + dollars.likely) / 2.0, abs=1e-9)
    assert time.dollars == pytest.approx(dollars.likely)
    assert (time.sd, time.weight) == (dollars.sd, dollars.weight), "a price says nothing of rates"


@given(before=runs, after=runs, more=st.floats(1.0, 10.0))
def test_what_is_faster_in_each_window_takes_less(before: list[float], after: list[float], more: float) -> None:
    slow, fast = (compare(series(*before), series(*(rate * by for rate in after)), 1.0, KEPT) for by in (1.0, more))
    assert fast.by_means <= slow.by_means + 1e-9 and fast.measured <= slow.measured + 1e-9
