"""Taints and tolerations, by the scheduler's rules."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.hardware.node import NodeFacts, Taint, repelled_by, tolerates

GPU = Taint("nvidia.com/gpu", "NoSchedule", "present")


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "nvidia.com/gpu", "operator": "Exists"}], True),
        ([{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}], True),
        ([{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}], False),
        ([{"key": "nvidia.com/gpu", "value": "present"}], True),
        ([{"key": "nvidia.com/gpu", "operator": "Equal", "value": "absent"}], False),
        ([{"key": "nvidia.com/gpu"}], False),
        ([{"key": "google.com/tpu", "operator": "Exists"}], False),
        ([{"value": "present"}], False),
    ],
)
def test_tolerations(tolerations: list[dict[str, Any]], expected: bool) -> None:
    assert tolerates(tolerations, GPU) is expected


def test_prefer_no_schedule_keeps_no_pod_away() -> None:
    assert tolerates([], Taint("slow", "PreferNoSchedule"))


def test_the_taint_that_keeps_pods_away_is_named() -> None:
    maintenance = Taint("maintenance", "NoExecute")
    node = NodeFacts("n", taints=(GPU, maintenance))
    assert repelled_by(node, [{"key": "nvidia.com/gpu", "operator": "Exists"}]) == maintenance
    assert repelled_by(node, [{"operator": "Exists"}]) is None
    assert repelled_by(NodeFacts("n"), []) is None
