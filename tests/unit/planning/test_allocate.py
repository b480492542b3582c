"""The seams of the plan: what is evaluated, and who gets which chips. Admission itself is tested in test_plan.py."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.cli.decider import Decider
from rightpool.planning.allocate.allocator import AllocationProblem, Choice
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.allocate.plan import plan as plan_by
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.evaluate import evaluate
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, NOW, fleet, plan, running, spec
from tests.unit.planning.test_plan import FREE, shaken
from tests.unit.planning.test_plan_properties import fleets
from tests.unit.prediction.fixtures import A10G, A100, A100_CHIP, pool

# --- migrations that wait to begin -----------------------------------------------------------------------------------

EIGHT = Placement("a100", 8, 8)


def grows(**sections: Any) -> ProfiledJobSpec:
    """Of a job that is worth more the faster it is."""
    return spec(chips=1, targets={"objective": "MinimizeTime"}, placement={"pools": {"allow": ["a100"]}}, **sections)


def waiting(name: str, decided: float, target: Placement = EIGHT, **changes: Any) -> Job:
    """A job on one chip whose move to eight was decided on and has not begun. changes: sections of its spec."""
    job = running(Placement("a100", 1, 1), 100.0, name, grows(**changes))
    revision = job.state.revision
    assert revision is not None
    there = replace(revision, revision=2, placement=target, since=None)
    migration = Migration(
        id="d-1",
        action=Action.RESIZE,
        phase=Phase.PLANNED,
        source=revision,
        target=there,
        created_at=decided,
        phase_since=decided,
        reason=Reason.FASTER_PLACEMENT_MEETS_TARGETS,
        message="m",
    )
    return job.with_state(replace(job.state, migration=migration))


def after(job: Job, made: Plan) -> Job:
    """What becomes of it in this cycle."""
    return advance(job, made.assessments[job.key], FREE, NOW, decision_text)


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_that_wait_for_the_same_chips_the_older_one_begins(order: int) -> None:
    pools = {"a100": pool("a100", A100_CHIP, 4.0, free=8)}
    old, young = waiting("old", NOW - 200), waiting("young", NOW - 100)
    made = plan(fleet([old, young][::order], pools, FREE))
    assert {key.name: assessment.withdrawn for key, assessment in made.assessments.items()} == {
        "old": False,
        "young": True,
    }
    begun, held = after(old, made), after(young, made)
    assert begun.state.migration is not None and begun.state.migration.phase is Phase.CHECKPOINTING
    assert held.state.migration is None
    assert [entry.outcome for entry in held.state.history] == [Outcome.HELD]


def test_both_begin_where_there_is_room_for_both() -> None:
    pools = {"a100": pool("a100", A100_CHIP, 4.0, free=14)}
    jobs = [waiting("old", NOW - 200), waiting("young", NOW - 100)]
    made = plan(fleet(jobs, pools, FREE))
    assert not any(assessment.withdrawn for assessment in made.assessments.values())


def test_chips_of_what_is_withdrawn_are_there_for_others_at_once() -> None:
    pools = {"a100": pool("a100", A100_CHIP, 4.0, free=4)}
    large = waiting("large", NOW - 200)
    other = running(Placement("a100", 1, 1), 100.0, "other", grows())
    made = plan(fleet([large, other], pools, FREE))
    assert made.assessments[large.key].withdrawn
    assert made.assessments[other.key].decision.target == Placement("a100", 4, 4)


def test_what_waits_for_approval_holds_no_chips_and_is_not_withdrawn_for_want_of_them() -> None:
    pools = {"a100": pool("a100", A100_CHIP, 4.0, free=0)}
    job = waiting("job", NOW - 200, adaptation={"requireApproval": True})
    made = plan(fleet([job], pools, FREE))
    assert not made.assessments[job.key].withdrawn
    approved = replace(job, approved="d-1")
    assert plan(fleet([approved], pools, FREE)).assessments[job.key].withdrawn


def test_what_does_not_pay_any_more_is_withdrawn() -> None:
    dear = waiting("job", NOW - 200)
    cheap = replace(dear, spec=spec(chips=1, placement={"pools": {"allow": ["a100"]}}))
    assert plan(fleet([cheap], {"a100": A100}, FREE)).assessments[cheap.key].withdrawn


# --- seams -----------------------------------------------------------------------------------------------------------


class Nobody:
    """Gives chips to nobody."""

    def share(self, problem: AllocationProblem, before: Choice | None) -> Choice:
        """Everybody holds."""
        return Choice()


class Doubled(StepModelPredictor):
    """Another model."""

    version = "doubled"  # type: ignore[misc]


def test_another_allocator_is_passed_in_and_nothing_else_changes() -> None:
    job = running()
    held = Decider(allocator=Nobody())(fleet([job])).assessments[job.key]
    assert (held.decision.action, held.decision.reason) == (Action.HOLD, Reason.OUTBID)
    assert "other jobs gain more from the chips of" in decision_text(job, held, NOW)
    assert Decider()(fleet([job])).assessments[job.key].decision.action is Action.RESIZE


def test_predictions_of_another_model_are_not_kept() -> None:
    same, allocator = fleet([running()]), Nobody()
    first = plan(same)
    assert plan_by(same, StepModelPredictor(), allocator, first).reused == 1
    assert plan_by(same, Doubled(), allocator, first).reused == 0


# --- evaluation ------------------------------------------------------------------------------------------------------


@given(whole=fleets())
def test_a_fleet_is_evaluated_as_each_of_its_jobs_by_itself(whole: Fleet) -> None:
    predictor = StepModelPredictor()
    together = evaluate(whole, predictor)
    for key, job in whole.jobs.items():
        alone = evaluate(replace(whole, jobs={key: job}), predictor)[key]
        both = together[key]
        assert (both.intent, both.decision, both.places) == (alone.intent, alone.decision, alone.places)
        assert both.current() == alone.current()
        assert [both.candidate(entry) for entry in both.entries] == [alone.candidate(entry) for entry in alone.entries]


def test_an_evaluation_of_which_little_is_kept_is_given_up() -> None:
    """It is in memory as a whole while one job is kept from it: two fleets of eight jobs at most are held."""
    jobs = [running(name=f"job-{number}") for number in range(8)]
    first = plan(fleet(jobs))
    few = [jobs[0], *(shaken(job, 0.1) for job in jobs[1:])]
    second = plan(fleet(few, now=NOW + 10), first)
    assert second.reused == 1, "of eight jobs, and seven anew"
    fewer = [few[0], *(shaken(job, 0.1) for job in few[1:7]), few[7]]
    third = plan(fleet(fewer, now=NOW + 20), second)
    assert third.reused == 1, "one of eight and one of seven, with six anew, would have held 21"
    assert third.evaluated[few[7].key] is second.evaluated[few[7].key]
    assert third.assessments == plan(fleet(fewer, now=NOW + 20)).assessments


def test_a_decision_that_is_held_stays_the_same_object_while_nothing_changes() -> None:
    """Whoever writes the status sees by identity that there is nothing new."""
    jobs = [running(name=name) for name in ("a", "b")]
    one = FREE.model_copy(update={"max_concurrent_migrations": 1})
    first = plan(fleet(jobs, policy=one))
    second = plan(fleet(jobs, policy=one, now=NOW + 10), first)
    for job in jobs:
        assert second.assessments[job.key] is first.assessments[job.key]
    assert {a.decision.reason for a in first.assessments.values()} >= {Reason.MIGRATION_LIMIT_REACHED}


def test_the_prices_of_pools_are_looked_at_anew() -> None:
    job = running()
    first = plan(fleet([job], {"a100": A100, "a10g": A10G}))
    cheap = {"a100": A100, "a10g": replace(A10G, price=replace(A10G.price, on_demand=0.01))}
    second = plan(fleet([job], cheap, AUTO), first)
    assert second.reused == 0 and second.assessments == plan(fleet([job], cheap, AUTO)).assessments
