"""An object that somebody else has made is moved, and its user's word goes before the operator's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.adopted_object import AdoptedObject, Undone
from rightpool.api.adoption import Adoption
from rightpool.api.choices import AdoptionChange
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.planning.jobs.adopted import Adopted
from rightpool.planning.jobs.approval import recommendation_id
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal, RevisionState, Undoing
from rightpool.planning.moves.commands import Adopt, ChangeObject, CheckObject, HoldObject, LetGo, RenewJobs, commands
from rightpool.planning.moves.transitions import advance
from tests.unit.planning.jobs import AUTO, NOW, changed, fleet, plan, running
from tests.unit.planning.test_only_watched import step, watched

RUNS = RevisionState(revision=1, exists=True, adopted=True, active=1, running=1, on_nodes=1)
HELD = replace(RUNS, held=True, suspended=True, active=0, running=0, on_nodes=0)
PLACED = Placement("a10g", 4, 1)


def moving(phase: Phase, seen: RevisionState | None, *, change: str = "Suspend", **more: Any) -> Job:
    made = watched().model_copy(update={"adoption": Adoption(change=AdoptionChange(change))})
    job = running(made=made)
    source = job.state.revision
    assert source is not None
    target = replace(source, revision=2, placement=PLACED)
    migration = Migration("d-2", Action.MOVE, phase, source, target, NOW, NOW, Reason.PLACEMENT_DISALLOWED, "", **more)
    here = source if phase in (Phase.PLANNED, Phase.CHECKPOINTING, Phase.DRAINING) else target
    return changed(job, revision=here, migration=migration, revisions={} if seen is None else {seen.revision: seen})


@pytest.mark.parametrize(
    ("phase", "seen", "words"),
    [
        (Phase.CHECKPOINTING, None, "deleted"),
        (Phase.CHECKPOINTING, replace(RUNS, suspended=True), "suspended"),
        (Phase.DRAINING, replace(RUNS, suspended=True, active=0), "suspended"),
        (Phase.DRAINING, replace(HELD, suspended=False, active=1), "resumed"),
        (Phase.DRAINING, replace(HELD, edited=True), "changed"),
        (Phase.STARTING, replace(HELD, edited=True), "changed"),
        (Phase.STARTING, replace(HELD, suspended=False), "resumed"),
        (Phase.STARTING, RUNS, "resumed"),
        (Phase.STARTING, replace(RUNS, revision=2, suspended=True), "suspended"),
    ],
)
def test_what_its_user_does_meanwhile_ends_the_move(phase: Phase, seen: RevisionState | None, words: str) -> None:
    job = step(moving(phase, seen))
    assert job.state.migration is None
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.SUPERSEDED, Reason.SUPERSEDED)
    assert words in entry.message
    here = job.state.revision
    changed_already = seen is not None and seen.revision == 2
    assert here is not None and here.revision == (2 if changed_already else 1)
    resumed = (ChangeObject(here),) if seen is not None and seen.held else ()
    assert commands(job) == (Adopt(), *resumed), "what is held runs again, and nothing else is touched"


@pytest.mark.parametrize(
    ("phase", "seen"),
    [
        (Phase.CHECKPOINTING, RUNS),
        (Phase.DRAINING, RUNS),
        (Phase.DRAINING, replace(HELD, active=1)),
        (Phase.STARTING, HELD),
        (Phase.STARTING, replace(RUNS, revision=2, running=0)),
    ],
)
def test_nothing_else_does(phase: Phase, seen: RevisionState) -> None:
    assert step(moving(phase, seen)).state.migration is not None


def test_where_nothing_may_be_done_any_more_the_move_ends() -> None:
    job = step(moving(Phase.DRAINING, HELD, change="Recommend"))
    assert job.state.migration is None
    assert commands(job) == (Adopt(), ChangeObject(job.state.revision))


def test_it_is_stopped_until_no_pod_is_left_and_then_changed() -> None:
    job = moving(Phase.DRAINING, replace(HELD, active=1))
    here = job.state.revision
    assert here is not None and commands(job) == (Adopt(), HoldObject(here))
    assert step(job).state.migration == job.state.migration, "a pod that is ending may still write"
    gone = step(changed(job, revisions={1: HELD}))
    assert gone.state.migration is not None and gone.state.migration.phase is Phase.STARTING
    there = gone.state.revision
    assert there is not None and there.placement == PLACED
    assert commands(gone) == (Adopt(), ChangeObject(there))


def test_the_api_server_is_asked_before_anything_is_disturbed() -> None:
    job = moving(Phase.PLANNED, RUNS)
    assert job.state.migration is not None
    target = job.state.migration.target
    assert CheckObject(target) in commands(job)
    assert step(job).state.migration == job.state.migration, "it waits for the answer"
    ready = step(changed(job, object_checked=2)).state.migration
    assert ready is not None and ready.phase is Phase.CHECKPOINTING
    refusal = ChildRefusal(2, 1, Reason.CHANGE_REFUSED, "field is immutable", 0.0)
    refused = step(changed(job, object_checked=2, object_refusal=refusal)).state
    assert refused.migration is None and refused.history[-1].outcome is Outcome.HELD
    assert [(one.pool, one.message) for one in refused.avoid] == [("a10g", "field is immutable")]


def test_what_is_refused_in_the_end_goes_back() -> None:
    refusal = ChildRefusal(2, 1, Reason.CHANGE_REFUSED, "field is immutable", 0.0)
    job = step(changed(moving(Phase.STARTING, HELD), object_refusal=refusal))
    assert job.state.migration is not None and job.state.migration.rolling_back
    assert job.state.migration.failure is Reason.CHANGE_REFUSED


@pytest.mark.parametrize("fields", [{"deleting": True}, {"invalid": "spec: wrong"}])
def test_whatever_is_wrong_with_its_job_it_does_not_stay_suspended(fields: dict[str, Any]) -> None:
    job = moving(Phase.DRAINING, HELD)
    assert commands(changed(job, **fields)) == (ChangeObject(job.state.revision),)


# --- release ---------------------------------------------------------------------------------------------------------


def releasing(seen: RevisionState = RUNS, original: Placement | None = PLACED, **fields: Any) -> Job:
    """At four A100, and once on A10G."""
    made = watched().model_copy(update={"adoption": Adoption(change=AdoptionChange.SUSPEND)})
    job = replace(running(made=made), releasing=True)
    assert job.state.revision is not None
    adopted = Adopted("u", 1, job.state.revision.placement, original)
    return changed(job, adopted=adopted, revisions={1: seen}, **fields)


def test_who_releases_it_waits_for_no_verdict() -> None:
    job = replace(moving(Phase.WARMING_UP, replace(RUNS, revision=2)), releasing=True)
    assert step(job).state.migration is None
    assert step(replace(job, releasing=False)).state.migration is not None


def test_what_is_released_goes_home_first() -> None:
    job = releasing()
    assert LetGo() not in commands(job)
    going = step(job).state
    assert going.migration is not None and going.migration.target.placement == PLACED
    assert (going.migration.reason, going.migration.demanded) == (Reason.RELEASED, True)
    begun = step(changed(job, migration=going.migration, object_checked=going.migration.target.revision))
    assert begun.state.migration is not None and begun.state.migration.phase is Phase.CHECKPOINTING


@pytest.mark.parametrize(
    "job",
    [
        releasing(original=None),
        releasing(original=running().state.revision.placement),  # type: ignore[union-attr]
        releasing(replace(RUNS, suspended=True)),
    ],
    ids=["never changed", "at home", "suspended by its user"],
)
def test_what_has_nothing_to_go_back_to_is_let_go_of(job: Job) -> None:
    assert step(job).state.migration is None
    assert commands(job) == (Adopt(), LetGo())


# --- what is taken back ----------------------------------------------------------------------------------------------


ARGO = Undoing("argocd-controller", "/spec/suspend")
RESUMED = replace(HELD, suspended=False, active=1, undone=ARGO)
REVERTED = replace(RUNS, revision=2, edited=True, undone=Undoing("kustomize-controller", "/spec/parallelism"))


def undone(job: Job) -> tuple[str, int] | None:
    known = job.state.adopted
    return None if known is None or known.undone is None else (known.undone.manager, known.undone.times)


def test_who_takes_two_moves_back_is_named_and_no_third_is_made() -> None:
    first = step(with_adopted(moving(Phase.DRAINING, RESUMED)))
    assert undone(first) == ("argocd-controller", 1) and first.overruled is None
    assert "argocd-controller has resumed" in first.state.history[-1].message
    second = step(with_adopted(moving(Phase.DRAINING, RESUMED), first))
    assert undone(second) == ("argocd-controller", 2)
    assert second.overruled is not None and second.overruled.field == "/spec/suspend"
    assert replace(second, generation=second.generation + 1).overruled is None, "an edit of the spec lets it try again"


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING])
def test_a_change_that_was_made_and_is_taken_back_counts_once(phase: Phase) -> None:
    ended = step(with_adopted(moving(phase, REVERTED)))
    assert ended.state.migration is None and undone(ended) == ("kustomize-controller", 1)
    assert step(ended, NOW + 60.0).state.adopted == ended.state.adopted, "it is seen for as long as it is so"
    later = replace(REVERTED, revision=3)
    assert undone(step(changed(ended, revisions={3: later}), NOW + 3600.0)) == ("kustomize-controller", 2)
    assert undone(step(changed(ended, revisions={3: later}), NOW + 90_000.0)) == ("kustomize-controller", 1)
    other = replace(later, undone=ARGO)
    assert undone(step(changed(ended, revisions={3: other}), NOW + 3600.0)) == ("argocd-controller", 1)


def with_adopted(job: Job, before: Job | None = None) -> Job:
    known = AdoptedObject("u") if before is None else before.state.adopted
    return job.with_state(replace(job.state, adopted=known))


def overruled(**sections: Any) -> Job:
    made = watched(**sections).model_copy(update={"adoption": Adoption(change=AdoptionChange.SUSPEND)})
    job = running(made=made)
    assert job.state.revision is not None
    seen = Adopted("u", 1, job.state.revision.placement)
    taken = Undone("argocd-controller", "/spec/suspend", 2, NOW, job.generation, 1)
    job = changed(job, adopted=seen, revisions={1: RUNS})
    return job.with_state(replace(job.state, adopted=AdoptedObject("u", None, taken)))


@pytest.mark.parametrize("sections", [{}, {"placement": {"pools": {"deny": ["a100"]}}}], ids=["to save", "demanded"])
def test_what_is_taken_back_is_not_decided_on_until_it_is_approved(sections: dict[str, Any]) -> None:
    job = overruled(**sections)
    decision = plan(fleet([job])).assessments[job.key].decision
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.CHANGE_UNDONE)
    assert decision.target is not None and decision.purpose is not None
    approved = replace(job, approved=recommendation_id(job, decision.target))
    assert plan(fleet([approved])).assessments[job.key].decision.action in (Action.MOVE, Action.RESIZE)


def test_what_is_taken_back_is_let_go_of_where_it_is() -> None:
    job = releasing()
    taken = Undone("argocd-controller", "/spec/suspend", 2, NOW, job.generation, 1)
    job = job.with_state(replace(job.state, adopted=AdoptedObject("u", None, taken)))
    assert step(job).state.migration is None
    assert commands(job) == (Adopt(), LetGo())


# --- what he makes of it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pods_are_seen", [True, False])
def test_an_object_that_its_user_resizes_is_not_restarted_for_that(pods_are_seen: bool) -> None:
    made = watched().model_copy(update={"adoption": Adoption(change=AdoptionChange.SUSPEND)})
    job = running(made=made)
    here = job.state.revision
    assert here is not None
    smaller = Placement(here.placement.pool, 2, 1)
    job = job.with_state(replace(job.state, revision=replace(here, placement=smaller, requested_chips=2)))
    job = changed(job, adopted=Adopted("u", 1, here.placement if pods_are_seen else None), revisions={1: RUNS})
    assessment = plan(fleet([job])).assessments[job.key]
    assert assessment.decision.action is not Action.UPDATE
    after = advance(job, assessment, AUTO, NOW, lambda job, assessment, now: "").state
    if pods_are_seen:
        assert after.migration is None, "what was decided was of where it was"
        assert after.revision is not None and after.revision.placement == here.placement


def test_pods_without_a_node_after_a_move_may_be_held_to_the_pool_that_they_left() -> None:
    stuck = replace(RUNS, revision=2, running=0, on_nodes=0, blocked="Unschedulable: no node matches")
    job = moving(Phase.STARTING, stuck)
    assert job.state.revision is not None and RenewJobs(job.state.revision) in commands(job)
    waiting = replace(stuck, blocked=None)
    assert not any(isinstance(one, RenewJobs) for one in commands(moving(Phase.STARTING, waiting)))
    first = replace(stuck, revision=1)
    assert not any(isinstance(one, RenewJobs) for one in commands(moving(Phase.CHECKPOINTING, first)))
