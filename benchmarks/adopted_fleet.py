"""Jobs of the synthetic fleet whose objects somebody else has made: each runs as it would otherwise, and is adopted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from benchmarks.synthetic_fleet import Body, SyntheticJob
from rightpool.api.account import Account
from rightpool.api.adopted_object import AdoptedObject
from rightpool.api.kubernetes import JOBS
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.status import ProfiledJobStatus
from rightpool.contract import ANNOTATION_ADOPTED_BY, LABEL_JOB, LABEL_REVISION, SIDECAR_CONTAINER
from rightpool.hardware.pool import Pool
from rightpool.workloads.kinds.registry import KINDS, adopted_workload, pod_sets_of
from rightpool.workloads.names import workload_hash

EVERY: Final = 3
_UID: Final = "batch.kubernetes.io/controller-uid"
_READY: Final = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}


class Adoption(NamedTuple):
    """A job whose object is adopted, and the pool that it runs in."""

    member: SyntheticJob
    """Of the fleet."""
    pool: Pool
    """That of its node."""

    def object(self) -> Body:
        """The Job, as its user has made it."""
        key, pool = self.member.key, self.pool
        resources = {"limits": {pool.resource_name: str(self.member.chips)}}
        container = {"name": "trainer", "image": "example.com/trainer:1", "resources": resources}
        spec = {
            "nodeSelector": dict(pool.node_selector),
            "tolerations": [dict(one) for one in pool.tolerations],
            "restartPolicy": "Never",
            "containers": [container],
        }
        size = {"parallelism": 1, "completions": 1, "completionMode": "Indexed"}
        about = {"name": key.name, "namespace": key.namespace}
        return {"metadata": about, "spec": {**size, "template": {"spec": spec}}, "status": {"active": 1}}

    def profiled_job(self) -> Body:
        """The ProfiledJob that names it."""
        body = self.member.profiled_job()
        spec = {name: value for name, value in body["spec"].items() if name != "workload"}
        ref = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": self.member.key.name}
        return {**body, "spec": {**spec, "workloadRef": ref, "adoption": {"change": "Suspend"}}}

    def status(self, stored: Body, now: float) -> Body:
        """The part of the status that the operator reads back. stored: the object."""
        digest = workload_hash(pod_sets_of(adopted_workload(KINDS["job"], stored)))
        chips, pool = self.member.chips, self.pool
        placement = Placement(pool.name, chips, 1)
        began, hourly = now - 3600.0, pool.price.hourly(placement)
        ref = Revision(1, placement, digest, chips, 1, began, hourly, began, generation=1, chip=pool.accelerator.key)
        account = Account().started(hourly, began)
        state = JobState(revision=ref, adopted=AdoptedObject(stored["metadata"]["uid"]), account=account)
        return ProfiledJobStatus(observed_generation=1, state=state).to_dict()

    def marked(self, stored: Body, job: Body) -> Body:
        """The object, once the operator has marked it. job: the ProfiledJob."""
        about = {**stored["metadata"], "labels": {LABEL_JOB: self.member.key.name}, "generation": 1}
        return {**stored, "metadata": {**about, "annotations": {ANNOTATION_ADOPTED_BY: job["metadata"]["uid"]}}}


def pods(selector: str | None, pools: Mapping[str, Pool]) -> Iterator[Body]:
    """The pods that a selector of members asks for, with the profiler."""
    named = re.search(rf"{re.escape(_UID)} in \((.*)\)", selector or "")
    for uid in () if named is None else named[1].split(","):
        member = SyntheticJob(int(uid.rpartition("-")[2]))
        yield _pod(Adoption(member, member.pool(pools)), uid)


def _pod(adoption: Adoption, uid: str) -> Body:
    key, spec = adoption.member.key, adoption.object()["spec"]["template"]["spec"]
    owner = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": key.name, "uid": uid, "controller": True}
    about = {
        "name": f"{key.name}-0",
        "namespace": key.namespace,
        "uid": f"pod-{uid}",
        "resourceVersion": "1",
        "labels": {_UID: uid, LABEL_JOB: key.name, LABEL_REVISION: "1"},
        "ownerReferences": [owner],
    }
    profiler = [{"name": SIDECAR_CONTAINER, "image": "rightpool-profiler:dev"}]
    return {
        "metadata": about,
        "spec": {**spec, "nodeName": adoption.member.node, "initContainers": profiler},
        "status": _READY,
    }
