"""Events of pools, as `kubectl describe` shows them, across processes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.kubectl import Kubectl
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.events import EventRecorder
from rightpool.cluster.resources import ACCELERATOR_POOLS, EVENTS
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.node import NodeFacts
from rightpool.planning.offers.enumerate import closed_pools
from rightpool.runtime.act.pool_publisher import PoolPublisher
from rightpool.runtime.act.status_publisher import StatusPublisher
from rightpool.runtime.observe.pool_inventory import take_inventory
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body
from tests.patience import eventually
from tests.unit.planning.jobs import fresh, spec

pytestmark = pytest.mark.cluster

SPEC = {
    "accelerator": "A100-SXM4-80GB",
    "chipsPerNode": 8,
    "resourceName": "nvidia.com/gpu",
    "nodeSelector": {"karpenter.sh/capacity-type": "on-demand", "rightpool.test/none": "here"},
    "price": {"perChipHour": "3.5"},
    "maxChips": 8,
}
CONTRADICTORY = {**SPEC, "price": {"perChipHour": "3.5", "spotPerChipHour": "1.25"}}


class Pool:
    """One AcceleratorPool that a platform team declares."""

    def __init__(self, client: ClusterClient) -> None:
        self.client = client
        self.name = f"events-{uuid.uuid4().hex[:8]}"

    def declare(self, spec: Body) -> None:
        body = {"metadata": {"name": self.name}, "spec": spec}
        self.client.apply(ACCELERATOR_POOLS, body, manager="platform-team")

    def ready(self) -> str:
        """The reason of Ready."""
        status = self.client.get(ACCELERATOR_POOLS, self.name).get("status") or {}
        return next((c["reason"] for c in status.get("conditions", ()) if c["type"] == "Ready"), "")

    def statements(self) -> list[tuple[str, str, int]]:
        """Type, reason and count of the Events. They come within a second, so that their times say no order."""
        events = [e for e in self.client.list_all(EVENTS, "default") if e["involvedObject"].get("name") == self.name]
        return sorted((event["type"], event["reason"], event["count"]) for event in events)


@pytest.fixture
def pool(client: ClusterClient) -> Iterator[Pool]:
    pool = Pool(client)
    yield pool
    client.delete(ACCELERATOR_POOLS, pool.name)


def test_a_contradictory_price_is_told_once_and_so_is_its_correction(
    start: Start, pool: Pool, kubeconfig: Path
) -> None:
    pool.declare(CONTRADICTORY)
    first = start("a")
    wrong = ("Warning", "PriceContradictory", 1)
    eventually(lambda: pool.statements() == [wrong])
    first.terminate()
    second = start("b")
    eventually(lambda: second.logged("INFO    leader"))
    marker = Pool(pool.client)
    try:
        marker.declare(SPEC)
        eventually(lambda: marker.ready() == "NoNodes")  # the second one has written statuses
        assert pool.statements() == [wrong], "a new process repeats nothing"
        assert marker.statements() == [], "an autoscaler may fill it"
    finally:
        pool.client.delete(ACCELERATOR_POOLS, marker.name)
    described = Kubectl(kubeconfig)("describe", "acceleratorpool", pool.name)
    shown = described.partition("Events:")[2]
    assert "PriceContradictory" in shown, described
    assert "remove the spot price" in shown
    unpriced = {key: value for key, value in SPEC.items() if key != "price"}
    pool.declare({**unpriced, "accelerator": "Unheard-Of"})
    worse = [("Warning", "AcceleratorUnknown", 1), wrong, ("Warning", "PriceUnknown", 1)]
    eventually(lambda: pool.statements() == worse)
    pool.declare(SPEC)
    eventually(lambda: pool.statements() == [("Normal", "NoNodes", 1), ("Normal", "PriceDeclared", 1), *worse])
    assert pool.ready() == "NoNodes"


def test_that_every_job_rules_a_pool_out_is_told_once_and_so_is_its_end(client: ClusterClient, pool: Pool) -> None:
    """Published as the operator does. An operator of all namespaces would act on the jobs of other tests."""
    store, recorder = Store(), EventRecorder(client, leads=lambda: True, term=lambda: 0, instance="a")
    publisher = PoolPublisher(client, store, StatusPublisher(client, store, recorder.post))
    pool.declare(SPEC)
    nodes = [NodeFacts("node-0", SPEC["nodeSelector"], chips={"nvidia.com/gpu": 8})]
    placement = {"pools": {"deny": [pool.name]}}

    def publish() -> None:
        stored = client.get(ACCELERATOR_POOLS, pool.name)
        inventory = take_inventory([stored], nodes, [], ChipUsage(client, interval=0.0), load_catalog())
        closed = closed_pools([fresh(made=spec(placement=placement))], inventory.inventory.pools)
        publisher.publish(inventory, time.time(), closed=closed)

    for _ in range(3):
        publish()
    warning = ("Warning", "NobodyAllowed", 1)
    eventually(lambda: pool.statements() == [warning])
    placement["pools"] = {"allow": [pool.name]}
    publish()
    eventually(lambda: pool.statements() == [("Normal", "JobsAllowed", 1), warning])
