"""Chips of other pods: which pods are listed, and how errors are handled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import Forbidden, NotFound, Unavailable
from rightpool.cluster.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from rightpool.contract import LABEL_JOB
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.node import NodeFacts
from rightpool.runtime.observe.pool_inventory import take_inventory
from rightpool.runtime.observe.usage import ChipUsage
from tests.unit.hardware.test_devices import CLASS, claim, gpu, slice_of
from tests.unit.runtime.makers import Body, pod

GPU = "nvidia.com/gpu"


class Lister:
    """Pods by namespace; under None those of all namespaces."""

    def __init__(self, pods: dict[str | None, list[Body]]) -> None:
        self.pods = pods
        self.others: dict[Resource, list[Body]] = {}
        self.trouble: Exception | None = None
        self.asked: list[str | None] = []

    def pages(self, resource: Resource, namespace: str | None = None, **selectors: Any) -> Iterable[Listing]:
        if resource is not PODS:
            if self.trouble is not None:
                raise self.trouble
            yield Listing(self.others.get(resource, []), "1", "")
            return
        assert selectors["labels"] == f"!{LABEL_JOB}"
        self.asked.append(namespace)
        if self.trouble is not None:
            raise self.trouble
        for body in self.pods[namespace]:
            yield Listing([body], "1", "")


def test_pods_of_all_namespaces_are_listed_at_once() -> None:
    lister = Lister({None: [pod(uid="a"), pod(uid="b")]})
    usage = ChipUsage(lister, interval=0.0)
    assert usage.refresh({GPU})
    assert usage.by_node((), {GPU}) == {("node-1", GPU): 8}
    assert lister.asked == [None]


def test_only_pods_of_watched_namespaces_are_listed() -> None:
    """There may be no right to list the others, and a refusal would hide those that there is a right to."""
    lister = Lister({"research": [pod()], "prod": [pod()]})
    usage = ChipUsage(lister, interval=0.0, namespaces=("research", "prod"))
    assert usage.refresh({GPU})
    assert usage.by_node((), {GPU}) == {("node-1", GPU): 8}
    assert lister.asked == ["research", "prod"]


def test_the_last_count_is_kept_after_an_error() -> None:
    lister = Lister({None: [pod()]})
    usage = ChipUsage(lister, interval=0.0, clock=lambda: 0.0)
    usage.refresh({GPU})
    for lister.trouble in (Forbidden("no"), Unavailable("not now")):
        assert not usage.refresh({GPU})
        assert usage.by_node((), {GPU}) == {("node-1", GPU): 4}
        assert usage.refused is None


def test_a_count_that_may_not_be_repeated_is_kept_for_some_minutes() -> None:
    """Rights that are changed in two steps come back; chips of pods that have ended must not stay in use for ever."""
    lister, now = Lister({None: [pod()]}), 0.0
    usage = ChipUsage(lister, interval=60.0, clock=lambda: now)
    usage.refresh({GPU})
    lister.trouble = Forbidden("pods is forbidden")
    for moment in (60.0, 540.0):
        now = moment
        assert not usage.refresh({GPU})
        assert usage.refused is None and usage.by_node((), {GPU}) == {("node-1", GPU): 4}
    now = 600.0
    assert usage.refresh({GPU})
    assert (usage.refused, usage.by_node((), {GPU})) == ("pods is forbidden", {})
    now = 660.0
    assert not usage.refresh({GPU}), "that is known"
    now, lister.trouble = 720.0, None
    assert usage.refresh({GPU})
    assert usage.refused is None and usage.by_node((), {GPU}) == {("node-1", GPU): 4}


def test_nothing_is_known_where_pods_may_never_be_counted() -> None:
    lister = Lister({None: []})
    lister.trouble = Forbidden("no right")
    usage = ChipUsage(lister, interval=0.0)
    assert usage.refresh({GPU}), "the chips of no pod are not those of pods that are not seen"
    assert usage.refused == "no right"
    lister.trouble = None
    assert usage.refresh({GPU})
    assert usage.refused is None


def offering_devices(lister: Lister) -> Lister:
    lister.others = {
        DEVICE_CLASSES: [CLASS],
        RESOURCE_SLICES: [slice_of("n", *(gpu(f"gpu-{i}") for i in range(4)))],
        RESOURCE_CLAIMS: [claim("gpu-0", "gpu-1")],
    }
    return lister


def test_a_node_whose_chips_are_devices_is_a_pool() -> None:
    """It lists no chips of its own, and pods with claims request none."""
    by_name = pod(uid="a")
    by_name["spec"] |= {"nodeName": "n", "containers": [{"name": "x", "resources": {"limits": {GPU: "1"}}}]}
    lister = offering_devices(Lister({None: [by_name]}))
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "4"}
    nodes, usage, catalog = [NodeFacts("n", labels)], ChipUsage(lister, interval=0.0), load_catalog()
    assert take_inventory([], nodes, [], usage, catalog).inventory.pools == {}
    assert usage.refresh(())
    pool = take_inventory([], nodes, [], usage, catalog).inventory.pools["h100"]
    assert (pool.total, pool.free, pool.resource_name) == (4, 4 - 2 - 1, GPU)
    known = usage.devices
    assert not usage.refresh(()) and usage.devices is known


def test_devices_that_are_not_listed_any_more_are_gone_and_no_answer_changes_nothing() -> None:
    usage = ChipUsage(lister := offering_devices(Lister({None: []})), interval=0.0)
    usage.refresh({GPU})
    known = usage.devices
    lister.trouble = Unavailable("not now")
    assert not usage.refresh({GPU}) and usage.devices is known
    lister.trouble = NotFound("the server could not find the requested resource")
    assert usage.refresh({GPU}) and not usage.devices.offered
