"""Foreign pods and Jobs with a Revision's labels, which users can create where no admission policy prevents it.

They end no work, never let two Revisions run, and hide no chips.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import JOBS
from rightpool.api.migration import Migration, Phase
from rightpool.cluster.resources import PODS
from rightpool.contract import LABEL_JOB, LABEL_REVISION
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.lingering import foreign_pod
from rightpool.planning.moves.beginning import next_revision
from rightpool.planning.moves.commands import EndRevision, EnsureRevision, commands
from rightpool.planning.moves.transitions import advance
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.table import conditions_of
from rightpool.reporting.decision_texts import decision_text
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from tests.unit.planning.jobs import AUTO, NOW, changed, judged, running
from tests.unit.planning.jobs import decision_and_text as decision_of
from tests.unit.runtime.makers import LEADING, Body, child, pod
from tests.unit.runtime.test_usage import GPU, Lister

KEY = JobKey("research", "bert")
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


@pytest.fixture
def store() -> Store:
    store = Store()
    store.observe(JOBS, "ADDED", child())
    store.observe(PODS, "ADDED", pod())
    return store


def forged_pod(labels: dict[str, str], **metadata: Any) -> Body:
    about = {"name": "forged", "labels": {LABEL_JOB: "bert", **labels}, "ownerReferences": [], **metadata}
    return pod(uid="forged", metadata=about)


def state(store: Store) -> Job:
    """A job on r1, observed by the store."""
    return changed(running(), key=KEY, uid="uid-1", revisions=store.revisions(KEY, "uid-1"))


# --- Jobs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [COMPLETE, {"conditions": [{"type": "Failed", "status": "True"}]}, {}])
def test_a_job_with_another_name_is_never_a_revision(store: Store, status: dict[str, Any]) -> None:
    before = store.revisions(KEY, "uid-1")
    for revision in (1, 2):
        body = child(revision, uid=f"forged-{revision}", status=status)
        body["metadata"]["name"] = "forged"
        store.observe(JOBS, "ADDED", body)
    assert store.revisions(KEY, "uid-1") == before
    job = state(store)
    assert advance(job, None, AUTO, NOW, decision_text).state.finished is None, "it neither ends nor fails the job"
    kept = store.child(KEY, "uid-1", 1)
    assert kept is not None and kept.name == "bert-r1"


def test_a_job_of_an_earlier_owner_is_ended_only_under_the_childs_name(store: Store) -> None:
    body = child(3, owner="uid-0", uid="forged")
    store.observe(JOBS, "ADDED", body)
    assert EndRevision(3) in commands(state(store))
    body["metadata"].update(name="somebodys", resourceVersion="21")
    store.observe(JOBS, "MODIFIED", body)
    assert commands(state(store)) == (EnsureRevision(state(store).state.revision, False),)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", ["999999999", "9" * 63, "-1", "1.5", "abc", ""])
def test_forged_revision_numbers_do_not_affect_the_next_number(store: Store, number: str) -> None:
    body = child(1, uid="forged")
    body["metadata"].update(name=f"bert-r{number}", labels={LABEL_JOB: "bert", LABEL_REVISION: number})
    store.observe(JOBS, "ADDED", body)
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: number}))
    job = state(store)
    assert set(job.observed.revisions) == {1} and next_revision(job) == 2


# --- pods ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["1", "2", "77"])
def test_a_foreign_pod_beside_a_running_job_is_named_and_nothing_is_ended(store: Store, number: str) -> None:
    """Neither its own Revision's pods nor a reason to end it for a start that would be held up."""
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: number}))
    job = state(store)
    assert job.observed.revisions[1].running == 1
    assert next_revision(job) == 2
    assert commands(job) == (EnsureRevision(job.state.revision, False),)  # type: ignore[arg-type]
    decision, text = decision_of(judged(job))
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.FOREIGN_POD)
    assert "pod forged has the labels of r" + number in text
    assert LABEL_REVISION in text


def conditions_by_type(job: Job) -> dict[str, tuple[str, str, str]]:
    context = Context(None, None, True, NOW)
    return {c.type: (c.status, c.reason, c.message) for c in conditions_of(job, context)}


def test_a_foreign_pod_that_blocks_a_start_is_named(store: Store) -> None:
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: "7"}))
    store.observe(PODS, "DELETED", pod(version=31))
    status, reason, message = conditions_by_type(state(store))["Placed"]
    assert (status, reason) == ("False", "ForeignPod") and "pod forged has the labels of r7" in message


def test_a_foreign_pod_that_blocks_a_migration_is_named(store: Store) -> None:
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: "1"}))
    store.observe(PODS, "DELETED", pod(version=31))
    store.observe(JOBS, "DELETED", child(version=31))
    job = state(store)
    assert job.state.revision is not None
    target = replace(job.state.revision, revision=2)
    draining = Migration(
        "d-2", Action.UPDATE, Phase.DRAINING, job.state.revision, target, NOW, NOW, Reason.UPDATING, ""
    )
    job = changed(job, migration=draining)
    assert advance(job, None, AUTO, NOW + 1e4, decision_text) is job, "it may be writing to the checkpoint"
    assert "pod forged has the labels of r1" in conditions_by_type(job)["Migrating"][2]


def test_own_pods_that_are_ending_are_not_foreign(store: Store) -> None:
    store.observe(JOBS, "DELETED", child(version=31))
    job = state(store)
    assert job.observed.revisions[1].active == 1 and foreign_pod(job) is None


def test_a_pod_with_the_job_label_only_blocks_nothing(store: Store) -> None:
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: "none"}))
    assert foreign_pod(state(store)) is None

    class Reader:
        def __init__(self, body: Body) -> None:
            self.body = body

        def get(self, *_: Any) -> Body:
            raise AssertionError

        def list_all(self, *_: Any, **__: Any) -> list[Body]:
            return [self.body]

    job = running()
    ensure = EnsureRevision(job.state.revision, False)  # type: ignore[arg-type]
    Fence(Reader(forged_pod({})), LEADING).single_writer(job, ensure, "job-1")
    with pytest.raises(Fenced, match="forged of r1 is still there"):
        Fence(Reader(forged_pod({LABEL_REVISION: "1"})), LEADING).single_writer(job, ensure, "job-1")


@pytest.mark.parametrize("labels", [{}, {LABEL_REVISION: "1"}, {LABEL_REVISION: "x"}, {LABEL_JOB: ""}])
def test_no_label_hides_chips(labels: dict[str, str]) -> None:
    store = Store()
    store.observe(PODS, "ADDED", forged_pod(labels))
    assert ChipUsage(Lister({None: []}), interval=0.0).by_node(store.all_pods(), {GPU}) == {("node-1", GPU): 4}
