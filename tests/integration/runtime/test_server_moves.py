"""A server moves to another pool where its week says so, under requests: real pods, and no request that fails."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.open_loop import OpenLoop
from devcluster.kubectl import Kubectl
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, CONFIG_MAPS, PLACEMENT_POLICIES, SERVICES
from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.demand import DAY, SLOT, Demanded, DemandRecord
from rightpool.profiles.latency import Distribution
from rightpool.profiles.served import RequestCounter, RequestTime, ServedWindow, ServerCounts
from rightpool.reporting.demand_object import demand_object
from tests.integration.cli.test_commands import rightpool
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Fleet
from tests.integration.runtime.test_policy_events import put, stored
from tests.integration.runtime.test_real_failures import pool
from tests.integration.runtime.test_served_requests import answers, image, template, wide
from tests.integration.runtime.test_servers import NAME, answered_by, create, deployment
from tests.patience import eventually

__all__ = ["image", "pool"]

pytestmark = pytest.mark.cluster

SHARED_RATE = 16.0


@contextmanager
def other_pool(client: ClusterClient, pool: str, kubeconfig: Path, resource: str, chips: int) -> Iterator[str]:
    """One like this, whose chips are another resource of the same node."""
    capacity = f"/status/capacity/{resource.replace('/', '~1')}"
    patch = ("patch", "node", "node-0", "--subresource=status", "--type=json")
    kubectl = Kubectl(kubeconfig)
    kubectl(*patch, f'--patch=[{{"op": "add", "path": "{capacity}", "value": "{chips}"}}]')
    name = f"other-{uuid.uuid4().hex[:8]}"
    spec = client.get(ACCELERATOR_POOLS, pool)["spec"] | {"resourceName": resource, "chipsPerNode": chips}
    client.create(ACCELERATOR_POOLS, {"metadata": {"name": name}, "spec": spec})
    yield name
    client.delete(ACCELERATOR_POOLS, name)
    kubectl(*patch, f'--patch=[{{"op": "remove", "path": "{capacity}"}}]')


@pytest.fixture
def other(client: ClusterClient, pool: str, kubeconfig: Path) -> Iterator[str]:
    with other_pool(client, pool, kubeconfig, "rightpool.dev/other-chip", 2) as name:
        yield name


def phase(fleet: Fleet) -> str | None:
    found: str | None = (fleet.status(NAME).get("migration") or {}).get("phase")
    return found


@pytest.fixture
def hasty(client: ClusterClient) -> Iterator[None]:
    """A policy that lets what has just started be moved."""
    before = stored(client)
    put(client, {"minRunTime": "1s"})
    yield
    if before is None:
        client.delete(PLACEMENT_POLICIES, "default")
    else:
        put(client, before["spec"])


def timed(places: Mapping[str, float]) -> DemandRecord:
    """A week at a steady rate, of requests that took so many seconds one by one in each of these places."""
    record, last = DemandRecord(), round(time.time() / SLOT)
    record.fill(Demanded.REQUESTS, dict.fromkeys(range(last - 7 * DAY, last), SHARED_RATE * SLOT))
    for place, seconds in [*places.items()] * 20:
        edges = {RequestTime.WHOLE: Distribution((0.025,), (2000.0,), 2000.0, 2000.0 * seconds)}
        counts = ServerCounts({RequestCounter.REQUESTS: 2000.0}, edges, {})
        record.loads.extend(ServedWindow(last * SLOT, SLOT, counts, 1, True), place, "of before")
    return record


def moved_by_its_week(start: Start, fleet: Fleet, pool: str, other: str, image: str, there: float) -> dict[str, str]:
    """What the history says of its move to the other pool, where requests took so many seconds by the record. Really
    they take 10 ms in both."""
    body = fleet.client.get(ACCELERATOR_POOLS, other)
    body["spec"]["price"] = {"perChipHour": "0.01"}
    fleet.client.replace(ACCELERATOR_POOLS, body)
    create(
        fleet,
        chipsPerReplica=1,
        replicas={"min": 1},
        drain={"quiet": "1s", "timeout": "2s"},
        template=template(image),
        spec={
            "adaptation": {"mode": "Auto", "cooldown": "1s"},
            "placement": {"pools": {"allow": [pool]}},
            "profiling": {"mode": "Off", "interval": "1s", "window": "3s"},
            "targets": {"latency": {"p99": "100ms"}},
        },
    )
    record = timed({f"{pool}/1": 0.01, f"{other}/1": there})
    fleet.client.create(CONFIG_MAPS, demand_object(fleet.namespace, JobKey(fleet.namespace, NAME), record, None))
    start()
    eventually(lambda: answered_by(fleet, "r1", 1), "it answers")
    address = fleet.client.get(SERVICES, NAME, fleet.namespace)["spec"]["clusterIP"]
    url = f"http://{address}:8000/predict?seconds=0.01"
    eventually(lambda: answers(url), "the node sends what comes to the Service to its pods")
    with OpenLoop(SHARED_RATE, lambda number: url) as traffic:
        fleet.edit(NAME, lambda spec: spec["placement"]["pools"].update(allow=[pool, other]))  # which demands no move
        eventually(lambda: deployment(fleet, f"{NAME}-r2"), lambda: str(fleet.condition(NAME, "Migrating")))
        eventually(lambda: "migration" not in fleet.status(NAME), "the move is over")
    assert set(traffic.answered) == {200}, traffic.answered
    entry: dict[str, str] = fleet.status(NAME)["history"][-1]
    assert entry["action"] == "Move"
    return entry


def test_its_week_moves_it_where_a_million_requests_cost_less(
    start: Start, fleet: Fleet, pool: str, other: str, image: str, kubeconfig: Path, hasty: None
) -> None:
    entry = moved_by_its_week(start, fleet, pool, other, image, 0.01)
    assert entry["outcome"] == "Verified", entry
    assert entry["reason"] in ("LatencyHeld", "TooFewRequests"), entry
    eventually(lambda: answered_by(fleet, "r2", 1), "the target answers alone")
    asked = ("explain", NAME, "-n", fleet.namespace, "-o", "json")
    explained = json.loads(rightpool(*asked, kubeconfig=kubeconfig).stdout)["history"][-1]
    for name in ("id", "action", "outcome", "reason"):
        assert explained[name] == entry[name], name
    assert explained["toPerHour"] == float(entry["toPerHour"])
    head, row = wide(kubeconfig, fleet).splitlines()
    assert row[head.index("POOL") :].split()[0] == other
    assert row[head.index("$/H") :].split()[0] == "0.01"


def test_it_comes_back_from_slower_chips_before_a_request_is_late(
    start: Start, fleet: Fleet, pool: str, other: str, image: str, hasty: None
) -> None:
    entry = moved_by_its_week(start, fleet, pool, other, image, 0.001)
    assert (entry["outcome"], entry["reason"]) == ("RolledBack", "TooLate"), entry
    assert "times as long as promised there" in entry["message"]
    eventually(lambda: deployment(fleet, f"{NAME}-r2") is None, "the target is ended")
    assert answered_by(fleet, "r1", 1)
