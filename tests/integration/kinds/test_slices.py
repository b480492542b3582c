"""A JobSet on TPU slices of several hosts, each Job on a slice of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES
from rightpool.hardware.clouds import GKE_NODEPOOL
from rightpool.workloads.kinds.job_set import JOB_SETS
from tests.integration.faults.conftest import put, ready
from tests.integration.faults.fleet import NODE_LABEL, SIMULATION, Body, Tenant
from tests.integration.faults.site import Site
from tests.integration.kinds.test_job_set import pods_of, role, train
from tests.patience import eventually

pytestmark = pytest.mark.cluster

V5E = "kinds-v5e"
SLICES, HOSTS, CHIPS = 3, 2, 4  # of a slice the hosts, of a host the chips
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
POOL: Body = {
    "accelerator": "TPU-v5e",
    "chipsPerNode": CHIPS,
    "resourceName": "google.com/tpu",
    "slice": {"topology": "2x4", "chips": HOSTS * CHIPS},
    "price": {"perChipHour": "1.20"},
    "nodeSelector": {NODE_LABEL: V5E},
}


@pytest.fixture
def slices(client: ClusterClient, machines: None) -> Iterator[None]:
    put(client, ACCELERATOR_POOLS, V5E, {"spec": POOL})
    names = []
    for index in range(SLICES * HOSTS):
        name = f"{V5E}-{index}"
        labels = {
            "kubernetes.io/hostname": name,
            GKE_NODEPOOL: f"slice-{index // HOSTS}",
            NODE_LABEL: V5E,
            SIMULATION + "accelerator": "TPU-v5e",
        }
        room = {"cpu": "512", "memory": "4Ti", "pods": "250", "google.com/tpu": str(CHIPS)}
        about = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
        taint = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
        spec = {"spec": {"taints": [taint]}, "status": {"capacity": room, "allocatable": room}}
        put(client, NODES, name, {"metadata": about, **spec})
        names.append(name)
    eventually(lambda: all(ready(client.get(NODES, name)) for name in names), "every host is ready")
    yield
    for name in names:
        client.delete(NODES, name)
    client.delete(ACCELERATOR_POOLS, V5E)


def size(chips: int) -> Body:
    return {"chipCounts": [chips, 64], "batch": "PerChip", "state": "Replicated"}  # there are no 64


def variables(pod: Body) -> dict[str, Any]:
    [main] = (container for container in pod["spec"]["containers"] if container["name"] == "main")
    return {variable["name"]: variable.get("value") for variable in main["env"]}


def test_two_slices_move_to_one_and_back(site: Site, tenant: Tenant, client: ClusterClient, slices: None) -> None:
    node_pools = {
        node["metadata"]["name"]: node["metadata"]["labels"].get(GKE_NODEPOOL) for node in client.list_all(NODES)
    }

    def on_slices(count: int) -> None:
        pods = pods_of(tenant, "maxtext", "slice")
        assert len(pods) == count * HOSTS
        by_job: dict[str, set[str]] = {}
        for pod in pods:
            assert pod["metadata"]["annotations"]["jobset.sigs.k8s.io/coordinator"].endswith(".maxtext-r" + revision())
            job = pod["metadata"]["annotations"]["jobset.sigs.k8s.io/job-index"]
            by_job.setdefault(job, set()).add(node_pools[pod["spec"]["nodeName"]])
        assert len(by_job) == count and all(len(there) == 1 for there in by_job.values()), "a Job is on one slice"
        assert len(set.union(*by_job.values())) == count, "of its own"
        own = "$(MEGASCALE_SLICE_ID)" if count > 1 else "0"
        found, domain = variables(pods[0]), f"maxtext-r{revision()}.{tenant.namespace}.svc"
        hosts = [f"maxtext-r{revision()}-slice-{own}-{host}.{domain}" for host in range(HOSTS)]
        assert found["TPU_WORKER_HOSTNAMES"].split(",") == hosts
        assert found.get("MEGASCALE_NUM_SLICES") == (str(count) if count > 1 else None)

    def revision() -> str:
        return str(tenant.status("maxtext")["placement"]["revision"])

    def placed(chips: int) -> bool:
        return tenant.settled("maxtext") and tenant.status("maxtext")["placement"]["chips"] == chips

    workers = role("slice", HOSTS)
    workers["replicas"] = 2
    workers["template"]["metadata"] = {"annotations": {EXCLUSIVE: GKE_NODEPOOL}}
    workers["template"]["spec"]["template"]["metadata"]["annotations"][SIMULATION + "workload"] = "mpt-1b"
    coordinator = {"replicatedJob": "slice", "jobIndex": 0, "podIndex": 0}
    template = {"replicatedJobs": [workers], "coordinator": coordinator}
    site.operate()
    train(
        tenant,
        "maxtext",
        workload={"jobSet": {"chipsPerReplica": CHIPS, "template": template}},
        placement={"pools": {"allow": [V5E]}},
        elasticity=size(16),
        adaptation={"cooldown": "0s"},
    )
    eventually(lambda: placed(16), "it runs on two slices")
    on_slices(2)
    eventually(lambda: tenant.condition("maxtext", "Profiled").get("status") == "True", "it is measured")
    tenant.edit("maxtext", lambda spec: spec.update(elasticity=size(8)))
    eventually(lambda: placed(8), "it has moved to one")
    on_slices(1)
    tenant.edit("maxtext", lambda spec: spec.update(elasticity=size(16)))
    eventually(lambda: placed(16), "and back")
    on_slices(2)
    assert [body["metadata"]["name"] for body in client.list_all(JOB_SETS, tenant.namespace)] == ["maxtext-r3"]
