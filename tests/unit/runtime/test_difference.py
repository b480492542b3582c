"""What is worth a write, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.runtime.difference import Difference, alike, difference


def condition(**more: Any) -> dict[str, Any]:
    return {"type": "Placed", "status": "True", "reason": "Running", "message": "4 chips, $5.67/h", **more}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {}, Difference.NONE),
        ({"moves": 1}, {"moves": 2}, Difference.STATE),
        ({"migration": {"phase": "Draining"}}, {}, Difference.STATE),
        ({"conditions": [condition()]}, {"conditions": [condition(message="4 chips, $5.68/h")]}, Difference.NONE),
        ({"conditions": [condition()]}, {"conditions": [condition(message="8 chips, $5.67/h")]}, Difference.COSMETIC),
        ({"conditions": [condition()]}, {"conditions": [condition(message="other words")]}, Difference.COSMETIC),
        ({"conditions": [condition()]}, {"conditions": [condition(status="False")]}, Difference.STATE),
        ({"conditions": [condition()]}, {"conditions": [condition(reason="Starting")]}, Difference.STATE),
        ({"conditions": [condition()]}, {"conditions": [condition(observedGeneration=2)]}, Difference.STATE),
        ({"conditions": [condition()]}, {"conditions": [condition(), condition(type="Failed")]}, Difference.STATE),
        ({"profile": {"samplesPerSecond": "1000"}}, {"profile": {"samplesPerSecond": "1040"}}, Difference.NONE),
        ({"profile": {"samplesPerSecond": "1000"}}, {"profile": {"samplesPerSecond": "1100"}}, Difference.COSMETIC),
        ({"profile": {"inputWait": "0.01"}}, {"profile": {"inputWait": "0.02"}}, Difference.NONE),
        ({"profile": {"inputWait": "0.01"}}, {"profile": {"inputWait": "0.20"}}, Difference.COSMETIC),
        ({"profile": {"bottleneck": "Compute"}}, {"profile": {"bottleneck": "InputBound"}}, Difference.STATE),
        ({"profile": {"measuredAt": "a"}}, {"profile": {"measuredAt": "b"}}, Difference.NONE),
        ({}, {"profile": {"inputWait": "0.01"}}, Difference.STATE),
        ({"cost": {"spent": "100", "asOf": "a"}}, {"cost": {"spent": "110", "asOf": "b"}}, Difference.NONE),
        ({"cost": {"spent": "100"}}, {"cost": {"spent": "140"}}, Difference.MONEY),
        ({}, {"columns": {"saved": "0.00"}}, Difference.NONE),
        ({"columns": {"perHour": "8.05"}}, {"columns": {"perHour": "9.00"}}, Difference.NONE),
        ({"cost": {"saved": "0.00"}}, {"cost": {"saved": "0.003"}}, Difference.NONE),
    ],
)
def test_difference(old: dict[str, Any], new: dict[str, Any], expected: Difference) -> None:
    assert difference(old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("measured 2,557 samples/s", "measured 2,560 samples/s", True),
        ("measured 2,557 samples/s", "measured 3,557 samples/s", False),
        ("r1 on a10g", "r2 on a10g", False),
        ("1e-7 dollars", "1.01e-7 dollars", True),
        ("16% less than now", "15% less than now", True),
        ("0.7% less than now", "0.9% less than now", True),
        ("16% less than now", "12% less than now", False),
        ("1 of 8 pods", "2 of 8 pods", False),
        ("on 4% chips", "on 4 chips", False),
        ("waits", "runs", False),
    ],
)
def test_alike(old: str, new: str, same: bool) -> None:
    assert alike(old, new) is same
