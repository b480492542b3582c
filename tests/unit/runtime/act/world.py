"""An executor on an in-memory cluster, with a job whose status has r1."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import Resource
from rightpool.api.migration import Migration, Phase
from rightpool.api.pause import Pause
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.rescue import Rescue
from rightpool.api.revision import Revision
from rightpool.api.status import ProfiledJobStatus
from rightpool.api.trace import Trace
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import AlreadyExists, Conflict, NotFound
from rightpool.cluster.resources import POD_TEMPLATES, PROFILED_JOBS, SERVICES
from rightpool.contract import FIELD_MANAGER
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import commands
from rightpool.pod_client import Outcomes
from rightpool.reporting.stored_job import read_job
from rightpool.runtime.act.admissions import Admissions
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.executor import Executor
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.observe.store import Store
from rightpool.workloads.kinds.registry import pod_sets_of
from rightpool.workloads.names import workload_hash
from tests.unit.planning.jobs import changed
from tests.unit.runtime.makers import Body, profiled_job


class Cluster:
    """Stores objects by resource and name, and records requests."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.objects: dict[tuple[Resource, str], Body] = {}
        self.writes: list[str] = []
        self.refuse: Exception | None = None
        self.absent: set[Resource] = set()  # whose definition is not installed
        self.version = itertools.count(1000)

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Body:
        self.requests.append(f"GET {resource.plural}")
        if (resource, name) not in self.objects:
            raise NotFound("no")
        return copy.deepcopy(self.objects[resource, name])

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future

    def list_all(self, resource: Resource, namespace: str | None = None, **_: Any) -> list[Body]:
        self.requests.append(f"LIST {resource.plural}")
        if resource in self.absent:
            raise NotFound("no such resource")
        return [copy.deepcopy(body) for (kind, _), body in self.objects.items() if kind is resource]

    def page(self, resource: Resource, namespace: str | None = None, *, limit: int, **_: Any) -> Listing:
        return Listing(self.list_all(resource, namespace)[:limit], "1", "")

    def create(
        self, resource: Resource, body: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False
    ) -> Body:
        ours = resource in (SERVICES, POD_TEMPLATES)
        assert strict is not ours, "only what users write is judged strictly"
        self.requests.append(f"POST {resource.plural}{' (dry run)' if dry_run else ''}")
        if self.refuse is not None:
            raise self.refuse
        name = body["metadata"]["name"]
        if dry_run:
            return dict(body)
        if (resource, name) in self.objects:
            raise AlreadyExists("there is one")
        if ours:
            self.writes.append(f"create {resource.kind} {name}")
        else:
            self.writes.append(f"create {name} suspend={body['spec'].get('suspend')}")
        return self.put(resource, {**body, "metadata": {**body["metadata"], "uid": f"{name}-uid"}})

    def apply(self, resource: Resource, body: Mapping[str, Any], **_: Any) -> Body:
        self.requests.append(f"PATCH {resource.plural}")
        name = body["metadata"]["name"]
        old = self.objects.get((resource, name))
        if body["metadata"].get("uid") and (old is None or old["metadata"]["uid"] != body["metadata"]["uid"]):
            raise Conflict("another uid")
        new = copy.deepcopy(old) if old else {**body, "metadata": {**body["metadata"], "uid": f"{name}-uid"}}
        spec, annotations = body.get("spec") or {}, body["metadata"].get("annotations") or {}
        self.writes.append(f"apply {name} {spec or annotations}")
        fields = {"f:spec": {f"f:{key}": {} for key in spec}}
        owned = [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}]
        about = {**new["metadata"], "annotations": annotations, "managedFields": owned}
        return self.put(resource, {**new, "metadata": about, "spec": {**new.get("spec", {}), **spec}})

    def replace(self, resource: Resource, body: Mapping[str, Any]) -> Body:
        name = body["metadata"]["name"]
        if body["metadata"]["resourceVersion"] != self.objects[resource, name]["metadata"]["resourceVersion"]:
            raise Conflict("another version")
        self.writes.append(f"replace {resource.kind} {name}")
        return self.put(resource, body)

    def delete(self, resource: Resource, name: str, namespace: str | None = None, **conditions: Any) -> None:
        self.requests.append(f"DELETE {resource.plural}")
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
        self.traced: list[tuple[str, int | None, tuple[str, ...]]] = []
        self.answers: dict[str, str] = {}

    def request_trace(
        self, addresses: Any, token: str, request_id: str, rank: int | None, read: Any
    ) -> Outcomes[str, Any]:
        names = tuple(name for name, _ in addresses)
        self.traced.append((request_id, rank, names))
        answers = {name: read(self.answers[name]) for name in names if name in self.answers}
        return Outcomes(answers, {name: "silent" for name in names if name not in answers}, [])

    def request_checkpoint(self, addresses: Any, token: str, request_id: str) -> dict[str, str]:
        self.asked.append(tuple(addresses))
        return self.problems


class World:
    """A job whose status has r1, and an executor that is leader by default."""

    def __init__(self) -> None:
        self.cluster, self.store, self.sidecars = Cluster(), Store(), Sidecars()
        self.leader = True
        self.transitions = 0
        self.clock = 0.0
        self.fence = Fence(self.cluster, self)
        children = Children("profiler:1", b"k" * 32)
        cluster: Any = self.cluster
        self.executor = Executor(
            cluster,
            self.store,
            self.fence,
            children,
            Admissions(cluster, self.fence, self.store, children, clock=lambda: self.clock, on=False),
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
        workload = ProfiledJobSpec.model_validate(profiled_job()["spec"]).workload
        made_of = workload_hash(pod_sets_of(workload))
        self.ref = Revision(1, Placement("a10g", 4, 1), made_of, 4, 1, 1.7e9, cost_per_hour=4.0)

    def persist(
        self,
        migration: Migration | None = None,
        pause: Pause | None = None,
        rescue: Rescue | None = None,
        trace: Trace | None = None,
        **spec: Any,
    ) -> Job:
        body = profiled_job(**spec)
        self.cluster.put(PROFILED_JOBS, body)
        if "workload" in spec:  # of another template than r1 was made of before
            self.ref = replace(self.ref, workload_hash=self.read().workload_hash)
        job = changed(self.read(), revision=self.ref, migration=migration, pause=pause, rescue=rescue)
        job = job.with_state(replace(job.state, trace=trace))
        body = self.cluster.objects[PROFILED_JOBS, "bert"]
        body["status"] = ProfiledJobStatus(state=job.state).to_dict()
        self.cluster.put(PROFILED_JOBS, body)
        return self.read()

    def read(self) -> Job:
        body = self.cluster.get(PROFILED_JOBS, "bert")
        self.store.observe(PROFILED_JOBS, "MODIFIED", body)
        job = read_job(body).job
        checked = self.executor.checks.template_checked(job)
        return changed(job, revisions=self.store.revisions(job.key, job.uid), template_checked=checked)

    def held_for(self, seconds: float) -> bool:
        return self.leader

    def run(self, job: Job, term: int | None = None) -> list[str]:
        """The writes of one cycle. term: where the status of `job` was written in it."""
        self.cluster.writes.clear()
        self.cluster.requests.clear()
        for command in commands(job):
            if self.executor.needed(job, command):
                self.executor.carry_out(job, command, self.pools, term)
        return self.cluster.writes


def migration(world: World, phase: Phase) -> Migration:
    target = replace(world.ref, revision=2)
    return Migration("d-2", Action.UPDATE, phase, world.ref, target, 1.7e9, 1.7e9, Reason.UPDATING, "")
