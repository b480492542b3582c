"""JobSets in a queue of Kueue: admitted with all roles, moved to another flavor, preempted, and suspended."""

from __future__ import annotations

import pytest

from rightpool.workloads.kinds.job_set import JOB_SETS
from rightpool.workloads.names import LABEL_QUEUE
from tests.integration.faults.fleet import A10G, A100, NODE_LABEL, Tenant
from tests.integration.faults.site import Site
from tests.integration.kinds.test_job_set import job_sets, pods_of, role, train
from tests.integration.kueue.queues import QUEUE, Queues
from tests.integration.kueue.test_queues import Suspensions, delete, runs, stay, urgent, waits
from tests.patience import eventually

pytestmark = pytest.mark.cluster


def wrapped(tenant: Tenant, name: str) -> None:
    train(tenant, name, role("leader", 1), role("workers", 2), placement=stay(A100), queueName=QUEUE)


def test_it_is_admitted_moves_to_another_flavor_and_is_preempted(site: Site, tenant: Tenant, queues: Queues) -> None:
    queues.quota(faults_a100=2, faults_a10g=2)
    suspensions = Suspensions(site)
    site.operate()
    wrapped(tenant, "llm")
    eventually(lambda: runs(tenant, "llm", 1), "it is admitted and runs")
    child = job_sets(tenant)["llm-r1"]
    assert child["metadata"]["labels"][LABEL_QUEUE] == QUEUE
    counts = {pods["name"]: pods["count"] for pods in queues.workload(child)["spec"]["podSets"]}
    assert counts == {"leader": 1, "workers": 2} and queues.used(A100) == 2
    eventually(lambda: tenant.condition("llm", "Profiled").get("status") == "True", "it is measured")

    tenant.edit("llm", lambda spec: spec["placement"].update(pools={"allow": [A100, A10G]}))
    eventually(lambda: tenant.outcomes("llm") == ["Verified"] and runs(tenant, "llm", 2, A10G), "it has moved")
    eventually(lambda: (queues.used(A100), queues.used(A10G)) == (0, 2), "the quota that was left is free")
    assert {pod["spec"]["nodeSelector"][NODE_LABEL] for pod in pods_of(tenant, "llm", "workers")} == {A10G}

    urgent(tenant, "boss", A10G)
    eventually(lambda: runs(tenant, "boss", 1, A10G), "Kueue has preempted it")
    eventually(lambda: waits(tenant, "llm", "has not admitted it again yet") and not tenant.pods("llm"), "it waits")
    delete(tenant, "boss")
    eventually(lambda: runs(tenant, "llm", 2, A10G) and len(tenant.pods("llm")) == 3, "it goes on where it was")
    assert suspensions.of("llm-r1") == [True, False]
    assert suspensions.of("llm-r2") == [True, False, True, False], "Kueue alone has stopped and started it"
    assert list(job_sets(tenant)) == ["llm-r2"]


def test_a_user_suspends_it(site: Site, tenant: Tenant, queues: Queues) -> None:
    queues.quota(faults_a100=2)
    suspensions = Suspensions(site)
    site.operate()
    wrapped(tenant, "llm")
    eventually(lambda: runs(tenant, "llm", 1))
    tenant.edit("llm", lambda spec: spec.update(suspend=True))
    eventually(lambda: tenant.condition("llm", "Placed").get("reason") == "Suspended" and not tenant.pods("llm"))
    eventually(lambda: queues.used(A100) == 0, "its quota is free")
    tenant.edit("llm", lambda spec: spec.update(suspend=False))
    eventually(lambda: runs(tenant, "llm", 1), "it goes on")
    assert suspensions.of("llm-r1") == [True, False, True, False], "nobody resumes it meanwhile"


def test_a_move_is_preempted_in_the_middle_and_ends_well(site: Site, tenant: Tenant, queues: Queues) -> None:
    queues.quota(faults_a100=2, faults_a10g=2)
    site.operate()
    wrapped(tenant, "llm")
    eventually(lambda: runs(tenant, "llm", 1))
    urgent(tenant, "boss", A10G)  # has one of the two chips that the move needs
    eventually(lambda: runs(tenant, "boss", 1, A10G))
    tenant.edit("llm", lambda spec: spec["placement"].update(pools={"allow": [A100, A10G]}))
    admitted = "has not admitted it yet"
    eventually(lambda: tenant.phase("llm") == "Starting" and waits(tenant, "llm", admitted), "it waits")
    assert tenant.client.get(JOB_SETS, "llm-r2", tenant.namespace)["spec"]["suspend"] is True
    delete(tenant, "boss")
    eventually(lambda: tenant.outcomes("llm") == ["Verified"] and runs(tenant, "llm", 2, A10G), "it has moved")
