"""Pods and Jobs that wear a Revision's labels and are not the operator's, as anybody in the namespace can make them
where no admission policy keeps them out: they end no work, let no two Revisions run, and hide no chips."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.conditions import Reason
from rightpool.cluster.resources import JOBS, PODS
from rightpool.contract import LABEL_JOB, LABEL_REVISION
from rightpool.planning.commands import EndRevision, EnsureRevision
from rightpool.planning.decision import Action
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.snapshot import JobKey, JobState
from rightpool.planning.stranger import stranger
from rightpool.planning.transitions import advance, commands, next_revision
from rightpool.runtime.conditions import Circumstances, conditions_of
from rightpool.runtime.fence import Fence, Refused
from rightpool.runtime.store import Store
from rightpool.runtime.usage import ChipUsage
from tests.unit.planning.jobs import AUTO, NOW, judged, running
from tests.unit.runtime.makers import Body, child, pod
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


def state(store: Store) -> JobState:
    """A job on r1, with what the store shows."""
    return replace(running(), key=KEY, uid="uid-1", revisions=store.revisions(KEY, "uid-1"))


# --- Jobs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [COMPLETE, {"conditions": [{"type": "Failed", "status": "True"}]}, {}])
def test_a_job_of_another_name_is_no_revision_whatever_it_says(store: Store, status: dict[str, Any]) -> None:
    before = store.revisions(KEY, "uid-1")
    for revision in (1, 2):
        body = child(revision, uid=f"forged-{revision}", status=status)
        body["metadata"]["name"] = "forged"
        store.observe(JOBS, "ADDED", body)
    assert store.revisions(KEY, "uid-1") == before
    job = state(store)
    assert advance(job, None, AUTO, NOW).finished is None, "it neither ends nor fails the job"
    kept = store.child(KEY, "uid-1", 1)
    assert kept is not None and kept.name == "bert-r1"


def test_a_job_of_an_earlier_owner_is_ended_under_the_childs_name_alone(store: Store) -> None:
    body = child(3, owner="uid-0", uid="forged")
    store.observe(JOBS, "ADDED", body)
    assert EndRevision(3) in commands(state(store))
    body["metadata"].update(name="somebodys", resourceVersion="21")
    store.observe(JOBS, "MODIFIED", body)
    assert commands(state(store)) == (EnsureRevision(state(store).ref, False),)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", ["999999999", "9" * 63, "-1", "1.5", "abc", ""])
def test_numbers_that_no_revision_has_are_counted_on_by_nobody(store: Store, number: str) -> None:
    body = child(1, uid="forged")
    body["metadata"].update(name=f"bert-r{number}", labels={LABEL_JOB: "bert", LABEL_REVISION: number})
    store.observe(JOBS, "ADDED", body)
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: number}))
    job = state(store)
    assert set(job.revisions) == {1} and next_revision(job) == 2


# --- pods ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["1", "2", "77"])
def test_a_pod_beside_a_job_that_runs_has_nothing_ended_and_is_named(store: Store, number: str) -> None:
    """Neither its own Revision's pods nor a reason to end it for a start that would be held up."""
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: number}))
    job = state(store)
    assert job.revisions[1].running == 1
    assert next_revision(job) == 2
    assert commands(job) == (EnsureRevision(job.ref, False),)  # type: ignore[arg-type]
    decision = judged(job).decision
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.FOREIGN_POD)
    assert "pod forged wears the labels of r" + number in decision.message
    assert LABEL_REVISION in decision.message


def told(job: JobState) -> dict[str, tuple[str, str, str]]:
    around = Circumstances(None, None, None, True, NOW)
    return {said.type: (said.status, said.reason, said.message) for said in conditions_of(job, around)}


def test_a_pod_that_holds_up_a_start_is_named(store: Store) -> None:
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: "7"}))
    store.observe(PODS, "DELETED", pod(version=31))
    status, reason, message = told(state(store))["Placed"]
    assert (status, reason) == ("False", "ForeignPod") and "pod forged wears the labels of r7" in message


def test_a_pod_that_holds_up_a_migration_is_named(store: Store) -> None:
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: "1"}))
    store.observe(PODS, "DELETED", pod(version=31))
    store.observe(JOBS, "DELETED", child(version=31))
    job = state(store)
    assert job.ref is not None
    target = replace(job.ref, revision=2)
    draining = Migration("d-2", Action.UPDATE, Phase.DRAINING, job.ref, target, NOW, NOW, Reason.UPDATING, "")
    job = replace(job, migration=draining)
    assert advance(job, None, AUTO, NOW + 1e4) is job, "it may be writing to the checkpoint"
    assert "pod forged wears the labels of r1" in told(job)["Migrating"][2]


def test_pods_of_ones_own_that_still_end_are_no_strangers(store: Store) -> None:
    store.observe(JOBS, "DELETED", child(version=31))
    job = state(store)
    assert job.revisions[1].active == 1 and stranger(job) is None


def test_who_only_wears_the_job_label_holds_up_nothing(store: Store) -> None:
    store.observe(PODS, "ADDED", forged_pod({LABEL_REVISION: "none"}))
    assert stranger(state(store)) is None

    class Reader:
        def __init__(self, body: Body) -> None:
            self.body = body

        def get(self, *_: Any) -> Body:
            raise AssertionError

        def list_all(self, *_: Any, **__: Any) -> list[Body]:
            return [self.body]

    ensure = EnsureRevision(running().ref, False)  # type: ignore[arg-type]
    Fence(Reader(forged_pod({})), lambda _: True).single_writer(KEY, ensure, "job-1")
    with pytest.raises(Refused, match="forged of r1 is still there"):
        Fence(Reader(forged_pod({LABEL_REVISION: "1"})), lambda _: True).single_writer(KEY, ensure, "job-1")


@pytest.mark.parametrize("labels", [{}, {LABEL_REVISION: "1"}, {LABEL_REVISION: "x"}, {LABEL_JOB: ""}])
def test_no_label_hides_chips(labels: dict[str, str]) -> None:
    store = Store()
    store.observe(PODS, "ADDED", forged_pod(labels))
    assert ChipUsage(Lister({None: []}), interval=0.0).by_node(store.all_pods(), {GPU}) == {"node-1": 4}
