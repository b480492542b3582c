"""TrainJobs whose data is fetched before they train."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import Conflict
from rightpool.cluster.resources import PLACEMENT_POLICIES, PODS
from rightpool.workloads.jobs_of_set import ROLE
from rightpool.workloads.kinds.train_job import RUNTIMES
from tests.integration.faults.acts import complete, finish
from tests.integration.faults.conftest import put
from tests.integration.faults.fleet import A10G, A100, POLICY, Body, Tenant
from tests.integration.faults.site import Site
from tests.integration.kinds.test_in_place import STEP, Mine, leader, specs, template
from tests.integration.kinds.test_job_set import pods_of
from tests.integration.kinds.test_train_job import train
from tests.patience import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("trainer")]

FETCH = "dataset-initializer"
DATA = {"dataset": {"storageUri": "hf://example/data"}}


def runtime() -> Body:
    """Of a step that fetches data, and of one that trains once it has ended."""
    fetching, trained = leader("200ms"), template("200ms", name="node")
    fetching["spec"]["containers"][0] |= {
        "name": FETCH,
        "volumeMounts": [{"name": "initializer", "mountPath": "/data"}],
    }
    fetching["spec"]["volumes"] = [{"name": "initializer", "emptyDir": {}}]
    trained["spec"].pop("nodeSelector")
    trained["spec"]["containers"][0].pop("resources")
    steps: list[Body] = [
        {"name": name, "template": {"metadata": {"labels": {STEP: of}}, "spec": {"template": pods}}}
        for name, pods, of in ((FETCH, fetching, FETCH), ("node", trained, "trainer"))
    ]
    steps[1]["dependsOn"] = [{"name": FETCH, "status": "Complete"}]
    return {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": steps}}}


def fetches(tenant: Tenant) -> bool:
    return [pod["status"].get("phase") for pod in pods_of(tenant, "llm", FETCH)] == ["Running"]


@pytest.mark.usefixtures("impatient")  # which puts the policy back
def test_each_revision_fetches_its_data_and_is_not_late_by_that(
    site: Site, tenant: Tenant, client: ClusterClient
) -> None:
    about = {"name": "fetching", "namespace": tenant.namespace}
    tenant.client.create(RUNTIMES, {"metadata": about, "spec": runtime()})
    site.operate()
    reference = {"kind": RUNTIMES.kind, "name": "fetching"}
    program = {"numNodes": 2, "image": "example.com/trainer:1"}
    template = {"runtimeRef": reference, "trainer": program, "initializer": DATA}
    train(tenant, "llm", reference, workload={"trainJob": {"template": template}})
    eventually(lambda: fetches(tenant), "it fetches its data")
    assert not pods_of(tenant, "llm", "node")
    finish(tenant, "llm")
    eventually(lambda: tenant.settled("llm"), "it runs")
    put(client, PLACEMENT_POLICIES, "default", {"spec": {**POLICY, "startDeadline": "30s"}})
    tenant.edit("llm", lambda spec: spec["placement"].update(pools={"allow": [A10G]}))
    eventually(lambda: fetches(tenant) and tenant.phase("llm") == "Starting", "it fetches its data again")
    began = since(tenant)
    eventually(lambda: since(tenant) != began, "the deadline counts from when that has ended")
    finish(tenant, "llm")
    eventually(lambda: tenant.pool("llm") == A10G and tenant.settled("llm"), "it has moved")
    assert tenant.outcomes("llm") == ["Verified"]


def since(tenant: Tenant) -> Any:
    return tenant.status("llm")["migration"]["phaseStartedAt"]


class Fetching(Mine):
    """Its data is there as soon as it is looked for."""

    def runs_on(self, pool: str, pods: int = 2) -> bool:
        for pod in self.pods():
            if pod["metadata"]["labels"].get(ROLE) == FETCH and pod["status"].get("phase") == "Running":
                try:
                    complete(self.tenant, pod)
                except Conflict:
                    return False
        return super().runs_on(pool, pods)


def test_what_is_adopted_fetches_its_data_once(site: Site) -> None:
    site.operate()
    one = Fetching(site, "trainJob", {**specs("200ms", 1)["trainJob"], "initializer": DATA}, runtime())
    one.adopt()
    one.send(A10G)
    eventually(lambda: one.runs_on(A10G) and one.placed(A10G, 2), "it has moved")
    one.release()
    eventually(lambda: one.runs_on(A100) and not one.placed(A100), "it is back, and its ProfiledJob is gone")
    pods = site.tenant.client.list_all(PODS, site.tenant.namespace)
    assert [pod["metadata"]["labels"].get(ROLE) for pod in pods].count(FETCH) == 1
    assert one.untouched()
