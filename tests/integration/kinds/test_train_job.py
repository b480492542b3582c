"""A TrainJob by Kubeflow Trainer: its pods come from a runtime, of which each Revision has its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.contract import LABEL_JOB, SIDECAR_CONTAINER
from rightpool.workloads.kinds.train_job import CLUSTER_RUNTIMES, RUNTIMES, TRAIN_JOBS
from tests.integration.faults.acts import finish
from tests.integration.faults.conftest import put
from tests.integration.faults.fleet import A10G, A100, NODE_LABEL, SIMULATION, Body, Tenant
from tests.integration.faults.site import Site
from tests.integration.kinds.test_job_set import PLAY, TOLERATION, pods_of
from tests.patience import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("trainer")]

RUNTIME = "rightpool-torch"


def step(name: str, container: str, **labels: str) -> Body:
    annotations = {SIMULATION + key: value for key, value in PLAY.items()}
    spec = {"containers": [{"name": container, "image": "example.com/base:1"}], "tolerations": [TOLERATION]}
    pod = {"metadata": {"annotations": annotations}, "spec": spec}
    return {"name": name, "template": {"metadata": {"labels": labels}, "spec": {"template": pod}}}


def runtime(**policy: Any) -> Body:
    trainer = step(
        "node", "node", **{"trainjob.example.com/of": "all", "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    )
    return {
        "mlPolicy": policy or {"torch": {}},
        "template": {"spec": {"replicatedJobs": [step("logs", "logs"), trainer]}},
    }


@pytest.fixture
def shared_runtime(client: ClusterClient) -> Iterator[None]:
    put(client, CLUSTER_RUNTIMES, RUNTIME, {"spec": runtime()})
    yield
    client.delete(CLUSTER_RUNTIMES, RUNTIME)


def train(tenant: Tenant, name: str, reference: Body, *, trainer: Body | None = None, **spec: Any) -> None:
    program = {"numNodes": 2, "image": "example.com/trainer:1", "command": ["torchrun", "train.py"], **(trainer or {})}
    tenant.create(
        name,
        **{
            "workload": {"trainJob": {"template": {"runtimeRef": reference, "trainer": program}}},
            "elasticity": {},
            "placement": {"pools": {"allow": [A100]}},
            "checkpoint": {"mode": "Signal", "timeout": "10m"},
            "profiling": {"interval": "1s", "window": "6s"},
            "adaptation": {"cooldown": "1h"},
            **spec,
        },
    )


def named(tenant: Tenant, resource: Resource) -> list[str]:
    found = tenant.client.list_all(resource, tenant.namespace, labels=LABEL_JOB)
    return sorted(body["metadata"]["name"] for body in found)


def test_it_runs_is_profiled_moves_and_completes(site: Site, tenant: Tenant, shared_runtime: None) -> None:
    site.operate()
    train(tenant, "llm", {"name": RUNTIME}, trainer={"env": [{"name": "PYTHONPATH", "value": "/app"}]})
    eventually(lambda: tenant.settled("llm"), "it runs")
    assert tenant.status("llm")["placement"] == tenant.status("llm")["placement"] | {"chips": 2, "replicas": 2}
    assert named(tenant, TRAIN_JOBS) == named(tenant, RUNTIMES) == ["llm-r1"]
    nodes, logs = pods_of(tenant, "llm", "node"), pods_of(tenant, "llm", "logs")
    assert len(nodes) == 2 and len(logs) == 1
    for pod in nodes:
        assert pod["spec"]["nodeSelector"] == {NODE_LABEL: A100}
        assert pod["spec"]["initContainers"][0]["name"] == SIDECAR_CONTAINER
        [main] = pod["spec"]["containers"]
        assert (main["image"], main["command"]) == ("example.com/trainer:1", ["torchrun", "train.py"])
        assert main["resources"]["limits"] == {"nvidia.com/gpu": "1"}
        env = {variable["name"]: variable.get("value") for variable in main["env"]}
        assert (env["PET_NNODES"], env["PET_NPROC_PER_NODE"]) == ("2", "1")
        assert env["PET_MASTER_ADDR"] == "llm-r1-node-0-0.llm-r1", "as Trainer sets it"
        assert env["MASTER_ADDR"] == f"llm-r1-node-0-0.llm-r1.{tenant.namespace}.svc"
        assert env["PYTHONPATH"].endswith(":/app"), "with the agent before it"
    assert {"nodeSelector", "initContainers"}.isdisjoint(logs[0]["spec"])
    eventually(lambda: tenant.condition("llm", "Profiled").get("status") == "True", "it is measured")

    tenant.edit("llm", lambda spec: spec["placement"].update(pools={"allow": [A100, A10G]}))
    eventually(lambda: tenant.pool("llm") == A10G and tenant.settled("llm"), "it has moved to cheaper chips")
    eventually(lambda: named(tenant, TRAIN_JOBS) == named(tenant, RUNTIMES) == ["llm-r2"], "the runtime went along")
    assert {pod["spec"]["nodeSelector"][NODE_LABEL] for pod in pods_of(tenant, "llm", "node")} == {A10G}
    assert tenant.status("llm")["history"][0]["outcome"] == "Verified"

    tenant.edit("llm", lambda spec: spec.update(suspend=True))
    eventually(lambda: tenant.condition("llm", "Placed").get("reason") == "Suspended" and not tenant.pods("llm"))
    tenant.edit("llm", lambda spec: spec.update(suspend=False))
    eventually(lambda: tenant.settled("llm") and len(pods_of(tenant, "llm", "node")) == 2, "it goes on")
    finish(tenant, "llm")
    eventually(lambda: tenant.condition("llm", "Completed").get("status") == "True", "it has ended well")


def test_what_is_wrong_with_its_runtime_is_told(site: Site, tenant: Tenant) -> None:
    site.operate()

    def refusal(name: str) -> str:
        eventually(lambda: tenant.condition(name, "Placed").get("reason") == "InvalidTemplate", "it is refused")
        return str(tenant.condition(name, "Placed")["message"])

    train(tenant, "gone", {"name": "nowhere"})
    assert "ClusterTrainingRuntime nowhere is not there: create it" in refusal("gone")
    about = {"name": "launched", "namespace": tenant.namespace}
    tenant.client.create(RUNTIMES, {"metadata": about, "spec": runtime(mpi={})})
    train(tenant, "mpi", {"name": "launched", "kind": "TrainingRuntime"})
    assert "mlPolicy.mpi" in refusal("mpi")
    own = {"name": "own", "namespace": tenant.namespace}
    tenant.client.create(RUNTIMES, {"metadata": own, "spec": runtime()})
    train(tenant, "typo", {"name": "own", "kind": "TrainingRuntime"}, trainer={"comand": ["python"]})
    assert "comand" in refusal("typo")
    train(
        tenant,
        "greedy",
        {"name": "own", "kind": "TrainingRuntime"},
        trainer={"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}},
    )
    assert "nvidia.com/gpu" in refusal("greedy")
    assert named(tenant, TRAIN_JOBS) == []

    def mend(spec: Body) -> None:
        trainer = spec["workload"]["trainJob"]["template"]["trainer"]
        del trainer["comand"]
        trainer["env"] = [{"name": "MENDED", "value": "1"}]

    tenant.edit("typo", mend)
    eventually(lambda: tenant.settled("typo"), "it runs once it is corrected")
    [main] = pods_of(tenant, "typo", "node")[0]["spec"]["containers"]
    assert {"name": "MENDED", "value": "1"} in main["env"], "and not as it was before"
