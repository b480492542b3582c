"""Requests do not go over to a side of a server that has not answered."""

from __future__ import annotations

from rightpool.api.action import Action
from rightpool.api.conditions import ConditionType, Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from tests.unit.planning.jobs import NOW, changed
from tests.unit.planning.test_server_move import (
    GOOD,
    SAME,
    moving,
    phase,
    requests_to,
    seen,
    sharing,
    sides,
    step,
    wanted,
    window,
)
from tests.unit.planning.test_surge import ended
from tests.unit.reporting.test_conditions import condition_of


def cold(job: Job, *, running: int = 0) -> Job:
    """A step where a replica of the target answers the requests that warm it up by an error."""
    words = "warm-up failed: POST /infer: HTTP 400: no such model"
    state = RevisionState(2, True, active=2, running=running, blocked=words, refused=True, prevented=True, cold=True)
    return step(changed(job, revisions={**job.observed.revisions, 2: state}), NOW + 60.0)


def test_a_target_that_does_not_warm_up_gets_no_request() -> None:
    job = cold(step(moving()), running=1)
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.FAILED, Reason.WARM_UP_FAILED)
    assert entry.message is not None and entry.message.endswith("HTTP 400: no such model") and len(entry.message) <= 160
    assert (requests_to(job), ended(job)) == ((1,), {2})
    assert job.state.avoid[-1].reason is Reason.WARM_UP_FAILED
    more = seen(step(moving(new=4, old=2)), 2)
    more = cold(seen(more, 2, now=NOW + 60, sides=sides(GOOD, SAME)), running=2)
    assert (more.state.history[-1].outcome, requests_to(more)) == (Outcome.ROLLED_BACK, (1,)), "later ones"


def test_an_edit_that_does_not_warm_up_waits_for_the_next_one() -> None:
    job = cold(step(step(moving(action=Action.UPDATE))))
    assert job.state.migration is not None and job.state.migration.failure is Reason.WARM_UP_FAILED
    assert (wanted(job), requests_to(job), ended(job)) == ({1: 2}, (1,), {2})
    shown = condition_of(ConditionType.MIGRATING, job)
    assert (shown.status, shown.reason) == ("False", "WarmUpFailed")
    assert shown.message.startswith("d-1 waits for the next edit: ") and shown.message.endswith("no such model")


def test_requests_do_not_go_on_to_a_side_that_answers_none() -> None:
    none, some = window(0), window(8)
    job = seen(sharing(), 1, now=NOW + 240.0, sides=sides(none, some))
    assert phase(job) is Phase.SHARING, "they may come yet"
    assert phase(seen(job, 1, now=NOW + 302.0, sides=sides(none, window(2)))) is Phase.SHARING, "chance may be why"
    assert phase(seen(job, 1, now=NOW + 302.0, sides=sides(window(1), some))) is Phase.SHARING
    job = seen(job, 1, now=NOW + 302.0, sides=sides(none, some))
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, Reason.ERRORS_ROSE)
    assert (requests_to(job), ended(job)) == ((1,), {2})
