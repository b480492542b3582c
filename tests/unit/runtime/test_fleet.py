"""Why a pool that jobs were placed on can't be used: each way in which it can be missing has a remedy of its own."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cluster.client import Listing
from rightpool.contract import LABEL_SOURCE, SOURCE_DISCOVERED
from rightpool.hardware.catalog import load_catalog
from rightpool.runtime.fleet import absence, survey_fleet
from rightpool.runtime.usage import ChipUsage

SPEC = {"accelerator": "A10G-24GB", "chipsPerNode": 4, "resourceName": "nvidia.com/gpu", "nodeSelector": {"pool": "a"}}


class Nobody:
    """No pods but ours."""

    def pages(self, *_: object, **__: object) -> list[Listing]:
        return []


def stored(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "labels": labels or {}}, "spec": {**SPEC, **spec}}


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([stored()], None),
        ([], "pool a is gone: declare it again"),
        ([stored(accelerator="A10G-24G")], "until it is corrected (spec.accelerator: unknown accelerator"),
        ([stored(chipsPerNode="many")], "until it is corrected (spec: chipsPerNode"),
        ([stored({LABEL_SOURCE: SOURCE_DISCOVERED})], "pool a has no nodes any more: bring them back"),
    ],
    ids=["there", "deleted", "unknown", "unreadable", "no-nodes"],
)
def test_absence(objects: list[dict[str, Any]], said: str | None) -> None:
    found = absence("a", survey_fleet(objects, [], [], ChipUsage(Nobody(), interval=0.0), load_catalog()))
    assert found == said or (said is not None and found is not None and said in found and found.startswith("pool a "))
