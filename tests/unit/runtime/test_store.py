"""The store: newer versions win, deleted objects stay deleted, irrelevant changes do not wake the planner."""

from __future__ import annotations

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.client import Listing
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB, LABEL_REVISION
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.jobs.revision_state import PodFailure
from rightpool.runtime.observe.pool_inventory import foreign_fields
from rightpool.runtime.observe.relist import Relister
from rightpool.runtime.observe.store import Store
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
    assert job.job.spec.suspend
    assert job.resource_version == "12"


def test_an_evicted_pod_is_remembered_as_long_as_its_job_is_there(store: Store) -> None:
    """It is gone before its peers have failed without it, and they before the Job says so."""
    spoken = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    ended = {"name": "trainer", "state": {"terminated": {"exitCode": 1, "finishedAt": "2027-01-15T08:00:31Z"}}}
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T07:00:00Z"}
    store.observe(JOBS, "ADDED", child())
    store.observe(PODS, "MODIFIED", pod(version=30, status={"conditions": [spoken]}))
    store.observe(PODS, "DELETED", pod(version=31))
    peer = pod(uid="pod-2", version=32, phase="Failed", status={"conditions": [bound], "containerStatuses": [ended]})
    store.observe(PODS, "MODIFIED", peer)
    store.observe(JOBS, "MODIFIED", child(version=33, status={"conditions": [failed], "failed": 1}))
    state = store.revisions(KEY, "uid-1")[1]
    assert state.disrupted_at == 1_800_000_000.0 and state.failures_allowed == 6
    assert state.pod_failures == (PodFailure(1_800_000_000.0 - 3600.0, 1_800_000_031.0),)
    store.observe(JOBS, "DELETED", child(version=34))
    store.observe(JOBS, "ADDED", child(uid="job-2", version=35))
    assert store.revisions(KEY, "uid-1")[1].disrupted_at is None


def test_a_late_response_does_not_restore_a_deleted_object(store: Store) -> None:
    store.observe(JOBS, "ADDED", child(version=20))
    store.observe(JOBS, "DELETED", child(version=25))
    store.assume(JOBS, child(version=24))
    assert store.child(KEY, "uid-1", 1) is None


def test_a_pod_whose_label_is_taken_off_and_put_on_again_comes_back(store: Store) -> None:
    """A watch by label tells of the first as of a deletion, and of the second as of a new object."""
    store.observe(JOBS, "ADDED", child())
    store.observe(PODS, "ADDED", pod(version=30))
    store.observe(PODS, "DELETED", pod(version=31))
    assert store.revisions(KEY, "uid-1")[1].active == 0
    store.reconcile(PODS, [pod(version=30)], "30")
    assert store.revisions(KEY, "uid-1")[1].active == 0, "a list that was asked for before"
    store.observe(PODS, "ADDED", pod(version=32))
    assert store.revisions(KEY, "uid-1")[1].active == 1
    store.reconcile(PODS, [], "40")
    assert store.revisions(KEY, "uid-1")[1].active == 0
    store.observe(PODS, "ADDED", pod(version=39))
    assert store.revisions(KEY, "uid-1")[1].active == 0, "an event from before the list"
    store.observe(PODS, "ADDED", pod(version=41))
    assert store.revisions(KEY, "uid-1")[1].active == 1


def test_an_object_that_is_known_by_a_newer_version_is_not_gone(store: Store) -> None:
    """A list, or the response to a write that puts the label on again, may come before what the watch has to tell."""
    store.observe(JOBS, "ADDED", child())
    store.observe(PODS, "ADDED", pod(version=30))
    store.reconcile(PODS, [pod(version=32)], "33")
    store.observe(PODS, "DELETED", pod(version=31))
    assert store.revisions(KEY, "uid-1")[1].active == 1
    store.assume(JOBS, child(version=36))
    store.observe(JOBS, "DELETED", child(version=35))
    assert store.child(KEY, "uid-1", 1) is not None
    store.observe(PODS, "DELETED", pod(version=40))
    assert store.revisions(KEY, "uid-1")[1].active == 0


def test_a_recreated_job_is_another_job(store: Store) -> None:
    store.observe(PROFILED_JOBS, "ADDED", profiled_job(uid="old", version=10))
    store.observe(PROFILED_JOBS, "ADDED", profiled_job(uid="new", version=15))
    store.observe(PROFILED_JOBS, "DELETED", profiled_job(uid="old", version=14))
    job = store.job(KEY)
    assert job is not None
    assert job.job.uid == "new"


def test_a_cycle_that_began_before_a_job_was_created_again_does_not_hide_its_child(store: Store) -> None:
    store.observe(PROFILED_JOBS, "ADDED", profiled_job(uid="uid-1", version=1))
    store.observe(JOBS, "ADDED", child())
    store.observe(PROFILED_JOBS, "DELETED", profiled_job(uid="uid-1", version=2))
    assert store.revisions(KEY, "uid-1")[1].exists, "asked by a cycle that still has the deleted job"
    store.observe(PROFILED_JOBS, "ADDED", profiled_job(uid="uid-2", version=3))
    state = store.revisions(KEY, "uid-2")[1]
    assert (state.exists, state.earlier) == (False, True)


@pytest.mark.parametrize(("decided", "reported"), [("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")])
def test_the_outcome_is_decided_before_it_is_reported(store: Store, decided: str, reported: str) -> None:
    conditions = [{"type": decided, "status": "True"}]
    store.observe(JOBS, "ADDED", child(status={"conditions": conditions}))
    store.observe(PODS, "ADDED", pod(metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"}))
    state = store.revisions(KEY, "uid-1")[1]
    assert (state.finishing, state.succeeded, state.failed) == (True, False, False)
    conditions.append({"type": reported, "status": "True"})
    store.observe(JOBS, "MODIFIED", child(version=40, status={"conditions": conditions}))
    state = store.revisions(KEY, "uid-1")[1]
    assert (state.finishing, state.succeeded, state.failed) == (False, reported == "Complete", reported == "Failed")


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
    assert (state.active, state.succeeded, state.finishing) == (0, False, True), "the Job has not reported it yet"
    store.observe(JOBS, "DELETED", child(version=33))
    assert store.revisions(KEY, "uid-1")[1].exists is False
    store.observe(PODS, "DELETED", pod(version=34))
    assert store.revisions(KEY, "uid-1") == {}


def test_pods_of_an_earlier_job_of_the_name_are_active_but_not_running(store: Store) -> None:
    store.observe(JOBS, "ADDED", child(uid="new-job"))
    store.observe(PODS, "ADDED", pod(owner="old-job"))
    state = store.revisions(KEY, "uid-1")[1]
    assert (state.active, state.running) == (1, 0)


def test_a_pod_whose_label_changes_leaves_its_former_job(store: Store) -> None:
    other = {"labels": {LABEL_JOB: "other", LABEL_REVISION: "1"}}
    store.observe(JOBS, "ADDED", child())
    store.observe(PODS, "ADDED", pod())
    assert store.revisions(KEY, "uid-1")[1].running == 1
    store.take_news()
    store.observe(PODS, "MODIFIED", pod(version=31, metadata=other))
    assert store.take_news() == {KEY, JobKey("research", "other")}
    assert store.revisions(KEY, "uid-1")[1].active == 0
    assert store.revisions(JobKey("research", "other"), "uid-2")[1].active == 1
    store.observe(PODS, "DELETED", pod(version=32, metadata=other))
    assert store.revisions(KEY, "uid-1")[1].active == 0
    assert store.revisions(JobKey("research", "other"), "uid-2") == {}


def test_the_reason_why_pods_do_not_run_is_kept(store: Store) -> None:
    store.observe(JOBS, "ADDED", child())
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes"}
    store.observe(PODS, "ADDED", pod(phase="Pending", status={"conditions": [unschedulable]}))
    assert store.revisions(KEY, "uid-1")[1].blocked == "Unschedulable: 0/4 nodes"
    waiting = {"name": "trainer", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    store.observe(
        PODS, "MODIFIED", pod(version=31, phase="Pending", ready=False, status={"containerStatuses": [waiting]})
    )
    assert store.revisions(KEY, "uid-1")[1].blocked == "container trainer: ImagePullBackOff: no such image"


def ended(code: int, message: str = "", at: str = "2026-11-21T10:00:00Z", reason: str = "Error") -> Body:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, "finishedAt": at}}


def test_a_program_that_fails_and_is_started_again_is_a_crash(store: Store) -> None:
    store.observe(JOBS, "ADDED", child(status={"failed": 1}))
    trace = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"
    statuses = [{"name": "trainer", "state": ended(1, trace)}]
    store.observe(PODS, "ADDED", pod(phase="Failed", status={"containerStatuses": statuses}))
    state = store.revisions(KEY, "uid-1")[1]
    assert state.crash is not None
    assert (state.active, state.blocked) == (0, None)
    assert (state.crash.count, state.crash.allowed, state.crash.exit_code) == (1, 6, 1)
    assert state.crash.output == trace.strip()
    assert str(state.crash) == "container trainer exited with 1 (Error)"
    store.observe(JOBS, "MODIFIED", child(version=40, status={"conditions": [{"type": "Failed", "status": "True"}]}))
    assert store.revisions(KEY, "uid-1")[1].crash is None, "the child's failure says it from now on"


def test_restarts_in_place_are_counted_and_the_last_failure_is_told(store: Store) -> None:
    store.observe(JOBS, "ADDED", child())
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    late = "2026-11-21T10:05:00Z"
    statuses = [
        {"name": "rightpool-profiler", "restartCount": 9, "state": waiting, "lastState": ended(2, at=late)},
        {"name": "trainer", "restartCount": 3, "state": waiting, "lastState": ended(137, reason="OOMKilled")},
    ]
    store.observe(PODS, "ADDED", pod(ready=False, status={"containerStatuses": statuses}))
    crash = store.revisions(KEY, "uid-1")[1].crash
    assert crash is not None
    assert (crash.count, str(crash)) == (3, "container trainer exited with 137 (OOMKilled)")


def test_a_drained_pod_is_no_crash(store: Store) -> None:
    store.observe(JOBS, "ADDED", child())
    status = {
        "containerStatuses": [{"name": "trainer", "state": ended(143)}],
        "conditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    store.observe(PODS, "ADDED", pod(phase="Failed", status=status))
    assert store.revisions(KEY, "uid-1")[1].crash is None


def test_the_end_of_a_long_output_is_kept_in_whole_lines(store: Store) -> None:
    store.observe(JOBS, "ADDED", child())
    lines = "\n".join(f"line {number}" for number in range(500))
    statuses = [{"name": "trainer", "state": ended(1, lines)}]
    store.observe(PODS, "ADDED", pod(phase="Failed", status={"containerStatuses": statuses}))
    crash = store.revisions(KEY, "uid-1")[1].crash
    assert crash is not None
    assert len(crash.output) <= 401
    assert crash.output.startswith("…line ") and crash.output.endswith("\nline 499")


def test_a_heartbeat_does_not_wake_the_planner(store: Store) -> None:
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


def test_only_the_users_changes_wake_the_planner(store: Store) -> None:
    store.observe(PROFILED_JOBS, "ADDED", profiled_job())
    assert store.wait(0)
    store.observe(PROFILED_JOBS, "MODIFIED", {**profiled_job(version=11), "status": {"moves": 1}})
    assert not store.wait(0)
    store.observe(PROFILED_JOBS, "MODIFIED", profiled_job(version=12, generation=2, suspend=True))
    assert store.wait(0)
    traced = profiled_job(version=13, generation=2, suspend=True)
    traced["metadata"]["annotations"] = {"rightpool.dev/trace": "now"}
    store.observe(PROFILED_JOBS, "MODIFIED", traced)
    assert store.wait(0)


def test_objects_without_our_labels_are_not_kept(store: Store) -> None:
    foreign = pod()
    foreign["metadata"]["labels"] = {"app": "x"}
    store.observe(PODS, "ADDED", foreign)
    assert store.size(PODS) == 0
    store.observe(PROFILED_JOBS, "ADDED", profiled_job())
    job = store.job(KEY)
    assert job is not None
    assert "managedFields" not in job.status_body


def test_field_managers_of_a_pool_are_kept(store: Store) -> None:
    price = {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:price": {"f:perChipHour": {}}}}}
    pool = {"metadata": {"name": "a10g", "uid": "p", "resourceVersion": "5", "managedFields": [price]}, "spec": {}}
    store.observe(ACCELERATOR_POOLS, "ADDED", pool)
    assert foreign_fields(store.objects(ACCELERATOR_POOLS)[0]) == {"price"}


def node(*, uid: str = "node-1", version: int = 40, cordoned: bool = False, heartbeat: str = "1") -> Body:
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}]
    return {
        "metadata": {"name": uid, "uid": uid, "resourceVersion": str(version)},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": conditions},
    }


def test_the_objects_of_a_resource_are_the_same_until_one_changes(store: Store) -> None:
    store.observe(NODES, "ADDED", node())
    one = store.objects(NODES)
    store.observe(NODES, "MODIFIED", node(version=41, heartbeat="2"))
    store.observe(NODES, "MODIFIED", node(version=39, cordoned=True))
    store.observe(PODS, "ADDED", pod())
    assert store.objects(NODES) is one, "a heartbeat, an old event, and what concerns pods"
    pods = store.all_pods()
    store.observe(PODS, "MODIFIED", pod(version=31))
    assert store.all_pods() is pods

    store.observe(NODES, "MODIFIED", node(version=42, cordoned=True))
    assert [facts.unschedulable for facts in store.objects(NODES)] == [True]
    store.observe(NODES, "ADDED", node(uid="node-2"))
    assert len(store.objects(NODES)) == 2
    store.observe(NODES, "DELETED", node(version=43))
    assert len(store.objects(NODES)) == 1
    store.reconcile(NODES, [node(uid="node-2", version=43, cordoned=True)], "43")
    assert [facts.unschedulable for facts in store.objects(NODES)] == [True]
    store.reconcile(NODES, [], "44")
    assert store.objects(NODES) == ()
    store.assume(PODS, pod(version=32, phase="Succeeded"))
    assert [facts.done for facts in store.all_pods()] == [True]


class Lists:
    """An API server that knows some jobs."""

    def __init__(self, *bodies: Body, version: str = "100") -> None:
        self.bodies, self.version, self.calls = list(bodies), version, 0

    def pages(
        self, resource: object, namespace: object = None, *, labels: object = None, fields: object = None
    ) -> object:
        self.calls += 1
        yield Listing(self.bodies if resource is PROFILED_JOBS else [], self.version, "")


def test_not_ready_before_the_watch_has_delivered_the_list(store: Store) -> None:
    now = [0.0]
    server = Lists(profiled_job())
    relister = Relister(server, store, interval=600, missing=tuple, progress=int, clock=lambda: now[0])  # type: ignore[arg-type]
    assert not relister.ready
    relister.run()
    assert not relister.ready, "the watch may be about to say that the job is gone"
    store.observe(PROFILED_JOBS, None, profiled_job())
    relister.run()
    assert relister.ready


def test_not_ready_while_a_watch_is_missing(store: Store) -> None:
    now, missing = [0.0], ["pods"]
    server = Lists(profiled_job())
    relister = Relister(server, store, interval=600, missing=lambda: missing, progress=int, clock=lambda: now[0])  # type: ignore[arg-type]
    store.observe(PROFILED_JOBS, None, profiled_job())
    relister.run()
    assert not relister.ready, "an empty resource looks like one without a watch"
    missing.clear()
    relister.run()
    assert relister.ready


def test_after_a_lost_watch_ready_again_when_it_is_open_and_all_is_listed(store: Store) -> None:
    now, missing = [0.0], list[str]()
    server = Lists(profiled_job())
    relister = Relister(server, store, interval=600, missing=lambda: missing, progress=int, clock=lambda: now[0])  # type: ignore[arg-type]
    store.observe(PROFILED_JOBS, None, profiled_job())
    relister.run()
    assert relister.ready
    missing.append("pods")
    assert not relister.ready
    listed = server.calls
    relister.run()
    now[0] = 1000.0
    relister.run()
    assert server.calls == listed, "a list from before the watch is back says nothing of what it will miss"
    server.bodies.append(profiled_job("other", uid="u2", version=51))
    missing.clear()
    assert not relister.ready
    relister.run()
    assert not relister.ready, "listed, and not seen by the watch yet"
    store.observe(PROFILED_JOBS, "ADDED", profiled_job("other", uid="u2", version=51))
    relister.run()
    assert relister.ready


def test_an_object_deleted_between_list_and_watch_does_not_block_readiness(store: Store) -> None:
    now = [0.0]
    server = Lists(profiled_job())
    relister = Relister(server, store, interval=600, missing=tuple, progress=int, clock=lambda: now[0])  # type: ignore[arg-type]
    relister.run()
    server.bodies.clear()
    now[0] = 20.0
    relister.run()
    assert relister.ready
    assert store.size(PROFILED_JOBS) == 0


def test_a_list_repairs_what_a_watch_has_missed(store: Store) -> None:
    now = [0.0]
    server = Lists(profiled_job())
    relister = Relister(server, store, interval=600, missing=tuple, progress=int, clock=lambda: now[0])  # type: ignore[arg-type]
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
    assert job.job.spec.suspend


def test_an_object_newer_than_the_list_is_kept(store: Store) -> None:
    store.observe(PROFILED_JOBS, "ADDED", profiled_job(version=150))
    assert store.reconcile(PROFILED_JOBS, [], "100").lost == 0
    assert store.reconcile(PROFILED_JOBS, [], "200").lost == 1


def test_what_a_job_selects_nodes_by_follows_its_spec(store: Store) -> None:
    def selecting(generation: int, nodes: Body) -> frozenset[tuple[str, str]]:
        body = profiled_job(version=generation, generation=generation)
        body["spec"]["workload"]["job"]["template"]["spec"]["nodeSelector"] = nodes
        store.observe(PROFILED_JOBS, "MODIFIED", body)
        job = store.job(KEY)
        assert job is not None
        return job.asks

    assert selecting(1, {"disk": "ssd"}) == {("label", "disk")}
    assert selecting(2, {}) == frozenset()
