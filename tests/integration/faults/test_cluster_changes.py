"""Changes of the cluster under a running job: its node, its pod, its accelerator type, its price, its pool.

One operator has a job for each case. The cases run side by side, each on its own jobs.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from devcluster.cluster import Running
from devcluster.processes import Supervisor
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, EVENTS, PROFILED_JOBS
from tests.chaos.operators import ProcessPool
from tests.integration.faults.acts import collect, cordon, crash, evict, evict_one, lose_node
from tests.integration.faults.conftest import make_site, put
from tests.integration.faults.fleet import A10G, A100, DEAD, EDITED, GONE, POOLS, PRICED, SHAKY, Body, Tenant, new_image
from tests.integration.faults.site import NamespaceWatch, Site
from tests.patience import eventually

pytestmark = pytest.mark.cluster

Case = Callable[[Tenant, Running], None]
HOUR = 3600.0
# Samples/s of four chips of an A10G. At half of that rate the deadline would be missed.
RATE, SHARE = 2443.6, 0.55
WHOLE_NODE: Body = {
    "job": {"chipsPerReplica": 4, "replicas": 1},
    "elasticity": {"minChips": 4, "maxChips": 4},
}

PEERS: Body = {
    "job": {"chipsPerReplica": 1, "replicas": 2, "backoffLimit": 0},
    "elasticity": {"minChips": 2, "maxChips": 2},
}


def on(*pools: str) -> Body:
    return {"pools": {"allow": list(pools)}}


def with_deadline() -> dict[str, Any]:
    """A whole node and a deadline that it meets; at a lower rate the job would need an A100."""
    deadline = (datetime.now(UTC) + timedelta(seconds=HOUR)).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        **WHOLE_NODE,
        "targets": {"deadline": deadline},
        "progress": {"totalSamples": int(RATE * HOUR * SHARE)},
    }


@pytest.fixture(scope="module")
def shared_site(
    client: ClusterClient,
    process_pool: ProcessPool,
    namespace_watch: NamespaceWatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("changes")
    with make_site(client, process_pool, namespace_watch, folder) as site:
        site.operate()
        tenant, slow_to_stop = site.tenant, {"stop-delay": "2h"}
        tenant.train("rests", placement=on(SHAKY, A100), **with_deadline())
        tenant.train("evicted", placement=on(SHAKY, A100), **with_deadline())
        tenant.train("peers", placement=on(A10G), **PEERS)
        tenant.train("drained", placement=on(SHAKY, A100), **with_deadline())
        tenant.train("arrives", placement=on(A100, SHAKY), **WHOLE_NODE)
        tenant.train("edited", placement=on(EDITED))
        tenant.train("priced", placement=on(PRICED))
        tenant.train("stuck", placement=on(DEAD, A10G))
        tenant.train("elsewhere", placement=on(GONE, A10G), adaptation={"mode": "Off"}, play=slow_to_stop)
        tenant.train("nowhere", placement=on(GONE), play=slow_to_stop)
        tenant.train("back", placement=on(GONE, DEAD))
        tenant.train("recreated", placement=on(A10G))
        yield site


# --- queries ---------------------------------------------------------------------------------------------------------


def reported(tenant: Tenant, name: str, kind: str) -> tuple[str | None, str | None, str]:
    condition = tenant.condition(name, kind)
    return condition.get("status"), condition.get("reason"), condition.get("message", "")


def measured(tenant: Tenant, name: str) -> bool:
    return reported(tenant, name, "Profiled")[0] == "True"


def steady(tenant: Tenant, name: str) -> set[str]:
    """The pods of a job once it runs and is measured."""
    eventually(lambda: tenant.settled(name) and measured(tenant, name), f"{name} runs and is measured")
    return tenant.uids(name)


def events(tenant: Tenant, name: str, reason: str) -> int:
    """How often a job's Event of this reason was posted."""
    found = tenant.client.list_all(EVENTS, tenant.namespace)
    about = [event for event in found if (event["involvedObject"]["name"], event["reason"]) == (name, reason)]
    return sum(int(event.get("count") or 1) for event in about)


def assert_only_started(tenant: Tenant, name: str) -> None:
    """The only decision was the start."""
    status = tenant.status(name)
    assert status["ledgerCount"] == 1 and not status.get("migration") and not status.get("history"), status


def spent(tenant: Tenant, name: str) -> float:
    return float((tenant.status(name).get("cost") or {}).get("spent") or 0.0)


# --- changes ---------------------------------------------------------------------------------------------------------


def change_pool(client: ClusterClient, name: str, **changes: Any) -> None:
    """Edit a pool; None leaves a field out."""
    spec = {key: value for key, value in {**POOLS[name], **changes}.items() if value is not None}
    put(client, ACCELERATOR_POOLS, name, {"spec": spec})


# --- nodes and pods --------------------------------------------------------------------------------------------------


def node_deleted_in_steady_state(tenant: Tenant, cluster: Running) -> None:
    interrupted(tenant, "rests", lose_node)


def pod_evicted_in_steady_state(tenant: Tenant, cluster: Running) -> None:
    interrupted(tenant, "evicted", evict)


def peers_fail_without_an_evicted_pod(tenant: Tenant, cluster: Running) -> None:
    """One is evicted and the other fails by that: no failure of the program, whatever backoffLimit is."""
    before = steady(tenant, "peers")
    evict_one(tenant, "peers", 1)
    crash(tenant, "peers", 0)
    eventually(lambda: tenant.running("peers", "peers-r2"), "it starts again")
    assert not steady(tenant, "peers") & before
    entry = tenant.status("peers")["history"][-1]
    assert (entry["action"], entry["outcome"], entry["reason"]) == ("Start", "CarriedOut", "Disrupted")
    assert tenant.pool("peers") == A10G
    crash(tenant, "peers", 0)
    eventually(lambda: reported(tenant, "peers", "Failed")[0] == "True", "what fails by itself has failed")


def node_cordoned_in_steady_state(tenant: Tenant, cluster: Running) -> None:
    """The program saves before the node is drained, once, and runs on."""
    before = steady(tenant, "drained")
    (pod,) = tenant.pods("drained")
    cordon(tenant, pod["spec"]["nodeName"])
    eventually(lambda: (tenant.status("drained").get("rescue") or {}).get("savedAt"), "it has saved")
    reasons = ("SaveRequested", "Saved")
    eventually(lambda: [events(tenant, "drained", reason) for reason in reasons] == [1, 1], "Events say so")
    cordon(tenant, pod["spec"]["nodeName"], unschedulable=False)
    eventually(lambda: "rescue" not in tenant.status("drained"), "the danger is over")
    assert tenant.uids("drained") == before
    assert [events(tenant, "drained", reason) for reason in reasons] == [1, 1]
    assert_only_started(tenant, "drained")


def interrupted(tenant: Tenant, name: str, act: Callable[[Tenant, str], None]) -> None:
    """The Job creates another pod, and the interruption does not count as a lower rate."""
    before = steady(tenant, name)
    act(tenant, name)
    eventually(lambda: (now := tenant.uids(name)) and not now & before, f"{name} has another pod")
    steady(tenant, name)
    assert_only_started(tenant, name)
    assert tenant.status(name)["placement"]["revision"] == 1
    tenant.only_child(name)


def node_deleted_during_a_move(tenant: Tenant, cluster: Running) -> None:
    """Right after the job runs on the target; whether it is verified by then depends on the machine."""
    eventually(lambda: tenant.pool("arrives") == SHAKY and tenant.uids("arrives"), "it is on its target")
    before = tenant.uids("arrives")
    lose_node(tenant, "arrives")
    eventually(lambda: (now := tenant.uids("arrives")) and not now & before, "it has another pod")
    eventually(lambda: tenant.outcomes("arrives") and tenant.settled("arrives"), "the move is over")
    assert tenant.outcomes("arrives") == ["Verified"], "an interruption does not fail a move"
    assert (tenant.pool("arrives"), tenant.status("arrives")["placement"]["revision"]) == (SHAKY, 2)
    tenant.only_child("arrives")


# --- data of the pool ------------------------------------------------------------------------------------------------


def accelerator_becomes_unknown(tenant: Tenant, cluster: Running) -> None:
    """The pool of a running job gets an unknown accelerator type."""
    pods = steady(tenant, "edited")
    change_pool(tenant.client, EDITED, accelerator="A100-SMX4")
    eventually(lambda: reported(tenant, "edited", "Degraded")[1] == "AcceleratorUnknown", "the job says so")
    message = reported(tenant, "edited", "Degraded")[2]
    assert EDITED in message and "unknown accelerator 'A100-SMX4'; did you mean A100-SXM4" in message
    # It would be cheaper elsewhere, but the current accelerator is unknown.
    tenant.edit("edited", lambda spec: spec.update(placement=on(EDITED, A10G)))
    edited = tenant.job("edited")["metadata"]["generation"]

    def held() -> bool:
        status = tenant.status("edited")
        return (reported(tenant, "edited", "Migrating")[1], status["observedGeneration"]) == ("NoFeasiblePool", edited)

    eventually(held, "nothing is decided")
    eventually(lambda: EDITED in reported(tenant, "edited", "CostEfficient")[2], "nothing is compared")
    assert reported(tenant, "edited", "Placed")[0] == "True" and tenant.uids("edited") == pods, "its pods are the same"
    assert_only_started(tenant, "edited")
    change_pool(tenant.client, EDITED)
    eventually(lambda: tenant.outcomes("edited") == ["Verified"] and tenant.settled("edited"), "it moves")
    assert tenant.pool("edited") == A10G
    assert reported(tenant, "edited", "Degraded")[0] == "False"


def price_goes_missing(tenant: Tenant, cluster: Running) -> None:
    """A pool loses its price: one job runs there, one starts there, one would be moved there."""
    pods = steady(tenant, "priced")
    change_pool(tenant.client, PRICED, price=None)
    eventually(lambda: reported(tenant, "priced", "Degraded")[1] == "PriceUnknown", "the job says so")
    assert "set spec.price" in reported(tenant, "priced", "Degraded")[2]
    paid = spent(tenant, "priced")
    assert paid > 0.0
    tenant.train("unpriced", placement=on(PRICED))  # starts in a pool without a price
    tenant.train("buyer", placement=on(A100, PRICED))  # would be cheaper there, at the earlier price
    steady(tenant, "unpriced")
    buyer = steady(tenant, "buyer")
    verdict = f"{PRICED} has no price and targets.objective is MinimizeCost: set spec.price"
    eventually(lambda: verdict in reported(tenant, "buyer", "CostEfficient")[2], "the rejection is reported")
    eventually(lambda: reported(tenant, "priced", "CostEfficient")[1] == "PriceUnknown", "nothing is compared")
    assert reported(tenant, "unpriced", "Degraded")[:2] == ("True", "PriceUnknown")
    cost = tenant.status("unpriced")["cost"]
    assert "perHour" not in cost and not float(cost.get("spent") or 0.0), "an unknown cost is absent, not zero"
    assert (tenant.uids("priced"), tenant.uids("buyer")) == (pods, buyer), "their pods are the same"
    for name in ("priced", "buyer", "unpriced"):
        assert_only_started(tenant, name)

    change_pool(tenant.client, PRICED)
    eventually(lambda: tenant.outcomes("buyer") == ["Verified"] and tenant.settled("buyer"), "it is bought")
    assert tenant.pool("buyer") == PRICED
    for name in ("priced", "unpriced"):
        eventually(lambda name=name: reported(tenant, name, "Degraded")[0] == "False", f"{name} has a price")  # type: ignore[misc]
    cost = tenant.status("unpriced")["cost"]
    assert float(cost["perHour"]) == 0.5 and float(cost["unpricedSeconds"]) > 0.0
    assert spent(tenant, "priced") >= paid and tenant.uids("priced") == pods
    assert_only_started(tenant, "priced")


# --- child of an earlier job -----------------------------------------------------------------------------------------


def earlier_job_leaves_its_child(tenant: Tenant, cluster: Running) -> None:
    """A ProfiledJob is deleted and created again while the garbage collector does not run."""
    steady(tenant, "recreated")
    child = tenant.child("recreated-r1")
    assert child is not None
    old = child["metadata"]["uid"]
    record = Supervisor(cluster.spec.state).record("kube-controller-manager")
    assert record is not None
    record.identity.signal(signal.SIGSTOP)  # with it Kubernetes' garbage collector
    try:
        tenant.client.delete(PROFILED_JOBS, "recreated", tenant.namespace, propagation="Background")
        tenant.train("recreated", placement=on(A10G))

        def ended() -> bool:
            body = tenant.child("recreated-r1")
            return body is None or body["metadata"]["uid"] != old or "deletionTimestamp" in body["metadata"]

        eventually(ended, "the operator ends it")
    finally:
        record.identity.signal(signal.SIGCONT)
    eventually(lambda: tenant.settled("recreated"), "the new one runs")
    child = tenant.child(f"recreated-r{tenant.status('recreated')['placement']['revision']}")
    assert child is not None and child["metadata"]["uid"] != old
    owners = [reference["uid"] for reference in child["metadata"]["ownerReferences"]]
    assert owners == [tenant.job("recreated")["metadata"]["uid"]]
    assert_only_started(tenant, "recreated")
    tenant.only_child("recreated")


# --- the tests -------------------------------------------------------------------------------------------------------


CASES: tuple[Case, ...] = (
    node_deleted_in_steady_state,
    node_deleted_during_a_move,
    pod_evicted_in_steady_state,
    peers_fail_without_an_evicted_pod,
    node_cordoned_in_steady_state,
    accelerator_becomes_unknown,
    price_goes_missing,
    earlier_job_leaves_its_child,
)


@pytest.fixture(scope="module")
def results(shared_site: Site, own_cluster: Running) -> Iterator[dict[Case, Future[None]]]:
    with ThreadPoolExecutor(len(CASES)) as threads:
        yield {case: threads.submit(case, shared_site.tenant, own_cluster) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_running_job_survives_a_change(results: dict[Case, Future[None]], case: Case) -> None:
    results[case].result()


def test_a_job_that_cannot_start_in_its_pool_starts_elsewhere(
    shared_site: Site, results: dict[Case, Future[None]], client: ClusterClient, impatient: Callable[[], None]
) -> None:
    """Its pods can't be scheduled, or its pool is deleted before an edit takes effect or a move is rolled back."""
    tenant = shared_site.tenant
    wait(results.values())  # their moves must have ended
    for name in ("elsewhere", "nowhere"):
        eventually(lambda name=name: tenant.settled(name), f"{name} runs")  # type: ignore[misc]
        assert tenant.pool(name) == GONE
        tenant.edit(name, new_image)
    for name in ("elsewhere", "nowhere"):
        eventually(lambda name=name: tenant.phase(name) == "Draining", f"{name} is being ended")  # type: ignore[misc]
    eventually(lambda: (tenant.pool("back"), tenant.phase("back")) == (DEAD, "Starting"), "it has left")
    client.delete(ACCELERATOR_POOLS, GONE)
    for name in ("elsewhere", "nowhere"):
        eventually(lambda name=name: "is gone" in reported(tenant, name, "Degraded")[2], f"{name} says so")  # type: ignore[misc]
        for pod in tenant.pods(name):
            collect(tenant, pod)
    for name in ("elsewhere", "nowhere"):
        eventually(lambda name=name: tenant.phase(name) == "Starting", f"{name} is to start")  # type: ignore[misc]
        assert tenant.outcomes(name) == [] and not tenant.children(name)
    assert tenant.outcomes("stuck") == [], "a start is given time"
    impatient()

    eventually(lambda: tenant.outcomes("stuck") == ["CarriedOut"] and tenant.settled("stuck"), "stuck")
    assert tenant.pool("stuck") == A10G
    assert tenant.status("stuck")["history"][-1]["reason"] == "StartDeadlineExceeded"
    eventually(lambda: len(tenant.outcomes("elsewhere")) == 2 and tenant.settled("elsewhere"), "elsewhere")
    entries = [(entry["action"], entry["outcome"]) for entry in tenant.status("elsewhere")["history"]]
    assert entries == [("Update", "Failed"), ("Start", "CarriedOut")]
    assert tenant.pool("elsewhere") == A10G
    for name in ("nowhere", "back"):
        eventually(lambda name=name: tenant.outcomes(name) == ["Failed"], f"{name} has nowhere to go")  # type: ignore[misc]
    eventually(lambda: reported(tenant, "nowhere", "Placed")[1] == "NoFeasiblePool", "it says so")
    assert f"pool {GONE} is gone: declare it again, or allow other pools" in reported(tenant, "nowhere", "Placed")[2]
    # It does not go back to where there is no room, and is a job to be started where it is.
    assert f"there is no room on {GONE}, where it came from" in tenant.status("back")["history"][-1]["message"]
    eventually(lambda: reported(tenant, "back", "Placed")[1] == "WaitingForCapacity", "it waits for its target")

    tenant.edit("back", lambda spec: spec.update(placement=on(GONE, DEAD, A10G)))
    eventually(lambda: tenant.pool("back") == A10G and tenant.settled("back"), "another pool is allowed")
    change_pool(client, GONE)
    eventually(lambda: tenant.pool("nowhere") == GONE and tenant.settled("nowhere"), "it is declared again")
    assert tenant.outcomes("nowhere") == ["Failed"]
    for name in ("stuck", "elsewhere", "nowhere", "back"):
        tenant.only_child(name)
