"""The fleet's allocator: what several jobs want goes where it saves most in all."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.choices import FleetMode
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.policy import FleetPlanning
from rightpool.cli.decider import Decider
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.allocator import Allocator
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job
from tests.unit.planning.jobs import GREEDY, fleet, fresh, plan, running, spec
from tests.unit.planning.test_plan import FREE
from tests.unit.prediction.fixtures import A100_CHIP, pool

HOME = Placement("home", 4, 1)


def job(name: str, *pools: str) -> Job:
    """It runs on chips of $8 and may go to these pools."""
    made = spec(
        chips=4,
        elasticity={"minChips": 4, "maxChips": 4, "batch": "Global"},
        placement={"pools": {"allow": ["home", *pools]}},
    )
    machines = pools_of(4)
    return running(HOME, 100.0, name, made, pools=machines)


def pools_of(free: int) -> dict[str, Pool]:
    return {
        "home": pool("home", A100_CHIP, 8.0, total=16, free=0, per_node=4),
        "cheap": pool("cheap", A100_CHIP, 2.0, total=8, free=free, per_node=4),
        "fair": pool("fair", A100_CHIP, 2.2, total=8, free=free, per_node=4),
    }


def contested(free: int = 4) -> Fleet:
    """Both want the cheap chips most; one of them has a second choice."""
    return fleet([job("choosy", "cheap"), job("able", "cheap", "fair")], pools_of(free), FREE)


def targets(made: Plan) -> dict[str, str | None]:
    """Where each job goes, by its name; None: nowhere."""
    return {
        key.name: None
        if assessment.decision.action is not Action.MOVE or assessment.decision.target is None
        else assessment.decision.target.pool
        for key, assessment in made.assessments.items()
    }


def test_the_policy_says_which_allocator_it_is() -> None:
    off = contested()
    auto = replace(off, policy=off.policy.model_copy(update={"fleet": FleetPlanning(mode=FleetMode.AUTO)}))
    assert targets(Decider()(off)) == {"able": "cheap", "choosy": None}
    assert targets(Decider()(auto)) == {"able": "fair", "choosy": "cheap"}


def test_who_has_a_second_choice_makes_way_for_who_has_none() -> None:
    assert targets(plan(contested(), allocator=GREEDY)) == {"able": "cheap", "choosy": None}
    made = plan(contested(), allocator=FleetAllocator())
    assert targets(made) == {"able": "fair", "choosy": "cheap"}
    prices = made.allocation.choice.prices
    assert prices.keys() == {"cheap"} and 0.0 < prices["cheap"] <= 6.0, "one chip saves no more than it costs at home"


def test_without_a_solver_the_prices_alone_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert targets(plan(contested(), allocator=FleetAllocator())) == {"able": "fair", "choosy": "cheap"}


@pytest.mark.parametrize("allocator", [GREEDY, FleetAllocator()], ids=["greedy", "fleet"])
def test_where_there_is_enough_everybody_gets_what_it_wants_most(allocator: Allocator) -> None:
    made = plan(contested(8), allocator=allocator)
    assert targets(made) == {"able": "cheap", "choosy": "cheap"}
    assert made.allocation.choice.prices == {}


def test_who_is_left_out_is_told_who_has_the_chips() -> None:
    jobs = [job("one", "cheap"), job("two", "cheap")]
    made = plan(fleet(jobs, pools_of(4), FREE), allocator=FleetAllocator())
    assert sorted(targets(made).values(), key=str) == [None, "cheap"]
    held = next(a for a in made.assessments.values() if a.decision.action is Action.HOLD)
    assert held.decision.reason in (Reason.OUTBID, Reason.WAITING_FOR_CAPACITY)


def test_a_first_start_comes_before_all_moves() -> None:
    new = fresh("new", spec(chips=4, placement={"pools": {"allow": ["cheap"]}}))
    made = plan(fleet([new, job("choosy", "cheap")], pools_of(4), FREE), allocator=FleetAllocator())
    assert made.assessments[new.key].decision.action is Action.START
    assert targets(made)["choosy"] is None
