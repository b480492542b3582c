"""A job's way through a running operator: placed, suspended, refused, deleted, left alone."""

from __future__ import annotations

import time

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.errors import Conflict
from rightpool.cluster.resources import PROFILED_JOBS
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Fleet, OperatorProcess
from tests.patience import eventually

pytestmark = pytest.mark.cluster


def written_in(operator: OperatorProcess, cycles: int) -> float:
    """How many statuses it writes in so many cycles."""
    before = operator.metric("rightpool_operator_status_writes_total")
    end = operator.cycles + cycles
    eventually(lambda: operator.cycles >= end)
    return operator.metric("rightpool_operator_status_writes_total") - before


def test_a_job_is_placed_and_runs(start: Start, fleet: Fleet) -> None:
    start()
    fleet.create("bert")
    eventually(lambda: fleet.running("bert", "bert-r1"))
    status = fleet.status("bert")
    assert status["placement"]["pool"] == "a10g"
    assert status["placement"]["revision"] == 1
    assert status["replicas"] == 1
    child = fleet.child("bert-r1")
    assert child is not None
    assert child["spec"]["suspend"] is False
    assert [owner["kind"] for owner in child["metadata"]["ownerReferences"]] == ["ProfiledJob"]
    assert not fleet.job("bert")["metadata"].get("finalizers")
    assert not fleet.job("bert")["metadata"].get("annotations")


def test_the_status_of_a_steady_fleet_is_not_written(start: Start, fleet: Fleet) -> None:
    operator = start()
    fleet.create("bert", profiling={"window": "1h"})
    eventually(lambda: fleet.running("bert", "bert-r1"))
    # The first reading may fail where there is much to do, and the next one is an interval later.
    eventually(lambda: fleet.condition("bert", "Profiled").get("reason") == "WarmingUp", "it is measured")
    eventually(lambda: written_in(operator, 6) == 0, "it comes to rest")
    version = fleet.job("bert")["metadata"]["resourceVersion"]
    assert written_in(operator, 8) == 0
    assert fleet.job("bert")["metadata"]["resourceVersion"] == version


def test_suspending_ends_the_pods_and_resuming_starts_them(start: Start, fleet: Fleet) -> None:
    start()
    fleet.create("bert")
    eventually(lambda: fleet.running("bert", "bert-r1"))
    fleet.edit("bert", lambda spec: spec.update(suspend=True))
    eventually(lambda: not fleet.revisions_alive("bert"))
    eventually(lambda: fleet.condition("bert", "Placed").get("reason") == "Suspended")
    eventually(lambda: "perHour" not in fleet.status("bert")["cost"], "the meter stops")
    fleet.edit("bert", lambda spec: spec.update(suspend=False))
    eventually(lambda: fleet.running("bert", "bert-r1"))
    assert fleet.status("bert")["placement"]["revision"] == 1


def test_a_job_that_begins_suspended_gets_no_pods(start: Start, fleet: Fleet) -> None:
    start()
    fleet.create("bert", suspend=True)
    eventually(lambda: fleet.condition("bert", "Placed").get("reason") == "Suspended")
    time.sleep(2)
    assert not fleet.pods("bert")


def test_a_job_in_a_queue_is_stopped_also_where_kueue_was_removed(start: Start, fleet: Fleet) -> None:
    start()
    fleet.create("bert", queueName="research")
    eventually(lambda: fleet.condition("bert", "Placed").get("reason") == "WaitingForQuota")
    admitted = {"metadata": {"name": "bert-r1", "namespace": fleet.namespace}, "spec": {"suspend": False}}
    fleet.client.apply(JOBS, admitted, manager="kueue")
    eventually(lambda: fleet.running("bert", "bert-r1"))
    fleet.edit("bert", lambda spec: spec.update(suspend=True))
    eventually(lambda: not fleet.revisions_alive("bert"))
    eventually(lambda: fleet.condition("bert", "Placed").get("reason") == "Suspended")
    fleet.edit("bert", lambda spec: spec.update(suspend=False))
    eventually(lambda: fleet.condition("bert", "Placed").get("reason") == "WaitingForQuota")
    time.sleep(2)
    assert not fleet.revisions_alive("bert"), "it is started by its queue alone"


def test_an_error_of_the_api_server_is_reported_to_the_user(start: Start, fleet: Fleet) -> None:
    start()
    mount = {"name": "data", "mountPath": "/data"}
    container = {"name": "trainer", "image": "example.com/trainer:1", "volumeMounts": [mount]}
    fleet.create("bert", template={"spec": {"containers": [container]}})
    eventually(lambda: fleet.condition("bert", "Placed").get("reason") == "InvalidTemplate")
    message = fleet.condition("bert", "Placed")["message"]
    assert 'volumeMounts[0].name: Not found: "data"' in message
    assert fleet.child("bert-r1") is None

    def repair(spec: dict[str, object]) -> None:
        spec["workload"]["job"]["template"]["spec"]["containers"][0].pop("volumeMounts")  # type: ignore[index]

    fleet.edit("bert", repair)
    eventually(lambda: fleet.condition("bert", "Placed").get("status") == "True")


def test_deleting_a_job_deletes_its_children(start: Start, fleet: Fleet) -> None:
    start()
    fleet.create("bert")
    eventually(lambda: fleet.running("bert", "bert-r1"))
    fleet.client.delete(PROFILED_JOBS, "bert", fleet.namespace, propagation="Background")
    eventually(lambda: fleet.child("bert-r1") is None and not fleet.pods("bert"))
    time.sleep(2)
    assert fleet.child("bert-r1") is None, "nothing is brought back"


def test_a_job_of_another_controller_is_not_changed(start: Start, fleet: Fleet) -> None:
    start()
    fleet.create("theirs", managedBy="example.com/other")
    fleet.create("ours")
    eventually(lambda: fleet.running("ours", "ours-r1"))
    assert not fleet.status("theirs")
    assert fleet.child("theirs-r1") is None


def test_a_write_based_on_an_older_version_is_refused(fleet: Fleet) -> None:
    old = fleet.create("bert")
    fleet.edit("bert", lambda spec: spec.update(suspend=True))
    about = {key: old["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    with pytest.raises(Conflict):
        fleet.client.apply(PROFILED_JOBS, {"metadata": about, "status": {"moves": 7}}, subresource="status")
    assert not fleet.status("bert")
