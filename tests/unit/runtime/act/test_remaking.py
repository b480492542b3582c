"""What is sent to the API server for an object that is deleted and made anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.adopted_object import AdoptedObject
from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.state import JobState
from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.errors import Forbidden, Invalid
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_ADOPTED_BY, FINALIZER, LABEL_JOB
from rightpool.planning.jobs.job import Job
from rightpool.workloads.in_place import held
from rightpool.workloads.kinds.job_set import JOB_SET, JOB_SETS
from tests.unit.runtime.act.world import World
from tests.unit.runtime.makers import Body, profiled_job

OLD = AdoptedObject("old-uid")


class Leaving(World):
    """A JobSet of two pods that is stopped, and is to run in pool b with one."""

    def __init__(self) -> None:
        super().__init__()
        self.pools["b"] = replace(self.pools["a10g"], name="b", node_selector={"pool": "b"})
        self.cluster.request = self._request  # type: ignore[attr-defined]
        self.cluster.patch = self._refuse  # type: ignore[attr-defined]
        container = {"name": "main", "image": "example.com/t:1", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
        pods = {"spec": {"nodeSelector": {"pool": "a10g"}, "containers": [container]}}
        job = {"parallelism": 2, "completions": 2, "template": pods}
        spec = {"replicatedJobs": [{"name": "workers", "template": {"spec": job}}]}
        marks = {"labels": {LABEL_JOB: "bert"}, "annotations": {ANNOTATION_ADOPTED_BY: "uid-1"}}
        about = {"name": "train", "namespace": "research", "uid": "old-uid", "generation": 1, **marks}
        self.ref = replace(self.ref, placement=Placement("a10g", 8, 2))
        stopped = held(JOB_SET, {"metadata": about, "spec": spec}, self.ref, self.pools["a10g"])
        self.store.observe(JOB_SETS, "ADDED", self.cluster.put(JOB_SETS, stopped))

    def _refuse(self, *_: Any, **__: Any) -> Body:
        raise Invalid("field is immutable")

    def _request(self, method: str, path: str, *, body: Body, **_: Any) -> Body:
        stored = self.cluster.objects[PROFILED_JOBS, "bert"]
        assert body["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
        guarded = FINALIZER in body["metadata"]["finalizers"]
        self.cluster.writes.append("guard" if guarded else "free")
        finalizers = {"finalizers": body["metadata"]["finalizers"]}
        return self.cluster.put(PROFILED_JOBS, {**stored, "metadata": {**stored["metadata"], **finalizers}})

    def starting(self, known: AdoptedObject = OLD, change: str = "Recreate", **about: Any) -> Job:
        target = replace(self.ref, revision=2, placement=Placement("b", 4, 1))
        move = Migration(
            "d-2", Action.MOVE, Phase.STARTING, self.ref, target, 1.7e9, 1.7e9, Reason.PLACEMENT_DISALLOWED
        )
        body = profiled_job()
        ref = {"apiVersion": JOB_SETS.api_version, "kind": "JobSet", "name": "train"}
        body["spec"] = {"workloadRef": ref, "adoption": {"change": change}}
        body["status"] = ProfiledJobStatus(state=JobState(revision=target, migration=move, adopted=known)).to_dict()
        body["metadata"] |= about
        self.cluster.put(PROFILED_JOBS, body)
        job = self.read()
        stored = self.store.job(job.key)
        assert stored is not None
        return altered(job, able=stored.job.able)

    def manifest(self) -> str:
        """What it is, before it is deleted."""
        job = self.starting()
        self.run(job)
        text = self.executor.objects.remaking.manifest(job)
        assert text
        return text

    def gone(self) -> None:
        self.store.observe(JOB_SETS, "DELETED", self.cluster.objects.pop((JOB_SETS, "train")))

    def made(self) -> Mapping[str, Any]:
        return self.cluster.objects[JOB_SETS, "train"]


@pytest.fixture
def world() -> Leaving:
    return Leaving()


def test_it_is_deleted_once_its_status_says_what_it_was_and_is_kept(world: Leaving) -> None:
    text = world.manifest()
    assert world.cluster.writes == []
    known = replace(OLD, remade=text)
    assert world.run(world.starting(known)) == ["guard", "delete train"]
    assert world.run(world.starting(known, finalizers=[FINALIZER])) == ["delete train"]
    assert world.run(world.starting(replace(OLD, remade="{}"), finalizers=[FINALIZER])) == [], "it was another one"


def test_it_is_not_deleted_without_consent_nor_for_a_job_that_goes(world: Leaving) -> None:
    text = world.manifest()
    known = replace(OLD, remade=text)
    assert world.run(world.starting(known, change="Suspend")) == []
    assert world.run(world.starting(known, deletionTimestamp="2026-11-29T10:00:00Z")) == []
    world.cluster.refuse = Forbidden("exceeded quota")
    assert world.run(world.starting(known)) == [], "the API server would not take the new one"


def test_what_is_gone_is_made_stopped_and_in_its_own_namespace(world: Leaving) -> None:
    body = json.loads(world.manifest())
    world.gone()
    body["metadata"]["namespace"] = "kube-system"
    job = world.starting(replace(OLD, remade=json.dumps(body)), finalizers=[FINALIZER])
    assert job.observed.revisions[1].held, "what it was stands in for it"
    assert world.run(job) == ["create train suspend=True"]
    made = world.made()
    [role] = made["spec"]["replicatedJobs"]
    assert (made["metadata"]["namespace"], role["template"]["spec"]["completions"]) == ("research", 1)
    assert made["metadata"]["labels"] == body["metadata"]["labels"]


def test_what_its_user_deletes_is_not_made_anew(world: Leaving) -> None:
    world.gone()
    assert world.run(world.starting()) == []


def test_another_object_of_its_user_s_stays(world: Leaving) -> None:
    known = replace(OLD, remade=world.manifest())
    world.gone()
    world.cluster.put(JOB_SETS, {"metadata": {"name": "train", "namespace": "research", "uid": "theirs"}, "spec": {}})
    job = world.starting(known, finalizers=[FINALIZER])
    assert world.run(job) == []
    assert world.executor.objects.remaking.manifest(job) == ""


def test_a_namespace_that_is_deleted_keeps_no_job(world: Leaving) -> None:
    known = replace(OLD, remade=world.manifest())
    world.gone()
    world.cluster.refuse = Forbidden(
        "unable to create new content in namespace research because it is being terminated"
    )
    assert world.run(world.starting(known, finalizers=[FINALIZER])) == ["free"]
