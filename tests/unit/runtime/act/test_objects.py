"""What is sent to the API server for objects that somebody else has made, and what is not."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.adopted_object import AdoptedObject
from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import JOBS
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.state import JobState
from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.errors import Conflict, Invalid
from rightpool.cluster.resources import POD_TEMPLATES, PODS, PROFILED_JOBS, WORKLOADS
from rightpool.contract import ANNOTATION_ADOPTED_BY, LABEL_JOB, LABEL_REVISION
from rightpool.planning.jobs.abilities import Abilities
from rightpool.planning.jobs.job import Job
from rightpool.runtime.act.admissions import SEEN_SECONDS
from rightpool.runtime.act.objects import AGAIN_SECONDS
from rightpool.workloads.in_place import is_held, put
from rightpool.workloads.jobs_of_set import ROLE
from rightpool.workloads.kinds.job_set import JOB_SETS
from rightpool.workloads.names import ANNOTATION_ORIGINAL, LABEL_QUEUE
from tests.unit.planning.jobs import changed
from tests.unit.runtime.act.world import World
from tests.unit.runtime.makers import Body, profiled_job

CONTAINER = {"name": "main", "image": "example.com/t:1", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
SPEC: Body = {
    "completionMode": "Indexed",
    "completions": 1,
    "parallelism": 1,
    "template": {"spec": {"nodeSelector": {"pool": "a10g"}, "containers": [CONTAINER]}},
}
REF = {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}


class Moving(World):
    """A Job of somebody's, which is that of a ProfiledJob, and on its way to pool b."""

    def __init__(self) -> None:
        super().__init__()
        self.pools["b"] = replace(self.pools["a10g"], name="b", node_selector={"pool": "b"})
        self.cluster.patch = self._patch  # type: ignore[attr-defined]
        self.original: str | None = None
        about = {
            "name": "train",
            "namespace": "research",
            "uid": "train-uid",
            "generation": 1,
            "labels": {LABEL_JOB: "bert"},
            "annotations": {ANNOTATION_ADOPTED_BY: "uid-1"},
        }
        self.see({"metadata": about, "spec": copy.deepcopy(SPEC)})

    def _patch(self, resource: Any, name: str, namespace: str, patch: list[Body], *, dry_run: bool = False) -> Body:
        stored = self.cluster.objects[resource, name]
        if self.cluster.refuse is not None:
            raise self.cluster.refuse
        if patch[1]["value"] != stored["metadata"]["resourceVersion"]:
            raise Conflict("another version")
        after = copy.deepcopy(stored)
        for step in patch[2:]:
            put(after, step["path"], step.get("value"))
        self.cluster.writes.append(f"patch suspend={after['spec'].get('suspend')}{' (dry run)' if dry_run else ''}")
        after["metadata"]["generation"] += 1
        return after if dry_run else self.cluster.put(resource, after)

    def see(self, body: Body) -> None:
        body["metadata"]["generation"] += 1
        self.store.observe(JOBS, "MODIFIED", self.cluster.put(JOBS, body))

    def edit(self, pointer: str, value: Any) -> None:
        body = copy.deepcopy(self.body)
        put(body, pointer, value)
        self.see(body)

    @property
    def body(self) -> Body:
        return self.cluster.objects[JOBS, "train"]

    def at(self, phase: Phase, *, rolling_back: bool = False, **spec: Any) -> Job:
        target = replace(self.ref, revision=2, placement=Placement("b", 4, 1))
        here = target if phase is Phase.STARTING else self.ref
        abandoned = replace(target, revision=9) if rolling_back else None
        migration = Migration("d-2", Action.MOVE, phase, self.ref, target, 1.7e9, 1.7e9, Reason.PLACEMENT_DISALLOWED)
        migration = replace(migration, rolling_back=rolling_back, abandoned=abandoned)
        body = {**profiled_job(), "spec": {"workloadRef": REF, "adoption": {"change": "Suspend"}, **spec}}
        state = JobState(revision=here, migration=migration)
        body["status"] = ProfiledJobStatus(state=state).to_dict()
        self.cluster.put(PROFILED_JOBS, body)
        return self.read()


@pytest.fixture
def world() -> Moving:
    return Moving()


def test_it_is_stopped_then_changed_and_nothing_is_repeated(world: Moving) -> None:
    assert world.run(world.at(Phase.DRAINING)) == ["patch suspend=True"]
    assert is_held(world.body) and world.run(world.at(Phase.DRAINING)) == []
    assert world.run(world.at(Phase.STARTING)) == ["patch suspend=False"]
    assert world.body["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "b"}
    assert not is_held(world.body) and world.run(world.at(Phase.STARTING)) == []


def test_it_is_resumed_when_admission_has_seen_what_its_pods_get(world: Moving) -> None:
    world.executor.admissions.on = True
    world.run(world.at(Phase.DRAINING))
    assert world.run(world.at(Phase.STARTING)) == ["create PodTemplate bert"]
    world.clock = SEEN_SECONDS - 0.1
    assert world.run(world.at(Phase.STARTING)) == [] and is_held(world.body)
    world.clock = SEEN_SECONDS
    assert world.run(world.at(Phase.STARTING)) == ["patch suspend=False"]


def test_its_pods_run_without_a_profiler_rather_than_not_at_all(world: Moving) -> None:
    world.executor.admissions.on = True
    world.cluster.put(POD_TEMPLATES, {"metadata": {"name": "bert", "namespace": "research", "uid": "foreign"}})
    world.run(world.at(Phase.DRAINING))
    assert world.run(world.at(Phase.STARTING)) == ["patch suspend=False"]


def test_what_goes_by_group_is_changed_while_it_runs_and_once(world: Moving) -> None:
    able = Abilities("Job", resize=False, affinity=True, by_group=True)

    def turning() -> Job:
        return altered(world.at(Phase.DRAINING, checkpoint={"mode": "None"}), able=able)

    world.cluster.refuse = Invalid("field is immutable")
    assert world.run(turning()) == []
    refusal = world.executor.objects.refusal(turning())
    assert refusal is not None and refusal.revision == 2
    world.cluster.refuse = None
    world.clock += AGAIN_SECONDS
    assert world.run(turning()) == ["patch suspend=None"]
    assert not is_held(world.body) and world.body["metadata"]["annotations"][LABEL_REVISION] == "2"
    assert world.body["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "b"}
    assert world.run(turning()) == []
    world.edit("/metadata/annotations", {**world.body["metadata"]["annotations"], LABEL_REVISION: "1"})
    world.edit("/spec/suspend", True)
    assert world.run(turning()) == [], "its user has stopped it"


def test_it_is_not_changed_while_a_pod_is_left(world: Moving) -> None:
    world.run(world.at(Phase.DRAINING))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "train-uid", "controller": True}
    about = {"name": "p", "namespace": "research", "uid": "p", "ownerReferences": [owner], "deletionTimestamp": "x"}
    world.cluster.put(PODS, {"metadata": about, "spec": {}, "status": {"phase": "Running"}})
    assert world.run(world.at(Phase.STARTING)) == [] and is_held(world.body)
    world.cluster.put(PODS, {"metadata": about, "spec": {}, "status": {"phase": "Succeeded"}})
    assert world.run(world.at(Phase.STARTING)) == ["patch suspend=False"]


def test_who_does_not_lead_writes_nothing(world: Moving) -> None:
    job, world.leader = world.at(Phase.DRAINING), False
    assert world.run(job) == []


def test_a_status_that_asks_for_it_no_more_is_obeyed(world: Moving) -> None:
    job = world.at(Phase.DRAINING)
    world.at(Phase.CHECKPOINTING)
    assert world.run(job) == []


def test_an_object_that_was_made_anew_is_left_alone(world: Moving) -> None:
    job = world.at(Phase.DRAINING)
    world.cluster.objects[JOBS, "train"]["metadata"]["uid"] = "another"
    assert world.run(job) == []


def test_the_api_server_is_asked_once_without_anything_being_stored(world: Moving) -> None:
    job = world.at(Phase.PLANNED)
    assert world.run(job) == ["patch suspend=True (dry run)"]
    assert world.cluster.requests.count("POST jobs (dry run)") == 1
    assert world.executor.objects.checked(job) == 2 and world.executor.objects.refusal(job) is None
    assert not is_held(world.body) and world.run(world.at(Phase.PLANNED)) == []


def test_what_is_refused_is_known_and_asked_again_later(world: Moving) -> None:
    world.cluster.refuse = Invalid("spec.template: field is immutable")
    job = world.at(Phase.PLANNED)
    assert world.run(job) == []
    refusal = world.executor.objects.refusal(job)
    assert refusal is not None and (refusal.revision, refusal.reason) == (2, Reason.CHANGE_REFUSED)
    assert "field is immutable" in refusal.message
    world.cluster.requests.clear()
    assert world.run(job) == [] and "PATCH jobs" not in world.cluster.requests
    world.cluster.refuse, world.clock = None, 120.0
    world.executor.forget({job.uid})
    assert world.run(job) == ["patch suspend=True (dry run)"]
    assert world.executor.objects.refusal(job) is None


def test_where_there_is_no_way_back_it_runs_as_it_is(world: Moving) -> None:
    world.run(world.at(Phase.DRAINING))
    del world.pools["b"]
    assert world.run(world.at(Phase.STARTING)) == [], "it goes back"
    refusal = world.executor.objects.refusal(world.at(Phase.STARTING))
    assert refusal is not None and "pool b is not there" in refusal.message
    world.clock = 120.0
    assert world.run(world.at(Phase.STARTING, rolling_back=True)) == ["patch suspend=False"]
    assert world.body["spec"]["template"] == SPEC["template"] and not is_held(world.body)


def test_a_note_that_was_lost_is_in_the_status(world: Moving) -> None:
    world.run(world.at(Phase.DRAINING))
    note = world.body["metadata"]["annotations"][ANNOTATION_ORIGINAL]
    world.edit("/metadata/annotations/rightpool.dev~1original", None)
    job = world.at(Phase.STARTING)
    kept = replace(job.state, adopted=AdoptedObject("train-uid", note))
    body = world.cluster.objects[PROFILED_JOBS, "bert"]
    body["status"] = ProfiledJobStatus(state=kept).to_dict()
    assert world.run(changed(world.read(), revisions=job.observed.revisions)) == ["patch suspend=False"]
    assert world.body["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "b"}


def read_by_kueue(world: Moving, **status: Any) -> None:
    """Kueue's Workload of the object as that is now."""
    owner = {"kind": "Job", "name": "train", "uid": "train-uid", "controller": True}
    known = world.cluster.objects.get((WORKLOADS, "job-train")) or {
        "metadata": {"name": "job-train", "namespace": "research", "uid": "w", "ownerReferences": [owner]},
        "spec": {"active": True},
    }
    pods = [{"name": "main", "template": copy.deepcopy(world.body["spec"]["template"])}]
    world.cluster.put(WORKLOADS, {**known, "spec": {**known["spec"], "podSets": pods}, "status": status})


def test_in_a_queue_it_is_stopped_changed_and_started_by_its_queue(world: Moving) -> None:
    world.edit("/metadata/labels", {**world.body["metadata"]["labels"], LABEL_QUEUE: "research"})
    reserved = {"conditions": [{"type": "QuotaReserved", "status": "True"}]}
    read_by_kueue(world, **reserved)
    assert world.run(world.at(Phase.DRAINING)) == ["patch suspend=None", "apply job-train {'active': False}"]
    assert is_held(world.body) and world.run(world.at(Phase.DRAINING)) == [], "it has been told"
    world.edit("/spec/suspend", True)
    assert world.run(world.at(Phase.STARTING)) == [], "its quota is still its own"
    read_by_kueue(world)
    assert world.run(world.at(Phase.STARTING)) == ["patch suspend=True"]
    assert world.body["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "b"} and is_held(world.body)
    assert world.run(world.at(Phase.STARTING)) == [], "Kueue has not read it"
    read_by_kueue(world)
    assert world.run(world.at(Phase.STARTING)) == ["apply job-train {'active': True}", "patch suspend=True"]
    assert not is_held(world.body) and world.run(world.at(Phase.STARTING)) == []


def test_without_kueue_what_is_in_a_queue_is_not_stopped(world: Moving) -> None:
    world.edit("/metadata/labels", {**world.body["metadata"]["labels"], LABEL_QUEUE: "research"})
    world.run(world.at(Phase.PLANNED))
    refusal = world.executor.objects.refusal(world.read())
    assert refusal is not None and refusal.message == "queue research is to stop it, and Kueue has no Workload of it"


class Stuck(World):
    """A JobSet of somebody's that has been moved to pool b, whose Job also has the key of pool a10g."""

    def __init__(self) -> None:
        super().__init__()
        self.pools["a10g"] = replace(self.pools["a10g"], node_selector={"product": "a10g"})
        self.pools["b"] = replace(self.pools["a10g"], name="b", node_selector={"pool": "b"})
        about = {"name": "train", "namespace": "research", "uid": "train-uid", "generation": 1}
        marks = {"labels": {LABEL_JOB: "bert"}, "annotations": {ANNOTATION_ADOPTED_BY: "uid-1", LABEL_REVISION: "2"}}
        pods = {"spec": {"nodeSelector": {"pool": "b"}, "containers": [CONTAINER]}}
        spec = {"replicatedJobs": [{"name": "workers", "template": {"spec": {"template": pods}}}]}
        body = self.cluster.put(JOB_SETS, {"metadata": {**about, **marks}, "spec": spec})
        self.store.observe(JOB_SETS, "MODIFIED", body)
        self.ref = replace(self.ref, revision=2, placement=Placement("b", 4, 1))

    def job(self, selector: dict[str, str]) -> None:
        labels = {"jobset.sigs.k8s.io/jobset-uid": "train-uid", ROLE: "workers"}
        about = {"name": "train-workers-0", "namespace": "research", "uid": "job-uid", "labels": labels}
        pods = {"spec": {"nodeSelector": selector, "containers": [CONTAINER]}}
        self.cluster.put(JOBS, {"metadata": about, "spec": {"template": pods}})

    def stuck(self) -> Job:
        ref = {"apiVersion": JOB_SETS.api_version, "kind": "JobSet", "name": "train"}
        body = {**profiled_job(), "spec": {"workloadRef": ref, "adoption": {"change": "Suspend"}}}
        body["status"] = ProfiledJobStatus(state=JobState(revision=self.ref)).to_dict()
        self.cluster.put(PROFILED_JOBS, body)
        job = self.read()
        state = altered(job.observed.revisions[2], blocked="Unschedulable: no node matches")
        return changed(job, revisions={2: state})


def test_a_job_that_is_held_to_the_pool_it_has_left_is_deleted_to_be_made_anew() -> None:
    world = Stuck()
    world.job({"product": "a10g", "pool": "b"})
    assert world.run(world.stuck()) == ["delete train-workers-0"]
    assert world.run(world.stuck()) == [] and world.cluster.requests == [], "it is not looked at in each cycle"
    world.job({"pool": "b"})
    world.clock += 11.0
    assert world.run(world.stuck()) == [] and "LIST jobs" in world.cluster.requests
    world.leader, world.clock = False, world.clock + 11.0
    world.job({"product": "a10g", "pool": "b"})
    assert world.run(world.stuck()) == []
