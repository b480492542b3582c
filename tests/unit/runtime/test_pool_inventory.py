"""The inventory of pools: when it is made again, and why a pool that has jobs can't be used."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cluster.client import Listing
from rightpool.contract import LABEL_SOURCE, SOURCE_DISCOVERED
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.node import NodeFacts
from rightpool.runtime.observe.facts import PodFacts, pod_facts
from rightpool.runtime.observe.pool_inventory import PoolInventory, kept_outcomes, take_inventory, why_unusable
from rightpool.runtime.observe.usage import ChipUsage
from tests.unit.runtime.makers import Body, pod
from tests.unit.runtime.test_usage import Lister

SPEC = {"accelerator": "A10G-24GB", "chipsPerNode": 4, "resourceName": "nvidia.com/gpu", "nodeSelector": {"pool": "a"}}


class NoPods:
    """A cluster without other pods."""

    def pages(self, *_: object, **__: object) -> list[Listing]:
        return []


def stored(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "labels": labels or {}}, "spec": {**SPEC, **spec}}


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([stored()], None),
        ([], "pool a is gone: declare it again"),
        ([stored(accelerator="A10G-24G")], "can't be used: spec.accelerator: unknown accelerator"),
        ([stored(chipsPerNode="many")], "can't be used: spec: chipsPerNode"),
        ([stored({LABEL_SOURCE: SOURCE_DISCOVERED})], "pool a has no nodes any more: bring them back"),
    ],
    ids=["there", "deleted", "unknown", "unreadable", "no-nodes"],
)
def test_why_unusable(objects: list[dict[str, Any]], message: str | None) -> None:
    found = why_unusable("a", take_inventory(objects, [], [], ChipUsage(NoPods(), interval=0.0), load_catalog()))
    assert found == message or (
        message is not None and found is not None and message in found and found.startswith("pool a ")
    )


@pytest.mark.parametrize(("declared", "left"), [("a", ["other"]), ("nobody's", ["ours", "other"])])
def test_nodes_of_a_declared_pool_are_not_said_to_belong_to_none(declared: str, left: list[str]) -> None:
    """No label of theirs names a chip, so that discovery leaves them out."""
    chips = {"nvidia.com/gpu": 4}
    nodes = [NodeFacts("ours", {"pool": "a"}, chips=chips), NodeFacts("other", {"pool": "b"}, chips=chips)]
    objects = [stored(nodeSelector={"pool": declared})]
    found = take_inventory(objects, nodes, [], ChipUsage(NoPods(), interval=0.0), load_catalog())
    assert sorted(name for entry in found.without_pool() for name in entry.nodes) == sorted(left)


def pod_on(node: str) -> PodFacts:
    body = pod()
    body["spec"]["nodeName"] = node
    facts = pod_facts(body)
    assert facts is not None
    return facts


def test_an_inventory_is_kept_until_what_it_is_made_from_changes() -> None:
    others: dict[str | None, list[Body]] = {None: []}
    usage, catalog = ChipUsage(Lister(others), interval=0.0), load_catalog()
    labels, chips = {"pool": "a"}, {"nvidia.com/gpu": 4}
    objects, nodes, pods = (stored(),), (NodeFacts("node-1", labels, chips=chips),), (pod_on("elsewhere"),)
    known = take_inventory(objects, nodes, pods, usage, catalog)

    def free(changed: PoolInventory) -> int:
        assert changed is not known
        return changed.inventory.pools["a"].free

    usage.refresh({"nvidia.com/gpu"})
    assert take_inventory(objects, nodes, pods, usage, catalog, known) is known
    grown = (*nodes, NodeFacts("node-2", labels, chips=chips))
    assert free(take_inventory(objects, grown, pods, usage, catalog, known)) == 8
    assert free(take_inventory(objects, nodes, (pod_on("node-1"),), usage, catalog, known)) == 0
    assert free(take_inventory((stored(chipsPerNode=2),), nodes, pods, usage, catalog, known)) == 2
    others[None] = [pod()]
    usage.refresh({"nvidia.com/gpu"})
    assert free(take_inventory(objects, nodes, pods, usage, catalog, known)) == 0, "others' pods have come"


def test_outcomes_that_can_not_be_read_are_left_out_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    kept = {"a": {**stored(), "status": {"outcomes": [{"move": "m", "finishedAt": "2026-11-01T00:00:00Z"}]}}}
    assert kept_outcomes(kept) == {}
    [record] = caplog.records
    assert record.getMessage() == "status.outcomes of AcceleratorPool a can't be read: tenant: Field required"
