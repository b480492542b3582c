"""A server is handed over by a surge: what answers stays until the new one does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.planning.allocate.room import reservation
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.commands import EndRevision, EnsureRevision, commands
from rightpool.planning.moves.surge import LONGEST_SURGE_SECONDS
from rightpool.planning.moves.transitions import advance
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, NOW, changed, judged, running, spec
from tests.unit.prediction.fixtures import A100

TEMPLATE = {"spec": {"containers": [{"name": "server", "image": "x", "readinessProbe": {}}]}}


def server(least: int = 2) -> Job:
    """One that answers, with two chips for each replica."""
    workload = {"chipsPerReplica": 2, "replicas": {"min": least}, "port": 8000, "template": TEMPLATE}
    made = spec(workload={"server": workload}, elasticity={}, checkpoint={}, progress=None, targets={})
    job = running(made=made)
    revision = job.state.revision
    assert revision is not None
    placement = replace(revision.placement, chips=4, replicas=2)
    revision = replace(revision, placement=placement, requested_chips=4, requested_replicas=2)
    job = job.with_state(replace(job.state, revision=revision))
    return changed(job, revisions={1: RevisionState(1, True, active=2, running=2)}, template_checked=True)


def edited(job: Job, digest: str = "edited") -> Job:
    return replace(job, workload_hash=digest, generation=job.generation + 1)


def step(job: Job, now: float = NOW) -> Job:
    return advance(job, judged(job, {"a100": A100}), AUTO, now, decision_text)


def surging() -> Job:
    job = step(step(edited(server())))
    assert job.state.migration is not None and job.state.migration.phase is Phase.SURGING
    return job


def with_target(job: Job, **state: Any) -> Job:
    return changed(job, revisions={**job.observed.revisions, 2: RevisionState(2, True, **state)})


def wanted(job: Job) -> set[int]:
    return {command.ref.revision for command in commands(job) if isinstance(command, EnsureRevision)}


def ended(job: Job) -> set[int]:
    return {command.revision for command in commands(job) if isinstance(command, EndRevision)}


def test_an_edit_brings_up_the_next_one_beside_it() -> None:
    job = surging()
    assert job.state.migration is not None and job.state.migration.action is Action.UPDATE
    assert (wanted(job), ended(job)) == ({1, 2}, set())
    half = step(with_target(job, active=2, running=1))
    assert (wanted(half), ended(half)) == ({1, 2}, set()), "one of two replicas is not enough"


def test_what_answered_is_ended_once_the_new_one_is_ready() -> None:
    job = step(with_target(surging(), active=2, running=2))
    assert job.state.migration is None and job.state.revision is not None and job.state.revision.revision == 2
    assert (wanted(job), ended(job)) == ({2}, {1})
    entry = job.state.history[-1]
    assert (entry.outcome, entry.lost_seconds) == (Outcome.CARRIED_OUT, 0.0)


def test_an_edit_that_is_taken_back_ends_the_new_one_alone() -> None:
    before = server()
    job = step(edited(with_target(surging(), active=2), before.workload_hash))
    assert job.state.migration is None and job.state.history[-1].reason is Reason.SUPERSEDED
    assert (wanted(job), ended(job)) == ({1}, {2})


def test_an_edit_that_does_not_start_waits_and_harms_nothing() -> None:
    job = with_target(surging(), active=2, blocked="Unschedulable")
    later = step(job, NOW + LONGEST_SURGE_SECONDS)
    assert later.state.migration is not None and (wanted(later), ended(later)) == ({1, 2}, set())


def test_it_is_scaled_where_it_is() -> None:
    job = step(server(least=3))
    revision = job.state.revision
    assert revision is not None and job.state.migration is None
    assert (revision.revision, revision.placement.replicas, revision.placement.chips) == (1, 3, 6)
    assert revision.requested == (6, 3)
    assert step(job).state.migration is None, "and that is no edit of its program"


def test_measurements_move_it_nowhere() -> None:
    assert judged(server(), {"a100": A100}).decision.reason is Reason.SERVER_STAYS


def test_an_edit_waits_for_chips_of_its_own() -> None:
    """Those of what answers are not free before the new one does."""
    full = {"a100": replace(A100, free=0)}
    assert judged(edited(server()), full).decision.reason is Reason.WAITING_FOR_CAPACITY
    training = edited(running(made=spec(chips=4)))
    assert judged(training, full).decision.reason is Reason.UPDATING


def test_an_edit_that_never_starts_gives_its_chips_back() -> None:
    """And waits for the next one."""
    job = step(surging(), NOW + LONGEST_SURGE_SECONDS + 1.0)
    assert (wanted(job), job.state.migration is not None) == ({1}, True)
    assert ended(with_target(job, active=1)) == {2}
    assert reservation(job) == ()
    again = step(job, NOW + 3 * LONGEST_SURGE_SECONDS)
    assert again.state.migration == job.state.migration
    taken_back = step(edited(job, "third"), NOW + 3 * LONGEST_SURGE_SECONDS)
    assert taken_back.state.migration is None and taken_back.state.history[-1].outcome is Outcome.SUPERSEDED
