"""An adopted Job whose pods find no chips: another job gives way for it, Kubernetes starts it, and nobody writes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import PLACEMENT_POLICIES, PROFILED_JOBS
from tests.chaos.stream import StreamEvent
from tests.integration.faults.conftest import put
from tests.integration.faults.fleet import FAIR, NODE_LABEL, POLICY, SIMULATION, Body
from tests.integration.faults.site import Site
from tests.patience import eventually

pytestmark = pytest.mark.cluster


@pytest.fixture
def planned(client: ClusterClient, machines: None) -> Iterator[None]:
    put(client, PLACEMENT_POLICIES, "default", {"spec": {**POLICY, "fleet": {"mode": "Auto", "maxWait": "5s"}}})
    yield
    put(client, PLACEMENT_POLICIES, "default", {"spec": POLICY})


def own_job(site: Site, name: str) -> Body:
    """As its user makes it, for half of the pool."""
    container = {"name": "trainer", "image": "example.com/trainer:1", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    pod = {
        "nodeSelector": {NODE_LABEL: FAIR},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "restartPolicy": "Never",
        "containers": [container],
    }
    template = {"metadata": {"annotations": {SIMULATION + "workload": "resnet50"}}, "spec": pod}
    about = {"name": name, "namespace": site.namespace}
    return site.tenant.client.create(JOBS, {"metadata": about, "spec": {"template": template}})


def test_a_job_that_runs_gives_way_to_an_adopted_one(planned: None, site: Site) -> None:
    placed: list[tuple[str, str]] = []

    def watch(event: StreamEvent) -> None:
        if event.resource is PROFILED_JOBS and event.body["metadata"]["name"] == "own":
            conditions = (event.body.get("status") or {}).get("conditions") or ()
            placed.extend((one["reason"], one["message"]) for one in conditions if one["type"] == "Placed")

    tenant = site.tenant
    site.namespace_watch.listen(site.namespace, watch)
    site.operate()
    may = {"minChips": 4, "maxChips": 8, "batch": "PerChip"}
    tenant.train(
        "bert",
        job={"chipsPerReplica": 4, "replicas": 2},
        placement={"pools": {"allow": [FAIR]}},
        adaptation={"yield": "Move"},
        elasticity=may,
    )
    eventually(lambda: tenant.settled("bert"), "it has the whole pool")
    made = own_job(site, "own")
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "own"}
    about = {"name": "own", "namespace": site.namespace}
    tenant.client.create(PROFILED_JOBS, {"metadata": about, "spec": {"workloadRef": reference}})
    eventually(lambda: tenant.settled("own") and tenant.settled("bert"), "both run")
    assert (tenant.pool("own"), tenant.status("own")["placement"]["chips"]) == (FAIR, 4)
    assert tenant.status("bert")["history"][-1]["reason"] == "FleetGains"
    assert tenant.status("bert")["placement"]["chips"] == 4
    waits = [message for reason, message in placed if reason == "WaitingForCapacity"]
    assert waits and f"4 chips of {FAIR} would be next" in waits[0]
    after = tenant.client.get(JOBS, "own", site.namespace)
    assert after["spec"] == made["spec"] and after["metadata"]["generation"] == made["metadata"]["generation"]
