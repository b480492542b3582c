"""Jobs in a queue of Kueue: they wait, run, are preempted, move, and are stopped by their users."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rightpool.cluster.resources import EVENTS, PROFILED_JOBS
from rightpool.workloads.kinds.registry import child_resources
from rightpool.workloads.names import LABEL_QUEUE
from tests.chaos.stream import StreamEvent
from tests.integration.faults.fleet import A10G, A100, SIMULATION, Body, Tenant
from tests.integration.faults.site import Site
from tests.integration.kueue.queues import HIGH, QUEUE, Queues
from tests.integration.runtime.harness import ROOT
from tests.patience import eventually

pytestmark = pytest.mark.cluster


def stay(pool: str) -> Body:
    return {"pools": {"allow": [pool]}}


class Suspensions:
    """How `spec.suspend` of each child changes, by its name."""

    def __init__(self, site: Site) -> None:
        self._seen: dict[str, list[bool]] = {}
        site.namespace_watch.listen(site.namespace, self._observe)

    def _observe(self, event: StreamEvent) -> None:
        if event.resource in child_resources() and event.kind != "DELETED":
            seen = self._seen.setdefault(event.body["metadata"]["name"], [])
            now = bool(event.body["spec"].get("suspend"))
            if seen[-1:] != [now]:
                seen.append(now)

    def of(self, child: str) -> list[bool]:
        return list(self._seen.get(child, ()))


def train(tenant: Tenant, name: str, **spec: Any) -> None:
    tenant.train(name, queueName=QUEUE, **spec)


def urgent(tenant: Tenant, name: str, pool: str) -> None:
    """A job that Kueue preempts others for."""
    container = {"name": "trainer", "image": "example.com/trainer:1"}
    about = {
        "labels": {"kueue.x-k8s.io/priority-class": HIGH},
        "annotations": {SIMULATION + "workload": "resnet50", SIMULATION + "warm-up": "0s"},
    }
    template = {"metadata": about, "spec": {"containers": [container]}}
    train(tenant, name, placement=stay(pool), template=template)


def delete(tenant: Tenant, name: str) -> None:
    tenant.client.delete(PROFILED_JOBS, name, tenant.namespace)


def waits(tenant: Tenant, name: str, text: str) -> bool:
    placed = tenant.condition(name, "Placed")
    return placed.get("reason") == "WaitingForQuota" and f"queue {QUEUE} {text}" in placed["message"]


def runs(tenant: Tenant, name: str, revision: int, pool: str = A100) -> bool:
    placement = tenant.status(name).get("placement") or {}
    return tenant.settled(name) and (placement["revision"], placement["pool"]) == (revision, pool)


def spent(tenant: Tenant, name: str) -> float:
    return float(tenant.status(name)["cost"]["spent"])


def events(tenant: Tenant, name: str) -> set[str]:
    found = tenant.client.list_all(EVENTS, tenant.namespace)
    return {event["reason"] for event in found if event["involvedObject"]["name"] == name}


def explained(kubeconfig: Path, tenant: Tenant, name: str) -> str:
    command = [sys.executable, "-m", "rightpool.cli.main", "explain", name, "-n", tenant.namespace]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_a_job_waits_for_quota_and_is_preempted(site: Site, tenant: Tenant, queues: Queues, kubeconfig: Path) -> None:
    queues.quota(faults_a100=1)
    suspensions = Suspensions(site)
    site.operate()
    train(tenant, "one", placement=stay(A100), play={"stop-delay": "5s"})
    eventually(lambda: runs(tenant, "one", 1), "it is admitted and runs")
    eventually(lambda: tenant.condition("one", "Profiled").get("status") == "True", "it is measured")

    train(tenant, "two", placement=stay(A100))
    eventually(lambda: waits(tenant, "two", "has not admitted it yet"), "it waits for quota")
    eventually(lambda: tenant.condition("two", "Migrating").get("reason") == "WaitingForQuota")
    assert "cost" not in tenant.status("two") and not tenant.pods("two")
    text = explained(kubeconfig, tenant, "two")
    assert f"the job waits for quota of queue {QUEUE}" in text and "has not admitted it yet" in text, text

    urgent(tenant, "boss", A100)
    eventually(lambda: runs(tenant, "boss", 1), "Kueue has preempted the other")
    eventually(lambda: waits(tenant, "one", "has not admitted it again yet"), "it waits again")
    eventually(lambda: {"SaveRequested", "Saved"} <= events(tenant, "one"), "it has saved in its grace period")
    eventually(lambda: not tenant.uids("one") and "chips" not in tenant.status("one")["cost"], "holds no chips")
    before = spent(tenant, "one")
    eventually(lambda: tenant.condition("boss", "Profiled").get("status") == "True", "some cycles later")
    assert spent(tenant, "one") == before, "what waits costs nothing"
    delete(tenant, "boss")
    eventually(lambda: queues.used(A100) == 1 and runs(tenant, "one", 1), "it goes on where it was")
    status = tenant.status("one")
    assert status["ledgerCount"] == 1 and not status.get("history") and not status.get("migration")
    assert "CrashLoop" not in events(tenant, "one") and tenant.condition("one", "Degraded")["status"] == "False"
    assert suspensions.of("one-r1") == [True, False, True, False], "Kueue alone has stopped and started it"
    assert suspensions.of("two-r1") == [True]


def test_a_user_suspends_a_job_in_a_queue(site: Site, tenant: Tenant, queues: Queues) -> None:
    queues.quota(faults_a100=1)
    suspensions = Suspensions(site)
    site.operate()
    train(tenant, "one", placement=stay(A100))
    eventually(lambda: runs(tenant, "one", 1))
    train(tenant, "two", placement=stay(A100))
    eventually(lambda: waits(tenant, "two", "has not admitted it yet"))
    tenant.edit("one", lambda spec: spec.update(suspend=True))
    eventually(lambda: runs(tenant, "two", 1), "its quota is another's")
    eventually(lambda: tenant.condition("one", "Placed").get("reason") == "Suspended")
    eventually(lambda: tenant.condition("two", "Profiled").get("status") == "True", "some cycles later")
    assert suspensions.of("one-r1") == [True, False, True], "nobody resumes it"
    tenant.edit("one", lambda spec: spec.update(suspend=False))
    eventually(lambda: waits(tenant, "one", "has not admitted it again yet"), "it queues again")
    delete(tenant, "two")
    eventually(lambda: runs(tenant, "one", 1), "it runs on")
    assert suspensions.of("one-r1") == [True, False, True, False]


def test_a_move_is_admitted_anew(site: Site, tenant: Tenant, queues: Queues) -> None:
    queues.quota(faults_a100=1, faults_a10g=1)
    suspensions = Suspensions(site)
    site.operate()
    train(tenant, "one")
    eventually(lambda: tenant.outcomes("one") == ["Verified"], "it has moved")
    child = tenant.child("one-r2")
    assert child is not None and child["metadata"]["labels"][LABEL_QUEUE] == QUEUE
    assert suspensions.of("one-r2") == [True, False], "created suspended, and started by Kueue"
    eventually(lambda: (queues.used(A100), queues.used(A10G)) == (0, 1), "the quota that was left is free")
    tenant.only_child("one")


def test_a_target_without_quota_is_left_again(
    site: Site, tenant: Tenant, queues: Queues, impatient: Callable[[], None]
) -> None:
    queues.quota(faults_a100=1, faults_a10g=0)
    site.operate()
    train(tenant, "one")
    eventually(lambda: tenant.settled("one"))
    train(tenant, "next", placement=stay(A100))
    eventually(lambda: tenant.phase("one") == "Starting" and waits(tenant, "one", "has not admitted it yet"))
    eventually(lambda: runs(tenant, "next", 1), "the quota that it has left is another's")
    impatient()
    back = "its quota is gone, and it waits for it as long as it takes"
    eventually(lambda: tenant.child("one-r3") and waits(tenant, "one", "has not admitted it yet"), back)
    assert tenant.condition("one", "Migrating")["reason"] == "RollingBack"
    delete(tenant, "next")
    eventually(lambda: tenant.outcomes("one") and runs(tenant, "one", 3), "it is back")
    entry = tenant.status("one")["history"][-1]
    assert (entry["outcome"], entry["reason"]) == ("RolledBack", "StartPrevented")
    assert f"queue {QUEUE} has not admitted it" in entry["message"]
    assert queues.used(A100) == 1
    tenant.only_child("one")


def test_a_job_is_preempted_before_its_move_is_judged(site: Site, tenant: Tenant, queues: Queues) -> None:
    queues.quota(faults_a100=1, faults_a10g=1)
    site.operate()
    train(tenant, "one", profiling={"interval": "1s", "window": "15s"})
    eventually(lambda: tenant.phase("one") in ("WarmingUp", "Verifying"), "it has moved", longest=0.1)
    urgent(tenant, "boss", A10G)
    eventually(lambda: waits(tenant, "one", "has not admitted it again yet"), "it is preempted")
    assert tenant.phase("one") in ("WarmingUp", "Verifying")
    delete(tenant, "boss")
    eventually(lambda: tenant.outcomes("one") == ["Verified"] and runs(tenant, "one", 2, A10G), "judged")


def test_a_gang_is_admitted_whole(site: Site, tenant: Tenant, queues: Queues) -> None:
    """Kueue would start it with fewer pods where the Job has this annotation; its gang would never be complete."""
    queues.quota(faults_a100=1)
    site.operate()
    least = "kueue.x-k8s.io/job-min-parallelism"
    container = {"name": "trainer", "image": "example.com/trainer:1"}
    template = {"metadata": {"annotations": {least: "1"}}, "spec": {"containers": [container]}}
    train(tenant, "pair", replicas=2, placement=stay(A100), template=template)
    eventually(lambda: waits(tenant, "pair", "has not admitted it yet"))
    train(tenant, "one", placement=stay(A100))
    eventually(lambda: runs(tenant, "one", 1), "the quota is enough for one pod")
    child = tenant.child("pair-r1")
    assert child is not None and child["spec"]["suspend"] and least not in child["metadata"].get("annotations", {})
    (pods,) = queues.workload(child)["spec"]["podSets"]
    assert pods["count"] == 2 and "minCount" not in pods
    queues.quota(faults_a100=3)
    eventually(lambda: runs(tenant, "pair", 1), "both are admitted")
