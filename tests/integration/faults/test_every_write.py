"""An operator is killed right before and right after every write.

Each test follows one kind of transition. The restarted operator has only what the API server stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import PLACEMENT_POLICIES, PROFILED_JOBS
from tests.chaos.operators import ProcessPool
from tests.chaos.stream import StreamEvent
from tests.integration.faults.conftest import make_site, put
from tests.integration.faults.fleet import A10G, A100, DEAD, FAIR, POLICY, SHORT, SLOW, new_image
from tests.integration.faults.site import CrashingOperator, NamespaceWatch, Site

pytestmark = pytest.mark.cluster

# Writes as `tests.chaos.fork_server` names them. Of a status: revision, has run, decision, phase, rolling back.
STARTS = ("status bert r1 False None None", "POST jobs/bert-r1", "PATCH jobs/bert-r1", "status bert r1 True None None")
LEAVES = (
    *("status bert r1 True d-2 Planned", "status bert r1 True d-2 Checkpointing", "status bert r1 True d-2 Draining"),
    *("DELETE jobs/bert-r1", "status bert r2 False d-2 Starting", "POST jobs/bert-r2", "PATCH jobs/bert-r2"),
)
PROVES = ("status bert r2 True d-2 WarmingUp", "status bert r2 True d-2 Verifying")
RETURNS = (
    *("DELETE jobs/bert-r2", "status bert r3 False d-2 Starting True", "POST jobs/bert-r3", "PATCH jobs/bert-r3"),
    "status bert r3 True None None None 1",
)


def here(*pools: str) -> dict[str, object]:
    return {"pools": {"allow": list(pools)}}


def starts(site: Site) -> None:
    operator = CrashingOperator(site)
    site.tenant.train("bert", replicas=2, placement=here(A10G))
    operator.until(lambda: site.tenant.settled("bert"), "it runs")
    ended(operator, revision=1, pool=A10G)
    assert operator.missed(*STARTS, "POST services/bert-r1") == []


def updated(site: Site) -> None:
    operator = CrashingOperator(site)
    site.tenant.train("bert", replicas=2, placement=here(A10G))
    operator.until(lambda: site.tenant.settled("bert"), "it runs")
    site.tenant.edit("bert", new_image)
    operator.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it runs anew")
    ended(operator, "CarriedOut", revision=2, pool=A10G)
    assert operator.missed(*STARTS, *LEAVES, "POST services/bert-r2", "status bert r2 True None None None 1") == []


def resized(site: Site) -> None:
    operator = CrashingOperator(site)
    site.tenant.train("bert", elasticity={"minChips": 1, "maxChips": 2, "batch": "PerChip"}, placement=here(A10G))
    operator.until(lambda: site.tenant.settled("bert"), "it runs")
    site.tenant.edit("bert", lambda spec: spec["workload"]["job"].update(replicas=2))
    operator.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it runs anew")
    ended(operator, "CarriedOut", revision=2, pool=A10G, chips=2)
    assert operator.missed(*STARTS, *LEAVES, "POST services/bert-r2", "status bert r2 True None None None 1") == []


def verified(site: Site) -> None:
    operator = CrashingOperator(site)
    site.tenant.train("bert", placement=here(A100, A10G))
    operator.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it moves")
    ended(operator, "Verified", revision=2, pool=A10G)
    assert site.tenant.status("bert")["moves"] == 1
    assert operator.missed(*STARTS, *LEAVES, *PROVES, "status bert r2 True None None None 1") == []


def rolled_back(site: Site) -> None:
    operator = CrashingOperator(site)
    site.tenant.train("bert", placement=here(A100, SLOW))
    operator.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it moves there and back")
    ended(operator, "RolledBack", revision=3, pool=A100)
    assert [avoided["pool"] for avoided in ProfiledJobStatus.restored(site.tenant.status("bert"))["avoid"]] == [SLOW]
    undone = ("status bert r2 True d-2 Checkpointing True", "status bert r2 True d-2 Draining True")
    assert operator.missed(*STARTS, *LEAVES, *PROVES, *undone, *RETURNS) == []


def given_up(site: Site) -> None:
    operator = CrashingOperator(site)
    site.tenant.train("bert", placement=here(A100, DEAD))
    # Its start deadline is shortened only when the others are done.
    operator.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it is back")
    ended(operator, "RolledBack", revision=3, pool=A100)
    assert site.tenant.status("bert")["history"][-1]["reason"] == "StartDeadlineExceeded"
    assert operator.missed(*STARTS, *LEAVES, "status bert r2 False d-2 Draining True", *RETURNS) == []


def gave_way(site: Site) -> None:
    """A plan of two: one job lets another, which has waited for too long, have half of the chips of a full pool."""
    chips: dict[str, int] = {}
    promised: list[int] = []

    def watch(event: StreamEvent) -> None:
        if event.resource is PROFILED_JOBS:
            status = event.body.get("status") or {}
            migration = status.get("migration") or {"phase": None}
            left = migration["phase"] not in (None, "Planned", "Checkpointing")
            place = migration["to"] if left else status.get("placement") or {"chips": 0}
            chips[event.body["metadata"]["name"]] = int(place["chips"])
            promised.append(sum(chips.values()))

    site.namespace_watch.listen(site.namespace, watch)
    operator = CrashingOperator(site)
    may = {"minChips": 4, "maxChips": 8, "batch": "PerChip"}
    gives = {"adaptation": {"yield": "Move"}, "elasticity": may}
    site.tenant.train("bert", job={"chipsPerReplica": 4, "replicas": 2}, placement=here(FAIR), **gives)
    operator.until(lambda: site.tenant.settled("bert"), "it runs")
    site.tenant.train(
        "late", job={"chipsPerReplica": 4}, elasticity={"minChips": 4, "maxChips": 4}, placement=here(FAIR)
    )
    operator.until(lambda: all(map(site.tenant.settled, ("bert", "late"))), "both run")
    assert site.tenant.status("bert")["history"][-1]["reason"] == "FleetGains"
    ended(operator, "CarriedOut", revision=2, pool=FAIR, chips=4)
    assert max(promised) == 8, "no chip is promised twice"
    assert operator.missed(*STARTS, *LEAVES, *(step.replace("bert", "late") for step in STARTS)) == []


def ended(operator: CrashingOperator, *outcomes: str, revision: int, pool: str, **more: int) -> None:
    """The job is placed as expected, nothing is left over, and the operator crashed at every write."""
    tenant = operator.site.tenant
    placement = tenant.status("bert")["placement"]
    assert tenant.outcomes("bert") == list(outcomes)
    assert (placement["revision"], placement["pool"]) == (revision, pool)
    assert {key: placement[key] for key in more} == more
    tenant.only_child("bert")
    assert operator.crashes in (len(operator.points), len(operator.points) - 1), "the last may be unnoticed"
    operator.site.assert_no_violations()


GENTLE = (starts, updated, resized, verified, rolled_back, gave_way)
PLANNED = {**POLICY, "fleet": {"mode": "Auto", "maxWait": "5s"}}


@pytest.fixture(scope="module")
def transitions(
    client: ClusterClient,
    process_pool: ProcessPool,
    namespace_watch: NamespaceWatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Future[None]]]:
    """The result of each transition."""

    def go(transition: Callable[[Site], None], folder: Path) -> None:
        with make_site(client, process_pool, namespace_watch, folder) as site:
            transition(site)

    folder = tmp_path_factory.mktemp("transitions")
    with ThreadPoolExecutor(len(GENTLE) + 1) as threads, ExitStack() as stack:
        stack.callback(put, client, PLACEMENT_POLICIES, "default", {"spec": POLICY})
        put(client, PLACEMENT_POLICIES, "default", {"spec": PLANNED})
        going = {transition.__name__: threads.submit(go, transition, folder) for transition in (*GENTLE, given_up)}
        for transition in GENTLE:
            going[transition.__name__].exception()
        # Only now: several restarts take longer than the shortened start deadline.
        put(client, PLACEMENT_POLICIES, "default", {"spec": {**PLANNED, "startDeadline": SHORT}})
        yield going


@pytest.mark.parametrize("transition", [*(transition.__name__ for transition in GENTLE), given_up.__name__])
def test_killed_at_every_write(transitions: dict[str, Future[None]], transition: str) -> None:
    transitions[transition].result()
