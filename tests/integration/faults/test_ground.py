"""What a running job stands on gives way: its node, its pod, what is known of its pool, the pool itself.

One operator looks after a job for each. Each story does to its own jobs what it is about, all at the same time.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chaos.operators import Nursery
from devcluster.cluster import Running
from devcluster.processes import Supervisor
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, PROFILED_JOBS
from tests.integration.faults.acts import collect, evict, lose_node
from tests.integration.faults.conftest import make_site, put
from tests.integration.faults.fleet import (
    A10G,
    A100,
    DEAD,
    EDITED,
    GONE,
    POOLS,
    PRICED,
    SHAKY,
    Body,
    Tenant,
    new_image,
)
from tests.integration.faults.site import Site, Watchman
from tests.integration.runtime.harness import eventually

pytestmark = pytest.mark.cluster

Story = Callable[[Tenant, Running], None]
SECONDS = 400.0
HOUR = 3600.0
# Four chips of an A10G do so many samples/s. At half of that, for as long as it is believed, the deadline is missed.
RATE, SHARE = 2443.6, 0.7
WHOLE_NODE: Body = {
    "job": {"chipsPerReplica": 4, "replicas": 1},
    "elasticity": {"minChips": 4, "maxChips": 4},
}


def on(*pools: str) -> Body:
    return {"pools": {"allow": list(pools)}}


def pressed() -> dict[str, Any]:
    """A whole node, and a deadline that is met there; if it were slower there, an A100 would have to meet it."""
    deadline = (datetime.now(UTC) + timedelta(seconds=HOUR)).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        **WHOLE_NODE,
        "targets": {"deadline": deadline},
        "progress": {"totalSamples": int(RATE * HOUR * SHARE)},
    }


@pytest.fixture(scope="module")
def ground(
    client: ClusterClient, nursery: Nursery, watchman: Watchman, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("ground")
    with make_site(client, nursery, watchman, folder) as site:
        site.operate()
        tenant, slow_to_stop = site.tenant, {"stop-delay": "10m"}
        tenant.train("rests", placement=on(SHAKY, A100), **pressed())
        tenant.train("evicted", placement=on(SHAKY, A100), **pressed())
        tenant.train("arrives", placement=on(A100, SHAKY), **WHOLE_NODE)
        tenant.train("edited", placement=on(EDITED))
        tenant.train("priced", placement=on(PRICED))
        tenant.train("stuck", placement=on(DEAD, A10G))
        tenant.train("elsewhere", placement=on(GONE, A10G), adaptation={"mode": "Off"}, play=slow_to_stop)
        tenant.train("nowhere", placement=on(GONE), play=slow_to_stop)
        tenant.train("back", placement=on(GONE, DEAD))
        tenant.train("heir", placement=on(A10G))
        yield site


# --- what is asked ---------------------------------------------------------------------------------------------------


def said(tenant: Tenant, name: str, kind: str) -> tuple[str | None, str | None, str]:
    condition = tenant.condition(name, kind)
    return condition.get("status"), condition.get("reason"), condition.get("message", "")


def measured(tenant: Tenant, name: str) -> bool:
    return said(tenant, name, "Profiled")[0] == "True"


def steady(tenant: Tenant, name: str) -> set[str]:
    """The pods of a job that runs and is known; its chips are paid for."""
    eventually(lambda: tenant.settled(name) and measured(tenant, name), SECONDS, f"{name} runs and is measured")
    return tenant.uids(name)


def undecided(tenant: Tenant, name: str) -> None:
    """Nothing was ever decided about it but its start."""
    status = tenant.status(name)
    assert status["ledgerCount"] == 1 and not status.get("migration") and not status.get("history"), status


def spent(tenant: Tenant, name: str) -> float:
    return float((tenant.status(name).get("cost") or {}).get("spent") or 0.0)


# --- what is done ----------------------------------------------------------------------------------------------------


def change_pool(client: ClusterClient, name: str, **changes: Any) -> None:
    """Edit a pool; None leaves a field out."""
    spec = {key: value for key, value in {**POOLS[name], **changes}.items() if value is not None}
    put(client, ACCELERATOR_POOLS, name, {"spec": spec})


# --- nodes and pods --------------------------------------------------------------------------------------------------


def a_node_goes_at_rest(tenant: Tenant, cluster: Running) -> None:
    interrupted(tenant, "rests", lose_node)


def a_pod_is_evicted_at_rest(tenant: Tenant, cluster: Running) -> None:
    interrupted(tenant, "evicted", evict)


def interrupted(tenant: Tenant, name: str, act: Callable[[Tenant, str], None]) -> None:
    """The Job makes another pod, and the operator takes it for no slower one."""
    before = steady(tenant, name)
    act(tenant, name)
    eventually(lambda: (now := tenant.uids(name)) and not now & before, SECONDS, f"{name} has another pod")
    steady(tenant, name)
    undecided(tenant, name)
    assert tenant.status(name)["placement"]["revision"] == 1
    tenant.only_child(name)


def a_node_goes_in_a_move(tenant: Tenant, cluster: Running) -> None:
    """As soon as the job is seen to run on the target; whether it is verified by then depends on the machine."""
    eventually(lambda: tenant.pool("arrives") == SHAKY and tenant.uids("arrives"), SECONDS, "it is on its target")
    before = tenant.uids("arrives")
    lose_node(tenant, "arrives")
    eventually(lambda: (now := tenant.uids("arrives")) and not now & before, SECONDS, "it has another pod")
    eventually(lambda: tenant.outcomes("arrives") and tenant.settled("arrives"), SECONDS, "the move is over")
    assert tenant.outcomes("arrives") == ["Verified"], "an interruption is no bad move"
    assert (tenant.pool("arrives"), tenant.status("arrives")["placement"]["revision"]) == (SHAKY, 2)
    tenant.only_child("arrives")


# --- what is known of the pool ---------------------------------------------------------------------------------------


def the_accelerator_becomes_unknown(tenant: Tenant, cluster: Running) -> None:
    """Of the pool that a job runs on."""
    pods = steady(tenant, "edited")
    change_pool(tenant.client, EDITED, accelerator="A100-SMX4")
    eventually(lambda: said(tenant, "edited", "Degraded")[1] == "AcceleratorUnknown", SECONDS, "the job says so")
    message = said(tenant, "edited", "Degraded")[2]
    assert EDITED in message and "unknown accelerator 'A100-SMX4'; did you mean A100-SXM4" in message
    # It would be cheaper elsewhere, and what it is now nobody knows.
    tenant.edit("edited", lambda spec: spec.update(placement=on(EDITED, A10G)))
    edited = tenant.job("edited")["metadata"]["generation"]

    def held() -> bool:
        condition = tenant.condition("edited", "Migrating")
        return (condition["reason"], condition["observedGeneration"]) == ("NoFeasiblePool", edited)

    eventually(held, SECONDS, "nothing is decided")
    eventually(lambda: EDITED in said(tenant, "edited", "CostEfficient")[2], SECONDS, "nothing is compared")
    assert said(tenant, "edited", "Placed")[0] == "True" and tenant.uids("edited") == pods, "it runs on, untouched"
    undecided(tenant, "edited")
    change_pool(tenant.client, EDITED)
    eventually(lambda: tenant.outcomes("edited") == ["Verified"] and tenant.settled("edited"), SECONDS, "it moves")
    assert tenant.pool("edited") == A10G
    assert said(tenant, "edited", "Degraded")[0] == "False"


def the_price_goes_missing(tenant: Tenant, cluster: Running) -> None:
    """Of the pool that a job runs on, that one starts on, and that one would be moved to."""
    pods = steady(tenant, "priced")
    change_pool(tenant.client, PRICED, price=None)
    eventually(lambda: said(tenant, "priced", "Degraded")[1] == "PriceUnknown", SECONDS, "the job says so")
    assert "set spec.price" in said(tenant, "priced", "Degraded")[2]
    paid = spent(tenant, "priced")
    assert paid > 0.0
    tenant.train("unpriced", placement=on(PRICED))  # it starts where nobody knows what it costs
    tenant.train("buyer", placement=on(A100, PRICED))  # it would be cheaper there, at the price there was
    steady(tenant, "unpriced")
    buyer = steady(tenant, "buyer")
    verdict = f"{PRICED} has no price and targets.objective is MinimizeCost: set spec.price"
    eventually(lambda: verdict in said(tenant, "buyer", "CostEfficient")[2], SECONDS, "the verdict is told")
    eventually(lambda: said(tenant, "priced", "CostEfficient")[1] == "PriceUnknown", SECONDS, "nothing is compared")
    assert said(tenant, "unpriced", "Degraded")[:2] == ("True", "PriceUnknown")
    cost = tenant.status("unpriced")["cost"]
    assert "perHour" not in cost and not float(cost.get("spent") or 0.0), "it is not known, and not nothing"
    assert (tenant.uids("priced"), tenant.uids("buyer")) == (pods, buyer), "they run on, untouched"
    for name in ("priced", "buyer", "unpriced"):
        undecided(tenant, name)

    change_pool(tenant.client, PRICED)
    eventually(lambda: tenant.outcomes("buyer") == ["Verified"] and tenant.settled("buyer"), SECONDS, "it is bought")
    assert tenant.pool("buyer") == PRICED
    for name in ("priced", "unpriced"):
        eventually(lambda name=name: said(tenant, name, "Degraded")[0] == "False", SECONDS, f"{name} has a price")  # type: ignore[misc]
    cost = tenant.status("unpriced")["cost"]
    assert float(cost["perHour"]) == 0.5 and float(cost["unpricedSeconds"]) > 0.0
    assert spent(tenant, "priced") >= paid and tenant.uids("priced") == pods
    undecided(tenant, "priced")


# --- what an earlier job has left ------------------------------------------------------------------------------------


def an_earlier_job_leaves_its_child(tenant: Tenant, cluster: Running) -> None:
    """A ProfiledJob is deleted and made anew while nobody collects what it leaves."""
    steady(tenant, "heir")
    child = tenant.child("heir-r1")
    assert child is not None
    old = child["metadata"]["uid"]
    record = Supervisor(cluster.spec.state).record("kube-controller-manager")
    assert record is not None
    record.identity.signal(signal.SIGSTOP)  # with it Kubernetes' garbage collector
    try:
        tenant.client.delete(PROFILED_JOBS, "heir", tenant.namespace, propagation="Background")
        tenant.train("heir", placement=on(A10G))

        def ended() -> bool:
            body = tenant.child("heir-r1")
            return body is None or body["metadata"]["uid"] != old or "deletionTimestamp" in body["metadata"]

        eventually(ended, SECONDS, "the operator ends it")
    finally:
        record.identity.signal(signal.SIGCONT)
    eventually(lambda: tenant.settled("heir"), SECONDS, "the new one runs")
    child = tenant.child(f"heir-r{tenant.status('heir')['placement']['revision']}")
    assert child is not None and child["metadata"]["uid"] != old
    owners = [reference["uid"] for reference in child["metadata"]["ownerReferences"]]
    assert owners == [tenant.job("heir")["metadata"]["uid"]]
    undecided(tenant, "heir")
    tenant.only_child("heir")


# --- all of it, and the pool itself ----------------------------------------------------------------------------------


STORIES: tuple[Story, ...] = (
    a_node_goes_at_rest,
    a_node_goes_in_a_move,
    a_pod_is_evicted_at_rest,
    the_accelerator_becomes_unknown,
    the_price_goes_missing,
    an_earlier_job_leaves_its_child,
)


@pytest.fixture(scope="module")
def told(ground: Site, own_cluster: Running) -> Iterator[dict[Story, Future[None]]]:
    with ThreadPoolExecutor(len(STORIES)) as threads:
        yield {story: threads.submit(story, ground.tenant, own_cluster) for story in STORIES}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_what_runs_there_is_looked_after(told: dict[Story, Future[None]], story: Story) -> None:
    told[story].result()


def test_a_job_that_cannot_start_where_it_is_to_starts_elsewhere(
    ground: Site, told: dict[Story, Future[None]], client: ClusterClient, impatient: Callable[[], None]
) -> None:
    """Its pods can't be scheduled; or its pool is gone, before an edit takes effect and before a move is undone."""
    tenant = ground.tenant
    wait(told.values())  # their moves are given time
    for name in ("elsewhere", "nowhere"):
        eventually(lambda name=name: tenant.settled(name), SECONDS, f"{name} runs")  # type: ignore[misc]
        assert tenant.pool(name) == GONE
        tenant.edit(name, new_image)
    for name in ("elsewhere", "nowhere"):
        eventually(lambda name=name: tenant.phase(name) == "Draining", SECONDS, f"{name} is being ended")  # type: ignore[misc]
    eventually(lambda: (tenant.pool("back"), tenant.phase("back")) == (DEAD, "Starting"), SECONDS, "it has left")
    client.delete(ACCELERATOR_POOLS, GONE)
    for name in ("elsewhere", "nowhere"):
        eventually(lambda name=name: "is gone" in said(tenant, name, "Degraded")[2], SECONDS, f"{name} says so")  # type: ignore[misc]
        for pod in tenant.pods(name):
            collect(tenant, pod)
    for name in ("elsewhere", "nowhere"):
        eventually(lambda name=name: tenant.phase(name) == "Starting", SECONDS, f"{name} is to start")  # type: ignore[misc]
        assert tenant.outcomes(name) == [] and not tenant.children(name)
    assert tenant.outcomes("stuck") == [], "a start is given time"
    impatient()

    eventually(lambda: tenant.outcomes("stuck") == ["CarriedOut"] and tenant.settled("stuck"), SECONDS, "stuck")
    assert tenant.pool("stuck") == A10G
    assert tenant.status("stuck")["history"][-1]["reason"] == "StartDeadlineExceeded"
    eventually(lambda: len(tenant.outcomes("elsewhere")) == 2 and tenant.settled("elsewhere"), SECONDS, "elsewhere")
    entries = [(entry["action"], entry["outcome"]) for entry in tenant.status("elsewhere")["history"]]
    assert entries == [("Update", "Failed"), ("Start", "CarriedOut")]
    assert tenant.pool("elsewhere") == A10G
    for name in ("nowhere", "back"):
        eventually(lambda name=name: tenant.outcomes(name) == ["Failed"], SECONDS, f"{name} has nowhere to go")  # type: ignore[misc]
        eventually(lambda name=name: said(tenant, name, "Placed")[1] == "NoFeasiblePool", SECONDS, f"{name} says so")  # type: ignore[misc]
        assert f"pool {GONE} is gone: declare it again, or allow other pools" in said(tenant, name, "Placed")[2]
    assert f"pool {GONE} is gone" in tenant.status("back")["history"][-1]["message"]

    tenant.edit("back", lambda spec: spec.update(placement=on(GONE, DEAD, A10G)))
    eventually(lambda: tenant.pool("back") == A10G and tenant.settled("back"), SECONDS, "another pool is allowed")
    change_pool(client, GONE)
    eventually(lambda: tenant.pool("nowhere") == GONE and tenant.settled("nowhere"), SECONDS, "it is declared again")
    assert tenant.outcomes("nowhere") == ["Failed"]
    for name in ("stuck", "elsewhere", "nowhere", "back"):
        tenant.only_child(name)
