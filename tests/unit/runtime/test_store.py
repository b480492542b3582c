"""The store: newer wins, what is gone stays gone, and what nobody decides on wakes nobody."""

from __future__ import annotations

import pytest

from rightpool.cluster.client import Listing
from rightpool.cluster.resources import ACCELERATOR_POOLS, JOBS, NODES, PODS, PROFILED_JOBS
from rightpool.planning.snapshot import JobKey
from rightpool.runtime.fleet import foreign_fields
from rightpool.runtime.relist import Relister
from rightpool.runtime.store import Store
from tests.unit.runtime.makers import Body, child, pod, profiled_job

KEY = JobKey("research", "bert")


@pytest.fixture
def store() -> Store:
    return Store(clock=lambda: 0.0)


def test_an_older_event_does_not_undo_an_assumed_write(store: Store) -> None:
    store.observe(PROFILED_JOBS, "ADDED", profiled_job(version=10))
    store.assume(PROFILED_JOBS, profiled_job(version=12, suspend=True, generation=2))
    store.observe(PROFILED_JOBS, "MODIFIED", profiled_job(version=11))
    job = store.job(KEY)
    assert job is not None
    assert job.state.spec.suspend
    assert job.resource_version == "12"


def test_a_late_answer_does_not_bring_back_what_was_deleted(store: Store) -> None:
    store.observe(JOBS, "ADDED", child(version=20))
    store.observe(JOBS, "DELETED", child(version=25))
    store.assume(JOBS, child(version=24))
    assert store.child(KEY, "uid-1", 1) is None


def test_a_job_that_was_made_anew_under_its_name_is_another_one(store: Store) -> None:
    store.observe(PROFILED_JOBS, "ADDED", profiled_job(uid="old", version=10))
    store.observe(PROFILED_JOBS, "ADDED", profiled_job(uid="new", version=15))
    store.observe(PROFILED_JOBS, "DELETED", profiled_job(uid="old", version=14))
    job = store.job(KEY)
    assert job is not None
    assert job.state.uid == "new"


@pytest.mark.parametrize(("decided", "said"), [("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")])
def test_how_a_job_ends_is_decided_before_it_is_said(store: Store, decided: str, said: str) -> None:
    conditions = [{"type": decided, "status": "True"}]
    store.observe(JOBS, "ADDED", child(status={"conditions": conditions}))
    store.observe(PODS, "ADDED", pod(metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"}))
    state = store.revisions(KEY, "uid-1")[1]
    assert (state.finishing, state.succeeded, state.failed) == (True, False, False)
    conditions.append({"type": said, "status": "True"})
    store.observe(JOBS, "MODIFIED", child(version=40, status={"conditions": conditions}))
    state = store.revisions(KEY, "uid-1")[1]
    assert (state.finishing, state.succeeded, state.failed) == (False, said == "Complete", said == "Failed")


def test_revisions_follow_children_and_pods(store: Store) -> None:
    store.observe(JOBS, "ADDED", child())
    store.observe(PODS, "ADDED", pod(ready=False))
    assert store.revisions(KEY, "uid-1")[1].running == 0
    store.observe(PODS, "MODIFIED", pod(version=31))
    state = store.revisions(KEY, "uid-1")[1]
    assert (state.exists, state.active, state.running) == (True, 1, 1)
    store.observe(PODS, "MODIFIED", pod(version=32, metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"}))
    state = store.revisions(KEY, "uid-1")[1]
    assert (state.active, state.running) == (1, 0), "a terminating pod may still write to the checkpoint"
    store.observe(PODS, "MODIFIED", pod(version=33, phase="Succeeded"))
    state = store.revisions(KEY, "uid-1")[1]
    assert (state.active, state.succeeded, state.finishing) == (0, False, True), "the Job itself has not told yet"
    store.observe(JOBS, "DELETED", child(version=33))
    assert store.revisions(KEY, "uid-1")[1].exists is False
    store.observe(PODS, "DELETED", pod(version=34))
    assert store.revisions(KEY, "uid-1") == {}


def test_pods_of_an_earlier_job_of_the_name_hold_the_place_and_do_not_count_as_running(store: Store) -> None:
    store.observe(JOBS, "ADDED", child(uid="new-job"))
    store.observe(PODS, "ADDED", pod(owner="old-job"))
    state = store.revisions(KEY, "uid-1")[1]
    assert (state.active, state.running) == (1, 0)


def test_why_pods_do_not_run_is_told(store: Store) -> None:
    store.observe(JOBS, "ADDED", child())
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes"}
    store.observe(PODS, "ADDED", pod(phase="Pending", status={"conditions": [unschedulable]}))
    assert store.revisions(KEY, "uid-1")[1].blocked == "Unschedulable: 0/4 nodes"
    waiting = {"name": "trainer", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    store.observe(
        PODS, "MODIFIED", pod(version=31, phase="Pending", ready=False, status={"containerStatuses": [waiting]})
    )
    assert store.revisions(KEY, "uid-1")[1].blocked == "container trainer: ImagePullBackOff: no such image"


def test_a_heartbeat_wakes_nobody(store: Store) -> None:
    node: Body = {
        "metadata": {"name": "n", "uid": "n", "resourceVersion": "5", "labels": {"a": "b"}},
        "status": {
            "allocatable": {"nvidia.com/gpu": "8", "cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    store.observe(NODES, "ADDED", node)
    assert store.wait(0)
    node["metadata"]["resourceVersion"] = "6"
    node["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-21T10:00:00Z"
    store.observe(NODES, "MODIFIED", node)
    assert not store.wait(0)
    node["metadata"]["resourceVersion"] = "7"
    node["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    store.observe(NODES, "MODIFIED", node)
    assert store.wait(0)


def test_our_own_status_wakes_nobody_and_the_users_edit_does(store: Store) -> None:
    store.observe(PROFILED_JOBS, "ADDED", profiled_job())
    assert store.wait(0)
    store.observe(PROFILED_JOBS, "MODIFIED", {**profiled_job(version=11), "status": {"moves": 1}})
    assert not store.wait(0)
    store.observe(PROFILED_JOBS, "MODIFIED", profiled_job(version=12, generation=2, suspend=True))
    assert store.wait(0)


def test_what_is_not_ours_is_not_kept(store: Store) -> None:
    foreign = pod()
    foreign["metadata"]["labels"] = {"app": "x"}
    store.observe(PODS, "ADDED", foreign)
    assert store.size(PODS) == 0
    store.observe(PROFILED_JOBS, "ADDED", profiled_job())
    job = store.job(KEY)
    assert job is not None
    assert b"managedFields" not in job.said


def test_who_wrote_a_pools_fields_is_kept(store: Store) -> None:
    price = {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:price": {"f:perChipHour": {}}}}}
    pool = {"metadata": {"name": "a10g", "uid": "p", "resourceVersion": "5", "managedFields": [price]}, "spec": {}}
    store.observe(ACCELERATOR_POOLS, "ADDED", pool)
    assert foreign_fields(store.objects(ACCELERATOR_POOLS)[0]) == {"price"}


class Lists:
    """An API server that knows some jobs."""

    def __init__(self, *bodies: Body, version: str = "100") -> None:
        self.bodies, self.version, self.calls = list(bodies), version, 0

    def pages(
        self, resource: object, namespace: object = None, *, labels: object = None, fields: object = None
    ) -> object:
        self.calls += 1
        yield Listing(self.bodies if resource is PROFILED_JOBS else [], self.version, "")


def test_nothing_is_decided_before_the_watch_has_what_the_list_had(store: Store) -> None:
    now = [0.0]
    server = Lists(profiled_job())
    relister = Relister(server, store, interval=600, clock=lambda: now[0])  # type: ignore[arg-type]
    assert not relister.ready
    relister.run()
    assert not relister.ready, "the watch may be about to say that the job is gone"
    store.observe(PROFILED_JOBS, None, profiled_job())
    assert relister.ready


def test_what_was_deleted_between_list_and_watch_does_not_close_the_gate_for_ever(store: Store) -> None:
    now = [0.0]
    server = Lists(profiled_job())
    relister = Relister(server, store, interval=600, clock=lambda: now[0])  # type: ignore[arg-type]
    relister.run()
    server.bodies.clear()
    now[0] = 20.0
    relister.run()
    assert relister.ready
    assert store.size(PROFILED_JOBS) == 0


def test_a_list_repairs_what_a_silent_watch_has_missed(store: Store) -> None:
    now = [0.0]
    server = Lists(profiled_job())
    relister = Relister(server, store, interval=600, clock=lambda: now[0])  # type: ignore[arg-type]
    store.observe(PROFILED_JOBS, None, profiled_job())
    relister.run()
    assert relister.ready
    server.bodies[:] = [
        profiled_job(version=50, generation=2, suspend=True),
        profiled_job("other", uid="u2", version=51),
    ]
    now[0] = 601.0
    relister.run()
    assert relister.missed == 2
    job = store.job(KEY)
    assert job is not None
    assert job.state.spec.suspend


def test_an_object_newer_than_the_list_is_not_called_gone(store: Store) -> None:
    store.observe(PROFILED_JOBS, "ADDED", profiled_job(version=150))
    assert store.reconcile(PROFILED_JOBS, [], "100").lost == 0
    assert store.reconcile(PROFILED_JOBS, [], "200").lost == 1
