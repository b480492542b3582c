"""A LeaderWorkerSet by its own controller: groups of pods without an end."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cluster.resources import PODS
from rightpool.contract import SIDECAR_CONTAINER
from rightpool.workloads.kinds.leader_worker_set import LEADER_WORKER_SETS
from tests.integration.faults.fleet import A10G, A100, NODE_LABEL, SIMULATION, Body, Tenant
from tests.integration.faults.site import Site
from tests.integration.kinds.test_job_set import PLAY, services
from tests.patience import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("leader_worker_set")]


def pods(**container: Any) -> Body:
    annotations = {SIMULATION + key: value for key, value in PLAY.items()}
    containers = [{"name": "main", "image": "example.com/trainer:1", **container}]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": containers}}


def train(tenant: Tenant, name: str, group: Body, groups: int = 1, **spec: Any) -> None:
    template = {"replicas": groups, "leaderWorkerTemplate": group}
    tenant.create(
        name,
        **{
            "workload": {"leaderWorkerSet": {"template": template}},
            "elasticity": {},
            "placement": {"pools": {"allow": [A100]}},
            "checkpoint": {"mode": "Signal", "timeout": "10m"},
            "profiling": {"interval": "1s", "window": "6s"},
            "adaptation": {"cooldown": "1h"},
            **spec,
        },
    )


def sets(tenant: Tenant) -> dict[str, Body]:
    return {body["metadata"]["name"]: body for body in tenant.client.list_all(LEADER_WORKER_SETS, tenant.namespace)}


def environment(pod: Body) -> dict[str, str | None]:
    [main] = pod["spec"]["containers"]
    return {variable["name"]: variable.get("value") for variable in main["env"]}


def test_groups_run_are_profiled_move_sleep_and_scale(site: Site, tenant: Tenant) -> None:
    site.operate()
    group = {"size": 2, "leaderTemplate": pods(args=["--lead"]), "workerTemplate": pods()}
    train(tenant, "llm", group, groups=2)
    eventually(lambda: tenant.settled("llm"), "it runs")
    assert tenant.status("llm")["placement"] == tenant.status("llm")["placement"] | {"chips": 4, "replicas": 4}
    assert list(sets(tenant)) == ["llm-r1"]
    assert services(tenant) == ["llm-r1"], "its controller's own Service alone"
    found = {pod["metadata"]["name"]: pod for pod in tenant.pods("llm")}
    assert sorted(found) == ["llm-r1-0", "llm-r1-0-1", "llm-r1-1", "llm-r1-1-1"]
    for name, pod in found.items():
        assert pod["spec"]["nodeSelector"] == {NODE_LABEL: A100}
        assert pod["spec"]["initContainers"][0]["name"] == SIDECAR_CONTAINER
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
        variables = environment(pod)
        assert variables["LWS_LEADER_ADDRESS"] == f"{name[:8]}.llm-r1.{tenant.namespace}", "each group has its leader"
        assert (variables["PET_NNODES"], variables["MASTER_ADDR"]) == ("2", "$(LWS_LEADER_ADDRESS)")
    eventually(lambda: tenant.condition("llm", "Profiled").get("status") == "True", "it is measured")

    tenant.edit("llm", lambda spec: spec["placement"].update(pools={"allow": [A100, A10G]}))
    eventually(lambda: tenant.pool("llm") == A10G and tenant.settled("llm"), "it has moved to cheaper chips")
    eventually(lambda: list(sets(tenant)) == ["llm-r2"], "the first is gone")
    assert {pod["spec"]["nodeSelector"][NODE_LABEL] for pod in tenant.pods("llm")} == {A10G}
    assert tenant.outcomes("llm") == ["Verified"]

    tenant.edit("llm", lambda spec: spec.update(suspend=True))
    eventually(lambda: tenant.condition("llm", "Placed").get("reason") == "Suspended" and not tenant.pods("llm"))
    assert sets(tenant)["llm-r2"]["spec"]["replicas"] == 0
    tenant.edit("llm", lambda spec: spec.update(suspend=False))
    eventually(lambda: tenant.settled("llm") and len(tenant.pods("llm")) == 4, "it goes on with as many groups")

    tenant.edit("llm", lambda spec: spec["workload"]["leaderWorkerSet"]["template"].update(replicas=1))
    eventually(lambda: tenant.settled("llm") and len(tenant.pods("llm")) == 2, "it has one group less")


def test_a_typo_is_refused_as_its_controller_would(site: Site, tenant: Tenant) -> None:
    site.operate()

    def refusal(name: str) -> str:
        eventually(lambda: tenant.condition(name, "Placed").get("reason") == "InvalidTemplate", "it is refused")
        return str(tenant.condition(name, "Placed")["message"])

    train(tenant, "typo", {"size": 2, "workerTemplate": pods(comand=["python"])})
    assert 'containers[0].comand"' in refusal("typo")
    train(tenant, "rule", {"size": 3, "workerTemplate": pods(), "subGroupPolicy": {"subGroupSize": 5}})
    assert "subGroupSize" in refusal("rule"), "which its webhook says"
    # It takes what its StatefulSets could not make pods of.
    train(tenant, "blank", {"workerTemplate": pods(image="")})
    assert "containers[0].image: Required value" in refusal("blank")
    assert sets(tenant) == {}


def test_a_pod_that_is_lost_comes_back_with_its_group(site: Site, tenant: Tenant) -> None:
    site.operate()
    train(tenant, "one", {"size": 2, "workerTemplate": pods()}, checkpoint={"mode": "None"})
    eventually(lambda: tenant.settled("one"), "it runs")
    before = {pod["metadata"]["uid"] for pod in tenant.pods("one")}
    tenant.client.delete(PODS, "one-r1-0-1", tenant.namespace)
    eventually(
        lambda: tenant.settled("one") and before.isdisjoint(pod["metadata"]["uid"] for pod in tenant.pods("one")),
        "the group has started anew as a whole",
    )
