"""Why a pool that has jobs can't be used: each cause has its own remedy."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cluster.client import Listing
from rightpool.contract import LABEL_SOURCE, SOURCE_DISCOVERED
from rightpool.hardware.catalog import load_catalog
from rightpool.runtime.observe.pool_inventory import take_inventory, why_unusable
from rightpool.runtime.observe.usage import ChipUsage

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
        ([stored(accelerator="A10G-24G")], "until it is corrected (spec.accelerator: unknown accelerator"),
        ([stored(chipsPerNode="many")], "until it is corrected (spec: chipsPerNode"),
        ([stored({LABEL_SOURCE: SOURCE_DISCOVERED})], "pool a has no nodes any more: bring them back"),
    ],
    ids=["there", "deleted", "unknown", "unreadable", "no-nodes"],
)
def test_why_unusable(objects: list[dict[str, Any]], message: str | None) -> None:
    found = why_unusable("a", take_inventory(objects, [], [], ChipUsage(NoPods(), interval=0.0), load_catalog()))
    assert found == message or (
        message is not None and found is not None and message in found and found.startswith("pool a ")
    )
