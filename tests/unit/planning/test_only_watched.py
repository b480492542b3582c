"""A job whose object somebody else has made, and to which nothing may be done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.hardware.node_needs import NodeNeeds, NodeShape
from rightpool.planning.jobs.adopted import Adopted
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal, RevisionState
from rightpool.planning.moves.commands import Adopt, commands
from rightpool.planning.moves.transitions import advance
from tests.unit.planning.jobs import AUTO, FOUR, NOW, changed, fleet, fresh, plan, running, spec
from tests.unit.prediction.fixtures import A10G, A100

REF = {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}
CHILD = RevisionState(revision=1, exists=True, active=1, running=1, on_nodes=1)


def watched(**sections: Any) -> ProfiledJobSpec:
    made = spec(**sections)
    document = {**made.to_dict(), "workloadRef": REF}
    document.pop("workload")
    return ProfiledJobSpec.model_validate(document).model_copy(update={"workload": made.workload})


def found(**fields: Any) -> Job:
    """As it is seen for the first time."""
    seen = Adopted("job-1", 1, FOUR, chip="A100-SXM4-80GB")
    return changed(fresh(made=watched()), adopted=seen, revisions={1: CHILD}, **fields)


def step(job: Job, now: float = NOW) -> Job:
    return advance(job, None, AUTO, now, lambda job, assessment, now: "")


def test_it_is_where_its_object_is() -> None:
    job = step(found())
    assert job.state.revision is not None and job.state.adopted is not None
    assert job.state.revision.placement == FOUR and job.state.revision.revision == 1
    assert job.state.revision.since == NOW, "all its pods run"
    assert job.state.adopted.uid == "job-1"
    assert job.state.decisions == 0 and job.state.history == ()
    # What is seen again is no news, and another place is.
    again = changed(job, adopted=job.observed.adopted)
    assert step(again).state.revision == job.state.revision
    elsewhere = changed(job, adopted=Adopted("job-1", 1, Placement("a10g", 4, 1)))
    moved = step(elsewhere, NOW + 60.0).state.revision
    assert moved is not None and moved.placement.pool == "a10g"


def test_it_ends_as_its_object_does() -> None:
    job = step(found())
    ended = RevisionState(revision=1, exists=True, succeeded=True)
    assert step(changed(job, revisions={1: ended})).state.finished == "Completed"
    failed = RevisionState(revision=1, exists=True, failed=True)
    assert step(changed(job, revisions={1: failed})).state.finished == "Failed"
    # Pods that were evicted make no move of it, nor does what is suspended.
    suspended = RevisionState(revision=1, exists=True, suspended=True)
    evicted = RevisionState(revision=1, exists=True, evicted=1)
    for state in (suspended, evicted):
        after = step(changed(job, revisions={1: state}))
        assert after.state.migration is None and after.state.finished is None


@pytest.mark.parametrize("policy_pool", [None, "a100"])
def test_nothing_is_ever_asked_of_the_cluster_but_to_mark_it(policy_pool: str | None) -> None:
    job = step(found())
    denied = watched(placement={"pools": {"deny": [policy_pool]}}) if policy_pool else watched()
    for one in (
        fresh(made=watched()),
        found(),
        job,
        changed(job, spec=denied, generation=2),
        changed(job, revisions={}),
    ):
        assert commands(one) == (Adopt(),)
        assert contradiction(one) is None, "an object may run before it is found"


def seen_running(**sections: Any) -> Job:
    job = running(made=watched(**sections))
    return changed(job, adopted=Adopted("job-1", 1, FOUR))


@pytest.mark.parametrize("mode", [{}, {"mode": "Auto"}])
def test_where_it_would_go_is_recommended_in_any_mode(mode: dict[str, str]) -> None:
    assert plan(fleet([running()])).assessments[running().key].decision.action in (Action.MOVE, Action.RESIZE)
    job = seen_running(adaptation=mode)
    assessment = plan(fleet([job])).assessments[job.key]
    decision = assessment.decision
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.ADOPTION_RECOMMEND_ONLY)
    assert decision.target is not None and decision.purpose is not None
    after = advance(job, assessment, AUTO, NOW, lambda job, assessment, now: "")
    assert after.state.migration is None


def test_labels_that_no_other_pool_has_say_where_it_is() -> None:
    zone, mine = ("zone", "a"), ("team-pool", "a100")
    own = replace(A100, node_selector={"type": "big"}, shapes={NodeShape(frozenset((zone, mine))): 8})
    other = replace(A10G, shapes={NodeShape(frozenset((zone, ("team-pool", "a10g")))): 8})
    pools = {"a100": own, "a10g": other}
    job = fresh(made=watched(), needs=NodeNeeds(labels=(mine, ("type", "big"), zone)))
    assert job.released("a100", pools).needs.labels == (zone,), "others have it, too"
    assert job.released("gone", pools) is job
    wrapped = fresh(needs=job.needs)
    assert wrapped.released("a100", pools) is wrapped


def test_what_its_user_no_longer_allows_is_recommended_too() -> None:
    job = changed(seen_running(placement={"pools": {"deny": ["a100"]}}), generation=2)
    decision = plan(fleet([job])).assessments[job.key].decision
    assert (decision.action, decision.reason, decision.purpose) == (
        Action.HOLD,
        Reason.ADOPTION_RECOMMEND_ONLY,
        Reason.PLACEMENT_DISALLOWED,
    )


def test_it_takes_no_chips_before_it_is_found() -> None:
    job = fresh(made=watched())
    decision = plan(fleet([job])).assessments[job.key].decision
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.WORKLOAD_NOT_RUNNING)
    refusal = ChildRefusal(0, 1, Reason.WORKLOAD_NOT_FOUND, "Job train is not in namespace ns", 0.0)
    decision = plan(fleet([changed(job, refusal=refusal)])).assessments[job.key].decision
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.WORKLOAD_NOT_FOUND)
