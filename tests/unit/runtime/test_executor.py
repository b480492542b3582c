"""The executor against a cluster of dicts: what it asks before it acts, and what it never does."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.conditions import Reason
from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.errors import AlreadyExists, Conflict, Invalid, NotFound, error_from
from rightpool.cluster.resources import JOBS, PODS, PROFILED_JOBS, SERVICES, Resource
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.commands import EndRevision, EnsureRevision, RequestCheckpoint
from rightpool.planning.decision import Action
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.revision import RevisionRef
from rightpool.planning.snapshot import JobState
from rightpool.planning.transitions import commands
from rightpool.runtime.children import Children
from rightpool.runtime.executor import Executor
from rightpool.runtime.fence import Fence
from rightpool.runtime.jobs import read_job
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.persistence import persisted_fields
from rightpool.runtime.store import Store
from tests.unit.runtime.makers import Body, child, pod, profiled_job


class Cluster:
    """Objects by resource and name; counts what is asked of it."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Resource, str], Body] = {}
        self.writes: list[str] = []
        self.refuse: Exception | None = None
        self.version = itertools.count(1000)

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Body:
        if (resource, name) not in self.objects:
            raise NotFound("no")
        return copy.deepcopy(self.objects[resource, name])

    def list_all(self, resource: Resource, namespace: str | None = None, **_: Any) -> list[Body]:
        return [copy.deepcopy(body) for (kind, _), body in self.objects.items() if kind is resource]

    def create(self, resource: Resource, body: Mapping[str, Any], *, dry_run: bool = False) -> Body:
        if self.refuse is not None:
            raise self.refuse
        name = body["metadata"]["name"]
        if dry_run:
            return dict(body)
        if (resource, name) in self.objects:
            raise AlreadyExists("there is one")
        if resource is SERVICES:
            self.writes.append(f"create Service {name}")
        else:
            self.writes.append(f"create {name} suspend={body['spec'].get('suspend')}")
        return self.put(resource, {**body, "metadata": {**body["metadata"], "uid": f"{name}-uid"}})

    def apply(self, resource: Resource, body: Mapping[str, Any], **_: Any) -> Body:
        name = body["metadata"]["name"]
        old = self.objects.get((resource, name))
        if body["metadata"].get("uid") and (old is None or old["metadata"]["uid"] != body["metadata"]["uid"]):
            raise Conflict("another uid")
        self.writes.append(f"apply {name} {body['spec'] if resource is JOBS else ''}".strip())
        new = copy.deepcopy(old) if old else {**body, "metadata": {**body["metadata"], "uid": f"{name}-uid"}}
        new["spec"] = {**new.get("spec", {}), **body["spec"]}
        return self.put(resource, new)

    def delete(self, resource: Resource, name: str, namespace: str | None = None, **conditions: Any) -> None:
        assert conditions["uid"], "only what was looked at may be deleted"
        self.writes.append(f"delete {resource.kind} {name}" if resource is SERVICES else f"delete {name}")

    def put(self, resource: Resource, body: Mapping[str, Any]) -> Body:
        new = copy.deepcopy(dict(body))
        new["metadata"]["resourceVersion"] = str(next(self.version))
        self.objects[resource, new["metadata"]["name"]] = new
        return copy.deepcopy(new)


class Sidecars:
    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, str], ...]] = []
        self.problems: dict[str, str] = {}

    def request_checkpoint(self, addresses: Any, token: str, request_id: str) -> dict[str, str]:
        self.asked.append(tuple(addresses))
        return self.problems


class World:
    """A job on r1 as its status says, and an executor that is leader until told otherwise."""

    def __init__(self) -> None:
        self.cluster, self.store, self.sidecars = Cluster(), Store(), Sidecars()
        self.leader = True
        self.clock = 0.0
        fence = Fence(self.cluster, lambda seconds: self.leader)
        self.executor = Executor(
            self.cluster,  # type: ignore[arg-type]
            self.store,
            fence,
            Children("profiler:1", b"k" * 32),
            self.sidecars,  # type: ignore[arg-type]
            OperatorMetrics(lambda: True),
            clock=lambda: self.clock,
        )
        accelerator = load_catalog().get("A10G-24GB")
        link = accelerator.intra_link
        price = Price(on_demand=1.0)
        self.pools = {
            "a10g": Pool("a10g", accelerator, 4, "nvidia.com/gpu", {"pool": "a10g"}, link, link, price, 32, 32)
        }
        self.ref = RevisionRef(1, Placement("a10g", 4, 1), "hash", (4, 1), 1.7e9, cost_per_hour=4.0)

    def persist(self, migration: Migration | None = None, **spec: Any) -> JobState:
        body = profiled_job(**spec)
        self.cluster.put(PROFILED_JOBS, body)
        state = replace(self.read(), ref=self.ref, migration=migration)
        body = self.cluster.objects[PROFILED_JOBS, "bert"]
        body["status"] = ProfiledJobStatus(**persisted_fields(state)).to_dict()
        self.cluster.put(PROFILED_JOBS, body)
        return self.read()

    def read(self) -> JobState:
        body = self.cluster.get(PROFILED_JOBS, "bert")
        self.store.observe(PROFILED_JOBS, "MODIFIED", body)
        state = read_job(body).state
        return replace(state, revisions=self.store.revisions(state.key, state.uid))

    def run(self, job: JobState) -> list[str]:
        self.cluster.writes.clear()
        for command in commands(job):
            if self.executor.needed(job, command):
                self.executor.carry_out(job, command, self.pools)
        return self.cluster.writes


@pytest.fixture
def world() -> World:
    return World()


def migration(world: World, phase: Phase) -> Migration:
    target = replace(world.ref, revision=2)
    return Migration("d-2", Action.UPDATE, phase, world.ref, target, 1.7e9, 1.7e9, Reason.UPDATING, "")


def test_a_child_is_created_asleep_and_then_started(world: World) -> None:
    assert world.run(world.persist()) == ["create bert-r1 suspend=True", "apply bert-r1 {'suspend': False}"]
    assert world.run(world.read()) == [], "what complies is left alone"


def test_a_child_of_a_queued_job_is_the_queues_to_start(world: World) -> None:
    assert world.run(world.persist(queueName="research")) == ["create bert-r1 suspend=True"]
    assert world.run(world.read()) == []


def test_pods_of_another_revision_hold_up_the_start(world: World) -> None:
    world.cluster.put(PODS, pod(0, metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"}))
    assert world.run(world.persist()) == []
    del world.cluster.objects[PODS, "pod-1"]
    assert len(world.run(world.read())) == 2


def test_who_is_not_leader_any_more_writes_nothing(world: World) -> None:
    job = world.persist()
    world.leader = False
    assert world.run(job) == []


def test_what_the_status_does_not_ask_for_any_more_is_not_done(world: World) -> None:
    job = world.persist()
    world.ref = replace(world.ref, revision=5)
    world.persist()
    assert world.run(job) == []


def test_a_job_that_was_made_anew_is_not_given_the_old_ones_child(world: World) -> None:
    job = world.persist()
    body = world.cluster.objects[PROFILED_JOBS, "bert"]
    body["metadata"]["uid"] = "another"
    assert world.run(job) == []


def test_nothing_is_tried_without_the_pool(world: World) -> None:
    job = world.persist()
    gone = replace(job, absent="pool a10g is gone: declare it again")
    assert not any(world.executor.needed(gone, command) for command in commands(gone))
    assert all(world.executor.needed(job, command) for command in commands(job))


def test_a_refusal_is_told_and_not_repeated_in_every_cycle(world: World) -> None:
    job = world.persist()
    world.cluster.refuse = Invalid("spec.template: no")
    world.run(job)
    refusal = world.executor.refusal(job)
    assert refusal is not None
    assert (refusal.reason, refusal.message) == (Reason.INVALID_TEMPLATE, "spec.template: no")
    world.cluster.refuse = None
    assert not any(world.executor.needed(job, command) for command in commands(job))
    assert world.executor.refusal(replace(job, generation=2)) is None, "an edit is tried at once"
    world.clock = 61.0
    assert len(world.run(job)) == 2
    assert world.executor.refusal(job) is None


def test_a_child_that_is_too_large_to_be_stored_is_told(world: World) -> None:
    """The dry run does not find it: nothing is stored by one."""
    create = world.cluster.create
    complaint = error_from(422, b'{"message": "labels[controller-uid]: Invalid value"}')

    def store(resource: Resource, body: Mapping[str, Any], *, dry_run: bool = False) -> Body:
        if dry_run:
            return create(resource, body, dry_run=True)
        raise complaint

    world.cluster.create = store  # type: ignore[method-assign]
    template = {"spec": {"containers": [{"name": "trainer", "image": "x", "args": ["x" * 2**20]}]}}
    job = world.persist(workload={"job": {"chipsPerReplica": 4, "replicas": 1, "template": template}})
    assert world.run(job) == []
    refusal = world.executor.refusal(job)
    assert refusal is not None and refusal.reason is Reason.INVALID_TEMPLATE
    assert "bytes, which is too large to be stored: make spec.workload.job.template smaller" in refusal.message


def test_what_etcd_finds_too_large_is_the_authors_to_mend() -> None:
    for status, said in (
        (500, "etcdserver: request is too large"),
        (413, "Request entity too large: limit is 3145728"),
    ):
        assert isinstance(error_from(status, json.dumps({"message": said}).encode()), Invalid)


def test_a_job_of_that_name_which_is_somebody_elses_is_left_alone(world: World) -> None:
    theirs = world.cluster.put(JOBS, child(owner="stranger", kind="Pipeline"))
    world.store.observe(JOBS, "ADDED", theirs)
    job = world.persist()
    assert world.run(job) == []
    refusal = world.executor.refusal(job)
    assert refusal is not None and refusal.reason is Reason.NAME_TAKEN
    assert "Job bert-r1" in refusal.message and "another name" in refusal.message


def earlier(world: World, revision: int = 3, **more: Any) -> None:
    """A Job of a ProfiledJob that had this one's name and is gone, with a pod."""
    leftover = world.cluster.put(JOBS, child(revision, owner="uid-0", uid="job-0", **more))
    world.store.observe(JOBS, "ADDED", leftover)
    world.cluster.put(PODS, pod(revision, owner="job-0"))


def test_what_an_earlier_job_of_that_name_left_is_ended_before_anything_starts(world: World) -> None:
    earlier(world)
    job = world.persist()
    assert world.run(job) == ["delete bert-r3"], "the garbage collector may have missed it, and it would run for ever"
    assert world.run(job) == [], "asked for once; its pod is still there"
    del world.cluster.objects[PODS, "pod-1"]
    world.store.observe(JOBS, "DELETED", world.cluster.objects.pop((JOBS, "bert-r3")))
    assert world.run(world.read()) == ["create bert-r1 suspend=True", "apply bert-r1 {'suspend': False}"]


def test_an_earlier_jobs_child_of_the_very_name_is_ended_too(world: World) -> None:
    earlier(world, 1, status={"conditions": [{"type": "Failed", "status": "True"}]})
    assert world.run(world.persist()) == ["delete bert-r1"], "also one that has ended: its name is needed"


def test_a_child_of_a_later_job_of_that_name_is_not_taken_for_an_earlier_ones(world: World) -> None:
    earlier(world)
    job = world.persist()
    world.cluster.objects[PROFILED_JOBS, "bert"]["metadata"]["uid"] = "uid-0"  # ours was deleted, and made anew
    assert world.run(job) == []


def test_a_child_that_says_it_is_an_earlier_jobs_of_another_name_is_left_alone(world: World) -> None:
    body = child(3, owner="uid-0", uid="job-0")
    body["metadata"]["ownerReferences"][0]["name"] = "gpt"
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, body))
    assert not [write for write in world.run(world.persist()) if write.startswith("delete")]


def test_an_earlier_job_does_not_keep_the_chips_that_this_one_waits_for(world: World) -> None:
    earlier(world)
    world.cluster.put(PROFILED_JOBS, profiled_job())
    assert world.read().ref is None
    assert world.run(world.read()) == ["delete bert-r3"]


def test_who_is_not_leader_any_more_ends_nothing_of_an_earlier_job(world: World) -> None:
    earlier(world)
    job = world.persist()
    world.leader = False
    assert world.run(job) == []


def test_a_child_that_an_earlier_attempt_has_created_is_taken_on(world: World) -> None:
    world.cluster.put(JOBS, child(suspend=True))
    assert world.run(world.persist()) == ["apply bert-r1 {'suspend': False}"]


def test_a_late_start_does_not_bring_back_what_was_deleted(world: World) -> None:
    job = world.persist()
    world.store.observe(JOBS, "ADDED", child(suspend=True))  # as the store still has it
    job = replace(job, revisions=world.store.revisions(job.key, job.uid))
    assert world.run(job) == []
    assert (JOBS, "bert-r1") not in world.cluster.objects


def test_ending_a_revision_looks_first_whether_it_has_succeeded(world: World) -> None:
    world.store.observe(JOBS, "ADDED", child())
    job = world.persist(migration(world, Phase.DRAINING))
    world.cluster.put(JOBS, child(status={"conditions": [{"type": "Complete", "status": "True"}]}))
    assert world.run(job) == []
    assert world.store.revisions(job.key, job.uid)[1].succeeded, "the next cycle knows"


def test_ending_a_revision_is_asked_for_once(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    job = world.persist(migration(world, Phase.DRAINING))
    assert world.run(job) == ["delete bert-r1"]
    assert world.run(job) == []
    assert (SERVICES, "bert-r1") not in world.cluster.objects


def service(*, owner: str) -> Body:
    """A Service of the child's name: what it has is `child`'s, less what a Job alone has."""
    body = child(owner=owner, uid="service-1")
    return {**body, "spec": {"selector": {"app": "theirs"}}, "status": {}}


def gang(world: World) -> None:
    world.ref = replace(world.ref, placement=Placement("a10g", 8, 2))


def test_a_gang_has_a_service_that_goes_with_its_child(world: World) -> None:
    gang(world)
    begun = ["create bert-r1 suspend=True", "create Service bert-r1", "apply bert-r1 {'suspend': False}"]
    assert world.run(world.persist()) == begun
    made = world.cluster.objects[SERVICES, "bert-r1"]["metadata"]["ownerReferences"]
    assert [(owner["kind"], owner["uid"]) for owner in made] == [("Job", "bert-r1-uid")], "whatever ends one ends both"
    body = child()
    body["spec"]["parallelism"] = 2
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, body))
    job = world.persist(migration(world, Phase.DRAINING))
    assert world.run(job) == ["delete bert-r1"]


def test_killed_before_its_service_was_made_a_gang_gets_it_before_it_starts(world: World) -> None:
    gang(world)
    body = child(suspend=True)
    body["spec"]["parallelism"] = 2
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, body))
    assert world.run(world.persist()) == ["create Service bert-r1", "apply bert-r1 {'suspend': False}"]


def test_a_gang_that_waits_in_a_queue_has_its_service_all_the_same(world: World) -> None:
    gang(world)
    body = child(suspend=True)
    body["spec"]["parallelism"] = 2
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, body))
    assert world.run(world.persist(queueName="research")) == ["create Service bert-r1"]
    assert world.run(world.read()) == [], "and is not looked after in every cycle"


def test_a_service_of_that_name_which_is_somebody_elses_is_left_alone(world: World) -> None:
    theirs = world.cluster.put(SERVICES, service(owner="stranger"))
    gang(world)
    assert world.run(world.persist()) == ["create bert-r1 suspend=True"], "without one it is not started"
    assert world.run(world.read()) == []
    assert world.cluster.objects[SERVICES, "bert-r1"] == theirs
    refusal = world.executor.refusal(world.read())
    assert refusal is not None and refusal.reason is Reason.NAME_TAKEN and "Service bert-r1" in refusal.message
    del world.cluster.objects[SERVICES, "bert-r1"]
    world.clock = 61.0
    assert world.run(world.read()) == ["create Service bert-r1", "apply bert-r1 {'suspend': False}"]
    assert world.executor.refusal(world.read()) is None


def left_over(world: World) -> None:
    """A Service of a Job that had the child's name and is gone, which the garbage collector has not seen to yet."""
    body = service(owner="job-0")
    body["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job", "name": "bert-r1"}
    world.cluster.put(SERVICES, body)


def test_a_service_that_has_outlived_an_earlier_child_of_that_name_is_ended(world: World) -> None:
    left_over(world)
    gang(world)
    assert world.run(world.persist()) == ["create bert-r1 suspend=True", "delete Service bert-r1"]
    assert world.executor.refusal(world.read()) is None, "nobody has to do anything about it"
    assert world.run(world.read()) == [], "asked for once; it is still there"
    del world.cluster.objects[SERVICES, "bert-r1"]
    assert world.run(world.read()) == ["create Service bert-r1", "apply bert-r1 {'suspend': False}"]


def test_a_service_of_a_later_child_of_that_name_is_not_taken_for_an_earlier_ones(world: World) -> None:
    """The store is late: another process has replaced the child since, and served the new one."""
    gang(world)
    body = child(suspend=True)
    body["spec"]["parallelism"] = 2
    world.store.observe(JOBS, "ADDED", body)
    world.cluster.put(JOBS, child(uid="job-0", suspend=True))
    left_over(world)
    assert world.run(world.persist()) == []
    assert world.executor.refusal(world.read()) is None


def test_a_service_of_a_job_of_another_name_is_left_alone(world: World) -> None:
    left_over(world)
    world.cluster.objects[SERVICES, "bert-r1"]["metadata"]["ownerReferences"][0]["name"] = "their-r1"
    gang(world)
    assert world.run(world.persist()) == ["create bert-r1 suspend=True"]
    refusal = world.executor.refusal(world.read())
    assert refusal is not None and refusal.reason is Reason.NAME_TAKEN


def test_a_pod_that_only_wears_the_labels_is_sent_no_token(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod(uid="pod-2", owner="", status={"podIP": "10.0.0.66"}))
    world.store.observe(PODS, "ADDED", pod(uid="pod-1"))
    world.run(world.persist(migration(world, Phase.CHECKPOINTING)))
    assert world.sidecars.asked == [(("pod-1", "10.0.0.7"),)]


def test_every_pod_is_asked_for_a_checkpoint_and_silence_is_told(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod())
    job = world.persist(migration(world, Phase.CHECKPOINTING))
    world.sidecars.problems = {"pod-1": "HTTP 503"}
    world.run(job)
    assert world.sidecars.asked == [(("pod-1", "10.0.0.7"),)]
    assert world.executor.checkpoint_error(job) == "1 of 1 pods did not take the request (pod-1: HTTP 503)"
    world.sidecars.problems = {}
    world.run(job)
    assert world.executor.checkpoint_error(job) is None


def test_a_program_that_saves_by_itself_is_not_asked(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod())
    job = world.persist(migration(world, Phase.CHECKPOINTING), checkpoint={"mode": "Periodic"})
    world.run(job)
    assert world.sidecars.asked == []


def test_commands_are_what_these_tests_think_they_are(world: World) -> None:
    assert commands(world.persist()) == (EnsureRevision(world.read().ref, False),)  # type: ignore[arg-type]
    world.store.observe(JOBS, "ADDED", child())
    assert commands(world.persist(migration(world, Phase.DRAINING))) == (EndRevision(1),)
    checkpointing = commands(world.persist(migration(world, Phase.CHECKPOINTING)))
    assert RequestCheckpoint(1, "d-2") in checkpointing
