"""Objects that their users have made, in a queue of Kueue: moved to another flavor where they are, by their queue."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cluster.client import MERGE_CONTENT
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_RELEASE
from rightpool.workloads.in_place import is_held
from rightpool.workloads.kinds.registry import KINDS, adoptable
from rightpool.workloads.names import LABEL_QUEUE
from tests.integration.faults.fleet import A10G, A100
from tests.integration.faults.site import Site
from tests.integration.kinds.conftest import INSTALLED
from tests.integration.kinds.test_in_place import Mine, simulated, specs
from tests.integration.kueue.queues import QUEUE, Queues
from tests.integration.kueue.test_queues import Suspensions, delete, runs, urgent, waits
from tests.patience import eventually

pytestmark = pytest.mark.cluster

FIELDS = tuple(kind.field for kind in adoptable() if KINDS[kind.field].adoption.queues)


def anywhere(value: Any) -> Any:
    """Where it runs says the queue."""
    if isinstance(value, list):
        return [anywhere(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: anywhere(one) for key, one in value.items() if key not in ("nodeSelector", "runtimePatches")}


@pytest.mark.parametrize("field", FIELDS)
def test_it_moves_to_another_flavor_is_preempted_meanwhile_and_comes_back(
    request: Any, site: Site, queues: Queues, field: str
) -> None:
    if field in INSTALLED:
        request.getfixturevalue(INSTALLED[field])
    queues.quota(faults_a100=2, faults_a10g=2)
    suspensions, tenant = Suspensions(site), site.tenant
    site.operate()
    labels = {LABEL_QUEUE: QUEUE}
    one = Mine(site, field, anywhere(specs("200ms", 1)[field]), simulated("200ms"), A100, **labels)
    workload = queues.workload(one.body)["metadata"]["uid"]
    one.adopt()
    assert one.untouched(), "to be looked at changes nothing"

    urgent(tenant, "boss", A10G)  # has one of the two chips that the move needs
    eventually(lambda: runs(tenant, "boss", 1, A10G))
    one.send(A10G)
    eventually(lambda: tenant.phase("llm") == "Starting" and waits(tenant, "llm", "has not admitted it"), "it waits")
    assert not one.pods() or all("boss" in pod["metadata"]["name"] for pod in one.pods()), "and does not start on a100"
    delete(tenant, "boss")
    eventually(lambda: one.runs_on(A10G) and one.placed(A10G, 2), "it has moved")
    eventually(lambda: (queues.used(A100), queues.used(A10G)) == (0, 2), "with its quota")
    assert queues.workload(one.body)["metadata"]["uid"] == workload and not is_held(one.body)
    assert suspensions.of("llm")[-3:] == [False, True, False], "Kueue alone has stopped and started it"

    urgent(tenant, "boss", A10G)
    eventually(lambda: waits(tenant, "llm", "has not admitted it again yet"), "it is preempted, and nobody's fault")
    delete(tenant, "boss")
    eventually(lambda: one.runs_on(A10G), "it goes on where it was")
    assert tenant.status("llm")["placement"]["revision"] == 2 and not is_held(one.body)

    path, released = PROFILED_JOBS.path(tenant.namespace, "llm"), {ANNOTATION_RELEASE: "true"}
    tenant.client.request("PATCH", path, body={"metadata": {"annotations": released}}, content=MERGE_CONTENT)
    eventually(lambda: one.runs_on(A100) and not one.placed(A100), "it is back, and its ProfiledJob is gone")
    assert one.untouched()
    assert queues.workload(one.body)["metadata"]["uid"] == workload
