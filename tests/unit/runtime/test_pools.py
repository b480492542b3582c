"""What is written about pools, and by whom: two operators may look after one fleet's namespaces between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rightpool.cluster.client import Listing
from rightpool.cluster.resources import PODS, Resource
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.node import NodeFacts
from rightpool.runtime.facts import pod_facts
from rightpool.runtime.fleet import Fleet, survey_fleet
from rightpool.runtime.pools import pool_status
from rightpool.runtime.usage import ChipUsage
from tests.unit.runtime.makers import Body, pod

NOW = 1_800_000_000.0
SPEC = {
    "accelerator": "A100-SXM4-80GB",
    "chipsPerNode": 8,
    "resourceName": "nvidia.com/gpu",
    "nodeSelector": {"team": "ml"},
}
NODES = [NodeFacts(f"node-{n}", {"team": "ml"}, chips={"nvidia.com/gpu": 8}) for n in (1, 2)]


class Lister:
    """Other people's pods by namespace; None stands for all."""

    def __init__(self, pods: dict[str | None, list[Body]]) -> None:
        self.pods = pods

    def pages(self, resource: Resource, namespace: str | None = None, **_: Any) -> Iterable[Listing]:
        assert resource is PODS
        yield Listing(self.pods[namespace], "1", "")


def surveyed(status: Mapping[str, Any], namespaces: Sequence[str], pods: list[Body]) -> Fleet:
    """The fleet as an operator sees it that looks after these namespaces, in which one job has these pods."""
    usage = ChipUsage(Lister({None: [], **{name: [] for name in namespaces}}), interval=0.0, namespaces=namespaces)
    usage.refresh({"nvidia.com/gpu"})
    stored = {"metadata": {"name": "a100", "uid": "u", "generation": 3}, "spec": SPEC, "status": status}
    facts = [found for body in pods if (found := pod_facts(body)) is not None]
    return survey_fleet([stored], NODES, facts, usage, load_catalog())


def test_who_sees_all_pods_tells_what_is_in_use() -> None:
    status = pool_status("a100", surveyed({}, (), [pod()]), NOW)
    assert status["chips"] == {"total": 16, "allocated": 4, "free": 12}


def test_who_sees_some_pods_says_what_it_knows_of_chips_and_leaves_out_the_rest() -> None:
    fleet = surveyed({}, ("research",), [pod()])
    assert fleet.inventory.pools["a100"].free == 12, "to decide by, it is the best there is"
    assert pool_status("a100", fleet, NOW)["chips"] == {"total": 16}


def test_two_operators_of_disjoint_namespaces_have_nothing_to_correct_in_each_others_words() -> None:
    """Else they write in turn, for ever."""
    status: Mapping[str, Any] = {}
    written = 0
    for moment in range(6):
        one = moment % 2 == 0
        fleet = surveyed(status, ("research",) if one else ("prod",), [pod()] if one else [])
        said = pool_status("a100", fleet, NOW + moment)
        written += said != status
        status = said
    assert written == 1
