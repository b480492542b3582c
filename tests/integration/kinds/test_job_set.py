"""A JobSet of a leader and workers, by JobSet's own controller."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cluster.resources import SERVICES
from rightpool.contract import LABEL_JOB, LABEL_ROLE, SIDECAR_CONTAINER
from rightpool.workloads.kinds.job_set import JOB_SETS
from tests.integration.faults.acts import finish
from tests.integration.faults.fleet import A10G, A100, NODE_LABEL, SIMULATION, Body, Tenant
from tests.integration.faults.site import Site
from tests.patience import eventually

pytestmark = pytest.mark.cluster

PLAY = {"workload": "resnet50", "warm-up": "0s", "checkpoint-delay": "300ms", "stop-delay": "200ms"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}  # the leader runs beside the workers


def role(name: str, pods: int, **container: Any) -> Body:
    annotations = {SIMULATION + key: value for key, value in PLAY.items()}
    containers = [{"name": "main", "image": "example.com/trainer:1", **container}]
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": containers, "tolerations": [TOLERATION]}}
    return {"name": name, "template": {"spec": {"parallelism": pods, "completions": pods, "template": pod}}}


def train(tenant: Tenant, name: str, *roles: Body, **spec: Any) -> None:
    job_set = {"role": "workers", "template": {"replicatedJobs": [*roles]}}
    tenant.create(
        name,
        **{
            "workload": {"jobSet": job_set},
            "elasticity": {},
            "placement": {"pools": {"allow": [A100, A10G]}},
            "checkpoint": {"mode": "Signal", "timeout": "10m"},
            "profiling": {"interval": "1s", "window": "6s"},
            "adaptation": {"cooldown": "1h"},
            **spec,
        },
    )


def job_sets(tenant: Tenant) -> dict[str, Body]:
    return {body["metadata"]["name"]: body for body in tenant.client.list_all(JOB_SETS, tenant.namespace)}


def pods_of(tenant: Tenant, name: str, of: str) -> list[Body]:
    return [pod for pod in tenant.pods(name) if pod["metadata"]["labels"][LABEL_ROLE] == of]


def services(tenant: Tenant, **labels: str) -> list[str]:
    return [body["metadata"]["name"] for body in tenant.client.list_all(SERVICES, tenant.namespace, **labels)]


def test_a_leader_and_workers_run_are_profiled_move_and_complete(site: Site, tenant: Tenant) -> None:
    site.operate()
    train(tenant, "llm", role("leader", 1), role("workers", 2), placement={"pools": {"allow": [A100]}})
    eventually(lambda: tenant.settled("llm"), "it runs")
    assert tenant.status("llm")["placement"] == tenant.status("llm")["placement"] | {
        "pool": A100,
        "chips": 2,
        "replicas": 2,
    }
    assert list(job_sets(tenant)) == ["llm-r1"]
    assert services(tenant) == ["llm-r1"] and services(tenant, labels=LABEL_JOB) == [], "JobSet's own Service alone"
    workers, (leader,) = pods_of(tenant, "llm", "workers"), pods_of(tenant, "llm", "leader")
    assert len(workers) == 2
    for worker in workers:
        assert worker["spec"]["nodeSelector"] == {NODE_LABEL: A100}
        assert worker["spec"]["initContainers"][0]["name"] == SIDECAR_CONTAINER
        assert worker["spec"]["hostname"] in ("llm-r1-workers-0-0", "llm-r1-workers-0-1")
        assert worker["spec"]["subdomain"] == "llm-r1"
    assert {"nodeSelector", "initContainers"}.isdisjoint(leader["spec"])
    eventually(lambda: tenant.condition("llm", "Profiled").get("status") == "True", "it is measured")

    tenant.edit("llm", lambda spec: spec["placement"].update(pools={"allow": [A100, A10G]}))
    eventually(lambda: tenant.pool("llm") == A10G and tenant.settled("llm"), "it has moved to cheaper chips")
    assert list(job_sets(tenant)) == ["llm-r2"]
    assert {pod["spec"]["nodeSelector"][NODE_LABEL] for pod in pods_of(tenant, "llm", "workers")} == {A10G}
    assert len(pods_of(tenant, "llm", "leader")) == 1, "the leader went along"
    assert tenant.status("llm")["history"][0]["outcome"] == "Verified"

    finish(tenant, "llm")
    eventually(lambda: tenant.condition("llm", "Completed").get("status") == "True", "it has ended well")
    assert [c["type"] for c in job_sets(tenant)["llm-r2"]["status"]["conditions"] if c["status"] == "True"] == [
        "Completed"
    ]


def test_a_user_suspends_it_and_it_goes_on(site: Site, tenant: Tenant) -> None:
    site.operate()
    train(tenant, "one", role("leader", 1), role("workers", 2), placement={"pools": {"allow": [A100]}})
    eventually(lambda: tenant.settled("one"), "it runs")
    tenant.edit("one", lambda spec: spec.update(suspend=True))
    eventually(lambda: tenant.condition("one", "Placed").get("reason") == "Suspended" and not tenant.pods("one"))
    assert job_sets(tenant)["one-r1"]["spec"]["suspend"] is True
    tenant.edit("one", lambda spec: spec.update(suspend=False))
    eventually(lambda: tenant.settled("one") and len(pods_of(tenant, "one", "workers")) == 2, "it goes on")


def test_a_typo_is_refused_as_jobset_itself_would(site: Site, tenant: Tenant) -> None:
    site.operate()
    train(tenant, "typo", role("leader", 1), role("workers", 2, comand=["python"]))
    eventually(lambda: tenant.condition("typo", "Placed").get("reason") == "InvalidTemplate", "it is told")
    assert 'containers[0].comand"' in tenant.condition("typo", "Placed")["message"]
    # JobSet takes what its Jobs could not be made of.
    train(tenant, "blank", role("leader", 1), role("workers", 2, image=""))
    eventually(lambda: tenant.condition("blank", "Placed").get("reason") == "InvalidTemplate", "it is told")
    message = tenant.condition("blank", "Placed")["message"]
    assert "blank-r1-workers-0" in message and "containers[0].image: Required value" in message
    assert job_sets(tenant) == {}
