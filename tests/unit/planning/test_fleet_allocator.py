"""The fleet's allocator: what several jobs want goes where it saves most in all."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rightpool.api.action import Action
from rightpool.api.choices import FleetMode
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.api.policy import FleetPlanning
from rightpool.cli.decider import Decider
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate import fleet_allocator
from rightpool.planning.allocate.allocator import AllocationProblem, Allocator, Choice
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.allocate.plan import plan as plan_by
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.beginning import with_decision
from rightpool.planning.offers.decision import MIGRATING_ACTIONS
from rightpool.planning.offers.evidence import Outbid
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.features import Features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations, Prediction
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import GREEDY, NOW, changed, entry, fleet, fresh, plan, running, spec
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


def test_who_is_outbid_sees_by_how_much() -> None:
    """Others lose more without the chips than it would gain by them."""
    jobs = [job("able", "cheap", "fair"), *(job(f"choosy-{number}", "cheap") for number in range(2))]
    made = plan(fleet(jobs, pools_of(4), FREE), allocator=FleetAllocator())
    texts = [
        decision_text(jobs[0], one, NOW) for one in made.assessments.values() if one.decision.reason is Reason.OUTBID
    ]
    assert len(texts) == 1 and "other jobs gain more from the chips of cheap: 4 are worth $" in texts[0]
    text = Outbid("cheap", 4, 24.0, 20.5).text(NOW)
    assert text.endswith(": 4 are worth $24.00 an hour or more to them, and $20.50 to this job")


def waiting(name: str, seconds: float) -> Job:
    return replace(new(8), key=JobKey("ns", name), created_at=NOW - seconds)


def test_a_job_that_waits_sees_what_its_chips_are_worth_to_who_gets_them() -> None:
    choice = by_fleet(waiting("a", 60.0), waiting("b", 0.0), free=8).allocation.choice
    ((key, outbid),) = choice.outbid.items()
    assert key.name == "b"
    assert outbid.worth == pytest.approx(8 * choice.prices["only"])
    assert 16.0 <= outbid.own <= outbid.worth < 100.0


def test_what_chips_are_worth_is_money_whoever_comes_first() -> None:
    """Who has waited for too long gets them at any price: that is nobody else's, and says not who gains more."""
    choice = by_fleet(waiting("a", 7200.0), waiting("b", 0.0), free=8).allocation.choice
    assert [grant.key.name for grant in choice.grants if grant.place] == ["a"]
    assert 0.0 < choice.prices["only"] < 20.0
    assert choice.outbid == {}


def test_nobody_is_outbid_for_chips_that_nobody_may_be_moved_from() -> None:
    choice = by_fleet(wide(gives="Never"), waiting("a", 60.0), free=0).allocation.choice
    assert choice.prices.keys() == {"only"}, "one more would be worth something"
    assert choice.outbid == {}


def test_a_first_start_comes_before_all_moves() -> None:
    new = fresh("new", spec(chips=4, placement={"pools": {"allow": ["cheap"]}}))
    made = plan(fleet([new, job("choosy", "cheap")], pools_of(4), FREE), allocator=FleetAllocator())
    assert made.assessments[new.key].decision.action is Action.START
    assert targets(made)["choosy"] is None


# --- giving way ------------------------------------------------------------------------------------------------------


def wide(chips: int = 8, **fields: Any) -> Job:
    """It runs on as many chips, may have 2 to 8, and lets others have some of them."""
    adaptation = {"mode": "Auto", "yield": fields.pop("gives", "Move")}
    made = spec(
        chips=8,
        elasticity={"minChips": 2, "maxChips": 8, "batch": "Global"},
        adaptation=adaptation,
        targets={"objective": fields.pop("objective", "Balanced")},
        **fields.pop("sections", {}),
    )
    ratios = {"exposed_communication": 0.01}
    return running(Placement("only", chips, 1), 80.0 * chips, "wide", made, pools=only(0), ratios=ratios, **fields)


def only(free: int) -> dict[str, Pool]:
    return {"only": pool("only", A100_CHIP, 2.0, total=8, free=free, per_node=8)}


def new(chips: int = 4) -> Job:
    return fresh("new", spec(chips=chips, elasticity={"minChips": chips, "maxChips": chips, "batch": "Global"}))


def by_fleet(*jobs: Job, free: int = 0) -> Plan:
    return plan(fleet(jobs, only(free), FREE), allocator=FleetAllocator())


def test_a_job_that_runs_gives_way_to_one_that_waits_and_is_worth_more() -> None:
    one = wide()
    made = by_fleet(one, new())
    decision = made.assessments[one.key].decision
    assert (decision.action, decision.reason) == (Action.RESIZE, Reason.FLEET_GAINS)
    assert decision.target == Placement("only", 4, 1)
    assert "gives way" in decision_text(one, made.assessments[one.key], NOW)
    assert made.assessments[new().key].decision.reason is Reason.WAITING_FOR_CAPACITY, "its chips are not free yet"


def on_nodes(name: str, chips: int, *nodes: str) -> Job:
    """It runs on these nodes of eight chips, and may have half of its chips."""
    made = spec(
        chips=8,
        elasticity={"minChips": chips // 2, "maxChips": chips, "batch": "Global"},
        adaptation={"mode": "Auto", "yield": "Move"},
        targets={"objective": "Balanced"},
    )
    child = RevisionState(1, True, active=len(nodes), running=len(nodes), nodes=dict.fromkeys(nodes, 1))
    place, ratios = Placement("only", chips, len(nodes)), {"exposed_communication": 0.01}
    return running(place, 80.0 * chips, name, made, pools=only(0), ratios=ratios, revisions={1: child})


@pytest.mark.parametrize(
    ("givers", "gives"),
    [
        ([on_nodes("one", 8, "node-0"), on_nodes("two", 8, "node-1")], set()),
        ([on_nodes("one", 16, "node-0", "node-1")], {"one"}),
    ],
    ids=["halves-of-two-nodes", "a-whole-node"],
)
def test_nobody_gives_chips_on_which_the_pods_of_others_find_no_room(givers: list[Job], gives: set[str]) -> None:
    """Four chips of each of two nodes are no room for a pod of eight."""
    pools = {"only": pool("only", A100_CHIP, 2.0, total=16, free=0, per_node=8)}
    made = plan(fleet([*givers, new(8)], pools, FREE), allocator=FleetAllocator())
    assert made.allocation.choice.failure is None
    moved = {key.name for key, one in made.assessments.items() if one.decision.action in MIGRATING_ACTIONS}
    assert moved == gives


def just_started() -> Job:
    one = wide()
    assert one.state.revision is not None
    return changed(one, revision=replace(one.state.revision, since=NOW - 60.0))


@pytest.mark.parametrize(
    "one",
    [wide(gives="Never"), wide(sections={"checkpoint": {"mode": "None"}}), just_started()],
    ids=["does-not-let-them", "can't-save", "has-just-started"],
)
def test_nobody_gives_way_who_may_not_be_moved(one: Job) -> None:
    made = plan(fleet([one, new()], only(0)), allocator=FleetAllocator())
    assert made.assessments[one.key].decision.action not in MIGRATING_ACTIONS


def test_nobody_gives_way_more_than_once_for_the_same_chips() -> None:
    one, two = wide(), new()
    began = with_decision(one, by_fleet(one, two).assessments[one.key], NOW, lambda *_: "")
    assert began.state.migration is not None and began.state.migration.without_return is Reason.FLEET_GAINS
    other = replace(one, key=JobKey("ns", "other"))
    pools = {"only": pool("only", A100_CHIP, 2.0, total=16, free=0, per_node=8)}
    made = plan(fleet([began, other, two], pools, FREE), allocator=FleetAllocator())
    assert made.assessments[other.key].decision.action not in MIGRATING_ACTIONS


def test_who_gave_way_grows_again_when_chips_are_free() -> None:
    gave = entry(
        Outcome.CARRIED_OUT,
        NOW - 7200.0,
        action=Action.RESIZE,
        reason=Reason.FLEET_GAINS,
        source=Placement("only", 8, 1),
        target=Placement("only", 4, 1),
        baseline_throughput=640.0,
        realised_throughput=320.0,
        doubt=0.01,
        source_chip=A100_CHIP.key,
        target_chip=A100_CHIP.key,
    )
    small = wide(4, history=(gave,))
    decision = by_fleet(small, free=4).assessments[small.key].decision
    assert (decision.action, decision.target) == (Action.RESIZE, Placement("only", 8, 1))


class Watching(FleetAllocator):
    """It keeps what each job's hour was taken to be worth."""

    __slots__ = ("rates", "values")

    def share(self, problem: AllocationProblem, before: Choice | None) -> Choice:
        members = problem.members()
        self.values = [stake.value for stake in members.stakes]
        self.rates = {
            stake.key.name: {members.places[place]: rate for place, rate in zip(stake.places, stake.rates, strict=True)}
            for stake in members.stakes
        }
        return super().share(problem, before)


def test_what_time_is_worth_goes_by_what_a_job_wants_and_not_by_what_it_has() -> None:
    """Or who has little would never be given more."""
    allocator, found = Watching(), []
    for chips in (2, 8):
        one = wide(chips, objective="MinimizeTime")
        plan(fleet([one], only(8 - chips), FREE), allocator=allocator)
        found += allocator.values
    assert found == [9.6, 9.6], "0.6 of what eight chips cost"


@pytest.mark.parametrize(
    ("gives", "reason"), [("Move", Reason.CHEAPER_POOL_MEETS_TARGETS), ("Never", Reason.MORE_WINDOWS_NEEDED)]
)
def test_what_the_plan_gives_to_who_lets_it_waits_for_no_hour_of_windows(gives: str, reason: Reason) -> None:
    """Or who was to get the chips that it leaves would wait for that hour, too."""
    machines = only(0) | {"near": pool("near", A100_CHIP, 1.66, total=8, free=4, per_node=8)}
    made = spec(chips=4, elasticity={"minChips": 4, "maxChips": 4}, adaptation={"mode": "Auto", "yield": gives})
    one = running(Placement("only", 4, 1), 320.0, "young", made, pools=machines)
    assert one.state.revision is not None
    one = changed(one, revision=replace(one.state.revision, since=NOW - 900.0))
    jobs = [one, replace(one, key=JobKey("ns", "other"))]
    found = plan(fleet(jobs, machines, FREE), allocator=FleetAllocator())
    assert reason in {made.decision.reason for made in found.assessments.values()}


@pytest.mark.parametrize("program", ["same", "other"])
def test_a_job_that_waits_does_what_another_of_its_program_is_known_to_do(program: str) -> None:
    """What was never measured of any is worth by how many chips there are."""
    one = wide(4)
    two = replace(fresh("new", one.spec), workload_hash=one.workload_hash if program == "same" else program)
    allocator = Watching()
    plan(fleet([one, two], only(4), FREE), allocator=allocator)
    known, asked = allocator.rates["wide"], allocator.rates["new"]
    assert Placement("only", 4, 1) in asked
    assert ({place: known[place] for place in asked} == asked) is (program == "same")


def test_restarts_for_others_take_a_share_of_its_time_and_no_number_in_its_life() -> None:
    """The first two count for nothing, not even when the third is asked about."""
    times = (NOW - 1800.0 * number for number in (3, 2, 1))
    gave = [entry(Outcome.CARRIED_OUT, at, reason=Reason.FLEET_GAINS, lost_seconds=300.0) for at in times]
    old, young = (wide(history=tuple(gave), created_at=NOW - age) for age in (15_000.0, 9_000.0))
    assert by_fleet(old, new()).assessments[old.key].decision.reason is Reason.FLEET_GAINS
    assert by_fleet(young, new()).assessments[young.key].decision.reason is not Reason.FLEET_GAINS


def test_whoever_has_waited_for_too_long_is_passed_over_no_more() -> None:
    """Two want the same chips, and one of them is worth more by far."""
    narrow = {"minChips": 1, "maxChips": 1, "batch": "Global"}
    many = [fresh(f"small-{number}", spec(chips=1, elasticity=narrow), created_at=NOW - 60.0) for number in range(8)]
    whole = spec(chips=8, elasticity={"minChips": 8, "maxChips": 8, "batch": "Global"})

    def starts(waited: float) -> set[str]:
        made = by_fleet(*many, fresh("large", whole, created_at=NOW - waited), free=8)
        return {key.name for key, one in made.assessments.items() if one.decision.action is Action.START}

    assert starts(30.0) == {one.key.name for one in many}
    assert starts(2.0 * 3600.0) == {"large"}


# --- prices and pools ------------------------------------------------------------------------------------------------


class Odd:
    """The step model, which on some pools says what can't be."""

    def __init__(self, says: float) -> None:
        self._says, self._model = says, StepModelPredictor()
        self.version = "odd"

    def of_fleet(self, experience: Sequence[Comparison]) -> Odd:
        return self

    def predict(self, jobs: Features, machines: Machines, targets: Destinations) -> Prediction:
        found = self._model.predict(jobs, machines, targets)
        elsewhere = ~targets.current & (targets.pool == machines.index["cheap"])
        return replace(found, median=np.where(elsewhere, self._says, found.median))


@pytest.mark.parametrize("says", [math.nan, math.inf, 0.0, -1.0], ids=["nan", "infinite", "zero", "negative"])
def test_what_a_model_says_that_can_t_be_is_nothing_to_the_plan(says: float) -> None:
    made = plan_by(contested(), Odd(says), FleetAllocator())
    assert made.allocation.choice.failure is None
    assert "cheap" not in targets(made).values()
    assert all(math.isfinite(price) for price in made.allocation.choice.prices.values())


@pytest.mark.parametrize("price", [0.0, None], ids=["free", "unknown"])
def test_chips_without_a_price_are_shared_out_all_the_same(price: float | None) -> None:
    """Who has waited for longer starts, and who wants time grows."""
    machines = {"only": pool("only", A100_CHIP, price, total=8, free=6, per_node=8)}
    one = wide(2, objective="MinimizeTime")
    made = plan(fleet([one], machines, FREE), allocator=FleetAllocator())
    assert made.allocation.choice.failure is None
    assert made.assessments[one.key].decision.action is Action.RESIZE
    waiting = [new(4), replace(new(4), key=JobKey("ns", "later"), created_at=NOW - 60.0)]
    starts = plan(fleet(waiting, machines, FREE), allocator=FleetAllocator())
    assert starts.allocation.choice.failure is None
    begun = {key.name for key, made in starts.assessments.items() if made.decision.action is Action.START}
    assert begun == {"new"}


def test_a_pool_that_vanishes_while_a_plan_is_under_way_takes_nothing_else_with_it() -> None:
    """One gives way for another; then its pool is gone, with and without the memory of the plan before."""
    one, two = wide(), new()
    first = by_fleet(one, two)
    began = with_decision(one, first.assessments[one.key], NOW, lambda *_: "")
    assert began.state.migration is not None
    elsewhere = job("choosy", "cheap")
    for before in (first, None):
        made = plan(fleet([began, two, elsewhere], pools_of(4), FREE), before, FleetAllocator())
        assert made.allocation.choice.failure is None
        assert made.assessments[elsewhere.key].decision.target == Placement("cheap", 4, 1)
        assert made.assessments[began.key].decision.action not in MIGRATING_ACTIONS


# --- when it fails ---------------------------------------------------------------------------------------------------


def crashes(*args: object, **kwargs: object) -> None:
    raise FloatingPointError("a solver that crashes")


@pytest.mark.parametrize("where", ["shared_out", "Market"])
def test_where_no_plan_is_made_greedy_stands_in_and_says_so(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(fleet_allocator, where, crashes)
    made = plan(contested(), allocator=FleetAllocator())
    assert targets(made) == targets(plan(contested(), allocator=GREEDY))
    assert made.allocation.choice.failure == "FloatingPointError: a solver that crashes"
