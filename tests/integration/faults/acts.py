"""What is done to a job from outside: by its user, its program, its nodes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.errors import ClusterError, NotFound
from rightpool.cluster.resources import NODES, PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB
from tests.integration.faults.fleet import Body, Tenant, new_image
from tests.patience import eventually

INDEX: Final = "batch.kubernetes.io/job-completion-index"


def persistently(act: Callable[[], bool]) -> None:
    """Again until it is done: there may be nothing to do it to yet, or somebody else is faster."""

    def done() -> bool:
        try:
            return act()
        except ClusterError:
            return False

    eventually(done, f"{act} is done", longest=0.05)


def edit(tenant: Tenant, name: str) -> None:
    tenant.edit(name, new_image)


def suspend(tenant: Tenant, name: str) -> None:
    tenant.edit(name, lambda spec: spec.update(suspend=True))


def delete(tenant: Tenant, name: str) -> None:
    tenant.client.delete(PROFILED_JOBS, name, tenant.namespace, propagation="Background")


def finish(tenant: Tenant, name: str) -> None:
    """The program of a pod that runs comes to its end."""

    def end() -> bool:
        running = [pod for pod in tenant.pods(name) if pod["status"].get("phase") == "Running"]
        for pod in running:
            complete(tenant, pod)
        return bool(running)

    persistently(end)


def complete(tenant: Tenant, pod: Body) -> None:
    """The program of this pod, which runs, comes to its end."""
    over = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    containers = [{**c, "ready": False, "state": over} for c in pod["status"]["containerStatuses"]]
    pod["status"].update(phase="Succeeded", containerStatuses=containers)
    path = PODS.path(tenant.namespace, pod["metadata"]["name"], "status")
    tenant.client.request("PUT", path, body={**pod, "apiVersion": "v1", "kind": "Pod"})


def fail(tenant: Tenant, name: str) -> None:
    """The whole Job fails, as it does when its pods have failed too often."""

    def end() -> bool:
        children = tenant.client.list_all(JOBS, tenant.namespace, labels=f"{LABEL_JOB}={name}")
        for child in children:
            child["spec"]["activeDeadlineSeconds"] = 1
            tenant.client.replace(JOBS, child)
        return bool(children)

    persistently(end)


def evict(tenant: Tenant, name: str) -> None:
    """As a drained node does it."""
    evict_some(tenant, name, lambda pod: True)


def evict_one(tenant: Tenant, name: str, index: int) -> None:
    """The pod of this index alone."""
    evict_some(tenant, name, lambda pod: pod["metadata"]["labels"][INDEX] == str(index))


def evict_some(tenant: Tenant, name: str, chosen: Callable[[Body], bool]) -> None:

    def go() -> bool:
        pods = [pod for pod in tenant.pods(name) if chosen(pod)]
        for pod in pods:
            about = {"name": pod["metadata"]["name"], "namespace": tenant.namespace}
            path = PODS.path(tenant.namespace, about["name"], "eviction")
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
            tenant.client.request("POST", path, body=body)
        return bool(pods)

    persistently(go)


def crash(tenant: Tenant, name: str, index: int) -> None:
    """The program of this pod fails, and its kubelet says so."""
    ended = {"exitCode": 1, "reason": "Error", "finishedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}

    def go() -> bool:
        for pod in tenant.pods(name):
            if pod["metadata"]["labels"][INDEX] != str(index):
                continue
            found = [
                {**one, "ready": False, "state": {"terminated": ended}} for one in pod["status"]["containerStatuses"]
            ]
            pod["status"].update(phase="Failed", containerStatuses=found)
            path = PODS.path(tenant.namespace, pod["metadata"]["name"], "status")
            tenant.client.request("PUT", path, body={**pod, "apiVersion": "v1", "kind": "Pod"})
            return True
        return False

    persistently(go)


def cordon(tenant: Tenant, node: str, *, unschedulable: bool = True) -> None:
    """As `kubectl cordon` and `uncordon` do it."""

    def go() -> bool:
        body = tenant.client.get(NODES, node)
        body["spec"]["unschedulable"] = unschedulable
        tenant.client.replace(NODES, {**body, "apiVersion": "v1", "kind": "Node"})
        return True

    persistently(go)


def collect(tenant: Tenant, pod: Body) -> None:
    """A pod goes the way in which Kubernetes' pod collector ends it some 50 s after its node is gone."""
    path = PODS.path(tenant.namespace, pod["metadata"]["name"])

    def go() -> bool:
        try:
            found = tenant.client.request("GET", path)
            if found["metadata"]["uid"] != pod["metadata"]["uid"]:
                return True
            others = [c for c in found["status"].get("conditions") or () if c["type"] != "DisruptionTarget"]
            conditions = [*others, {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]
            found["status"].update(phase="Failed", conditions=conditions)
            tenant.client.request("PUT", f"{path}/status", body={**found, "apiVersion": "v1", "kind": "Pod"})
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
            tenant.client.request("DELETE", path, body=options)
        except NotFound:
            pass
        return True

    persistently(go)


def lose_node(tenant: Tenant, name: str) -> None:
    """The node of a job's pod is deleted, and what ran there with it."""
    (pod,) = [pod for pod in tenant.pods(name) if pod["status"].get("phase") == "Running"]
    tenant.client.delete(NODES, pod["spec"]["nodeName"])
    collect(tenant, pod)
