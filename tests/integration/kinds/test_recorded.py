"""What the real controllers make of each kind of workload, as tests/unit/workloads/kinds/recorded has it."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from rightpool.cluster.errors import NotFound
from rightpool.workloads.kinds.registry import KINDS
from rightpool.workloads.kinds.train_job import RUNTIMES
from tests.integration.faults.acts import finish
from tests.integration.faults.fleet import A100, SIMULATION, Body, Tenant
from tests.integration.faults.site import Site
from tests.integration.kinds.conftest import INSTALLED
from tests.integration.kinds.test_job_set import TOLERATION
from tests.patience import eventually
from tests.unit.workloads.kinds.test_contract import ENDLESS, RECORDED, SERVES

pytestmark = pytest.mark.cluster

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_REVISION = re.compile("revision-hash$")
_HASH = re.compile(r"\b[0-9a-f]{40}\b")
_REPLICA_SET = re.compile(r'(ReplicaSet \\"[\w-]+-)\w+(?=\\")')  # differs with the operator's version, too
_STATUS = ("startTime", "restarts", "restartsCountTowardsMax", "terminalState")
_ABOUT = ("name", "namespace", "uid", "creationTimestamp", "labels", "ownerReferences")
_OURS = (SIMULATION, "karpenter.sh/", "cluster-autoscaler.kubernetes.io/")


def pod(**play: str) -> Body:
    annotations = {SIMULATION + key: value for key, value in {"workload": "resnet50", **play}.items()}
    spec = {"containers": [{"name": "main", "image": "example.com/trainer:1"}], "tolerations": [TOLERATION]}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def ready(template: Body) -> Body:
    template["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 8000}}
    return template


def workloads(**play: str) -> dict[str, Body]:
    """Of each kind one with two pods that train, and which fails with the first of them."""

    def role(name: str, pods: int, **play: str) -> Body:
        spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": pod(**play)}
        return {"name": name, "template": {"spec": spec}}

    template = {"replicatedJobs": [role("leader", 1), role("workers", 2, **play)]}
    reference = {"kind": RUNTIMES.kind, "name": "failing" if play else "running"}
    group = {"size": 2, "workerTemplate": pod(**play)}
    return {
        "job": {"chipsPerReplica": 1, "replicas": 2, "backoffLimit": 0, "template": pod(**play)},
        "jobSet": {"chipsPerReplica": 1, "role": "workers", "template": template},
        "trainJob": {"chipsPerReplica": 1, "template": {"runtimeRef": reference, "trainer": {"numNodes": 2}}},
        "leaderWorkerSet": {"chipsPerReplica": 1, "template": {"leaderWorkerTemplate": group}},
        "server": {"port": 8000, "replicas": {"min": 2}, "template": ready(pod(**play))},
    }


def original(**play: str) -> Body:
    """The spec of what a TrainJob's companion is made of."""
    trainer = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    steps: list[Body] = []
    for name, labels, own in (("logs", {}, {}), ("node", trainer, play)):
        template = pod(**own)
        template["spec"]["containers"][0]["name"] = name
        job = {"metadata": {"labels": labels}, "spec": {"backoffLimit": 0, "template": template}}
        steps.append({"name": name, "template": job})
    return {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": steps}}}


class Recorder:
    """Objects without what differs from run to run, and without what the operator or kwok puts into pods."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._uids: dict[str, str] = {}

    def child(self, body: Body) -> Body:
        """Conditions that are not so may never have been, as one that it was suspended."""
        found = body.get("status") or {}
        status = {key: value for key, value in found.items() if key in _STATUS}
        conditions = (c for c in found.get("conditions") or () if c["status"] == "True")
        status["conditions"] = sorted(conditions, key=lambda c: str(c["type"]))  # controllers race for their order
        return self._plain({**self._slim(body), "metadata": self._about(body), "status": status})

    def pod(self, body: Body) -> Body:
        about, spec = self._about(body), body["spec"]
        if about["name"] != spec.get("hostname"):
            about["name"] = about["name"][:-5] + "xxxxx"
        for label in filter(_REVISION.search, about["labels"]):  # differs with the namespace, too
            about["labels"][label] = "0" * 10
        digest = about["labels"].get("pod-template-hash")
        if digest is not None:  # which differs with the operator's version
            about = json.loads(json.dumps(about).replace(digest, "0" * 10))
        main = spec["containers"][0]
        env = {variable["name"]: variable.get("value") for variable in main.get("env") or ()}
        leader = env.get("MASTER_ADDR")
        for name, value in env.items():  # as Kubernetes does
            leader = leader and leader.replace(f"$({name})", value or "")
        kept = {"hostname": spec.get("hostname"), "subdomain": spec.get("subdomain"), "leader": leader}
        return self._plain({"metadata": about, "spec": kept})

    def _about(self, body: Body) -> Body:
        about = body["metadata"]
        annotations = {k: v for k, v in (about.get("annotations") or {}).items() if not k.startswith(_OURS)}
        kept = {key: about[key] for key in _ABOUT if key in about}
        return {**kept, "annotations": annotations}

    def _slim(self, value: Any) -> Any:
        """Pod templates with their labels alone."""
        if isinstance(value, list):
            return [self._slim(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "containers" in (value.get("spec") or {}):
            return {"metadata": {"labels": value["metadata"]["labels"]}}
        return {key: self._slim(item) for key, item in value.items()}

    def _plain(self, body: Body) -> Body:
        text = json.dumps(body).replace(self._namespace, "research")
        text = _UID.sub(lambda uid: self._uids.setdefault(uid[0], f"uid-{len(self._uids) + 1}"), text)
        text = _REPLICA_SET.sub(rf"\g<1>{'0' * 10}", text)
        text = _HASH.sub("0" * 40, _TIME.sub("2026-01-01T00:00:00Z", text))
        plain: Body = json.loads(text)
        return plain


def record(tenant: Tenant, field: str) -> Body:
    """One that runs, is suspended, goes on and completes; and one that fails."""
    recorder, resource = Recorder(tenant.namespace), KINDS[field].resource

    def create(name: str, workload: Body) -> None:
        placement = {"pools": {"allow": [A100]}}
        checkpoint = {} if field in SERVES else {"mode": "None"}
        tenant.create(name, workload={field: workload}, elasticity={}, placement=placement, checkpoint=checkpoint)

    def child(name: str) -> Body:
        return tenant.client.get(resource, f"{name}-r1", tenant.namespace)

    def condition(name: str, kind: str) -> bool:
        try:
            conditions = (child(name).get("status") or {}).get("conditions") or ()
        except NotFound:
            return False
        return any(c["type"] == kind and c["status"] == "True" for c in conditions)

    seen: Body = {"workload": workloads()[field]}
    failing = {"duration": "1s", "exit-code": "3"}
    if KINDS[field].companion is not None:
        seen["original"] = {"spec": original()}
        for name, spec in (("running", original()), ("failing", original(**failing))):
            tenant.client.create(RUNTIMES, {"metadata": {"name": name, "namespace": tenant.namespace}, "spec": spec})
    create("one", seen["workload"])
    eventually(lambda: tenant.settled("one"), "it runs")
    seen["running"] = recorder.child(child("one"))
    seen["pods"] = sorted(map(recorder.pod, tenant.pods("one")), key=lambda pod: str(pod["spec"]["hostname"] or ""))
    tenant.edit("one", lambda spec: spec.update(suspend=True))
    stopped = (lambda: True) if field in ENDLESS else lambda: condition("one", "Suspended")
    eventually(lambda: stopped() and not tenant.pods("one"), "it is suspended")
    seen["suspended"] = recorder.child(child("one"))
    if field in ENDLESS:
        return seen
    tenant.edit("one", lambda spec: spec.update(suspend=False))
    eventually(lambda: tenant.settled("one"), "it goes on")
    finish(tenant, "one")
    eventually(lambda: tenant.condition("one", "Completed").get("status") == "True", "it has completed")
    seen["completed"] = recorder.child(child("one"))
    create("two", workloads(**failing)[field])
    eventually(lambda: condition("two", "Failed"), "it has failed")
    seen["failed"] = recorder.child(child("two"))
    return seen


@pytest.mark.parametrize("field", KINDS)
def test_objects_are_as_recorded(request: Any, site: Site, tenant: Tenant, field: str) -> None:
    if field in INSTALLED:
        request.getfixturevalue(INSTALLED[field])
    site.operate()
    seen, path = record(tenant, field), RECORDED / f"{field}.json"
    if os.environ.get("RIGHTPOOL_WRITE_RECORDED"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
    assert seen == json.loads(path.read_text()), "if this is meant: RIGHTPOOL_WRITE_RECORDED=1"
