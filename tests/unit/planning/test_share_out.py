"""Sharing out chips by what they are worth: against all plans that there are, where there are few."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fleet.properties import violations
from benchmarks.fleet.scale import MadeFleet
from rightpool.api.placement import Placement
from rightpool.planning.allocate.market import NOTHING, Market, Stake
from rightpool.planning.allocate.share_out import LEAST_GAIN, SharedOut, shared_out
from rightpool.planning.allocate.surplus import surplus
from rightpool.planning.jobs.job import JobKey

A, B = "a", "b"
PLACES = [Placement(pool, size, 1) for pool in (A, B) for size in (1, 2, 4)]


def stake(name: str, rates: Mapping[tuple[str, int], float], **more: object) -> Stake:
    """A job that does so much at so many chips of a pool, which cost a dollar, or two of `b`, an hour."""
    places = [Placement(pool, chips, 1) for pool, chips in rates]
    speeds = np.array(list(rates.values()))
    return Stake(
        key=JobKey("team", name),
        places=np.array([PLACES.index(place) for place in places], dtype=np.int64),
        rates=speeds,
        prices=np.array([place.chips * (2.0 if place.pool == B else 1.0) for place in places]),
        left=3600.0 / speeds,
        **{"value": 10.0, **more},  # type: ignore[arg-type]
    )


@st.composite
def markets(draw: st.DrawFn) -> tuple[list[Stake], dict[str, int]]:
    chips = {A: draw(st.integers(1, 6)), B: draw(st.integers(0, 4))}
    free, stakes = dict(chips), []
    options = [(pool, size) for pool in (A, B) for size in (1, 2, 4)]
    for number in range(draw(st.integers(1, 4))):
        chosen = draw(st.lists(st.sampled_from(options), min_size=1, max_size=5, unique=True))
        rates = {option: draw(st.floats(0.1, 8.0)) for option in chosen}
        pool, size = chosen[0]
        runs = draw(st.booleans()) and size <= free[pool]
        if runs:
            free[pool] -= size
        stakes.append(
            stake(
                f"job-{number}",
                rates,
                value=draw(st.floats(0.0, 50.0)),
                here=PLACES.index(Placement(pool, size, 1)) if runs else NOTHING,
                started=runs or draw(st.booleans()),
                restart=draw(st.sampled_from([0.0, 60.0, 900.0])),
                changes=draw(st.floats(0.0, 3.0)),
            )
        )
    return stakes, chips


def best(market: Market) -> float:
    """By trying all."""
    worth, found = surplus(market), -np.inf
    choices: list[Sequence[int]] = []
    for job in range(len(market.keys)):
        options = [
            option for option in range(int(market.first[job]), int(market.first[job + 1])) if np.isfinite(worth[option])
        ]
        choices.append(options if market.here[job] >= 0 else [-1, *options])
    for choice in itertools.product(*choices):
        used = np.zeros(len(market.pools))
        for option in choice:
            if option >= 0:
                used[market.pool[option]] += market.size[option]
        if (used <= market.chips).all():
            found = max(found, sum(float(worth[option]) for option in choice if option >= 0))
    return found


def carried_out(stakes: Sequence[Stake], plan: SharedOut) -> list[Stake]:
    """The same jobs, each with what the plan gives it. No time has passed."""
    done = []
    for one in stakes:
        place = plan.places[one.key]
        here = NOTHING if place is None else PLACES.index(place)
        changed = one.started and here != one.here
        done.append(
            Stake(
                one.key,
                one.places,
                one.rates,
                one.prices,
                one.left,
                one.value,
                here,
                one.started or here != NOTHING,
                one.restart,
                one.changes + changed,
            )
        )
    return done


@pytest.mark.parametrize("seed", range(15))
def test_of_any_fleet_holds_what_has_to_hold(seed: int) -> None:
    """`python -m benchmarks.fleet.properties` asks 10,000."""
    assert violations(seed) == []


@given(markets())
def test_no_plan_is_worth_more_than_the_one_made(made: tuple[list[Stake], dict[str, int]]) -> None:
    stakes, chips = made
    market = Market(PLACES, stakes, chips)
    plan = shared_out(market, {})
    most = best(market)
    assert plan.worth >= most - 2.0 * LEAST_GAIN * abs(most) - 1e-6
    assert plan.bound >= most - 1e-6 - 1e-9 * abs(most)


@given(markets())
def test_no_chip_is_promised_twice_and_who_has_a_place_keeps_one(made: tuple[list[Stake], dict[str, int]]) -> None:
    stakes, chips = made
    plan = shared_out(Market(PLACES, stakes, chips), {})
    used: Counter[str] = Counter()
    for one in stakes:
        place = plan.places[one.key]
        assert place is not None or one.here == NOTHING
        assert place is None or PLACES.index(place) in one.places
        if place is not None:
            used[place.pool] += place.chips
    assert all(used[pool] <= chips[pool] for pool in chips)


@given(markets(), st.randoms(use_true_random=False))
def test_the_order_in_which_jobs_come_changes_nothing(
    made: tuple[list[Stake], dict[str, int]], shuffled: object
) -> None:
    stakes, chips = made
    plan = shared_out(Market(PLACES, stakes, chips), {})
    other = list(stakes)
    shuffled.shuffle(other)  # type: ignore[attr-defined]
    assert shared_out(Market(PLACES, other, dict(reversed(chips.items()))), {}) == plan


@given(markets())
def test_a_plan_that_is_carried_out_is_kept(made: tuple[list[Stake], dict[str, int]]) -> None:
    stakes, chips = made
    plan = shared_out(Market(PLACES, stakes, chips), {})
    again = shared_out(Market(PLACES, carried_out(stakes, plan), chips), plan.prices)
    assert again.places == plan.places


def test_a_large_fleet_has_its_plan_at_once_and_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of its jobs are as well off in one pool as in another of the same chips. No solver helps."""
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    fleet = MadeFleet(1000, 1.15)
    plan = shared_out(fleet.market(), {})
    assert plan.bound <= 1.002 * plan.worth
    assert fleet.carry_out(plan) > 800
    assert fleet.carry_out(shared_out(fleet.market(), plan.prices)) == 0


def test_a_job_that_is_worth_more_gets_chips_of_one_that_runs_which_shrinks() -> None:
    chips = {A: 4, B: 0}
    wide = stake("wide", {(A, 2): 1.0, (A, 4): 1.6}, here=PLACES.index(Placement(A, 4, 1)), started=True, restart=10.0)
    plan = shared_out(Market(PLACES, [wide, stake("new", {(A, 2): 1.0}, value=40.0)], chips), {})
    assert plan.places == {wide.key: Placement(A, 2, 1), JobKey("team", "new"): Placement(A, 2, 1)}
    assert plan.prices[A] > 0.0


def test_nobody_shrinks_for_less_than_the_restart_costs() -> None:
    chips = {A: 4, B: 0}
    wide = stake(
        "wide", {(A, 2): 1.0, (A, 4): 1.6}, here=PLACES.index(Placement(A, 4, 1)), started=True, restart=3000.0
    )
    plan = shared_out(Market(PLACES, [wide, stake("new", {(A, 2): 1.0}, value=11.0)], chips), {})
    assert plan.places == {wide.key: Placement(A, 4, 1), JobKey("team", "new"): None}


def test_chips_that_are_left_have_no_price() -> None:
    plan = shared_out(Market(PLACES, [stake("one", {(A, 1): 1.0})], {A: 2, B: 2}), {})
    assert plan.prices == {A: 0.0, B: 0.0} and plan.worth == plan.bound


def test_a_job_of_which_nothing_is_known_stays_where_it_is() -> None:
    known = stake("one", {(A, 1): float("nan"), (B, 1): float("nan")}, here=0, started=True)
    plan = shared_out(Market(PLACES, [known, stake("none", {})], {A: 2, B: 2}), {})
    assert plan.places == {known.key: Placement(A, 1, 1)}


ODD = st.sampled_from([float("nan"), float("inf"), -float("inf"), -1.0, 0.0, 1e-300, 1e300, 1.0])


@given(st.lists(st.tuples(ODD, ODD, ODD, ODD, ODD, st.booleans()), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_numbers_that_make_no_sense_leave_out_an_option_and_nothing_else(
    odd: list[tuple[float, float, float, float, float, bool]],
) -> None:
    sane = stake("sane", {(A, 1): 1.0, (A, 2): 1.9}, here=0, started=True)
    stakes = [sane, stake("waits", {(B, 1): 1.0})]
    for number, (rate, price, left, value, restart, runs) in enumerate(odd):
        made = stake(f"odd-{number}", {(A, 1): 1.0, (A, 2): 1.0}, here=0 if runs else NOTHING, started=runs)
        stakes.append(
            replace(
                made,
                rates=np.array([1.0, rate]),
                prices=np.array([1.0, price]),
                left=np.array([1.0, left]),
                value=value,
                restart=restart,
            )
        )
    chips = {A: 6, B: 1}
    plan = shared_out(Market(PLACES, stakes, chips), {})
    used: Counter[str] = Counter()
    for place in plan.places.values():
        if place is not None:
            used[place.pool] += place.chips
    assert all(used[pool] <= chips[pool] for pool in chips)
    assert plan.places[JobKey("team", "waits")] == Placement(B, 1, 1), "nobody else wants those chips"
    assert all(np.isfinite(price) and price >= 0.0 for price in plan.prices.values()) and np.isfinite(plan.worth)
