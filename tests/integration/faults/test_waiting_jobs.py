"""Whoever has waited for too long, and is passed over, is found; nobody else is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.environment import POOLS
from tests.chaos.waiting_jobs import WaitingJobs

Body = dict[str, Any]


def asking(name: str, created: int, **status: Any) -> Body:
    about = {"uid": name, "namespace": "ns", "name": name, "creationTimestamp": f"2026-11-29T13:0{created}:00Z"}
    workload, allowed = {"job": {"chipsPerReplica": 2}}, {"pools": {"allow": ["a", "b"]}}
    return {"metadata": about, "spec": {"workload": workload, "placement": allowed}, "status": status}


def waiting(**status: Any) -> Body:
    placed = {"type": "Placed", "status": "False", "reason": "WaitingForCapacity"}
    return asking("waits", 1, conditions=[placed], **status)


def adopting(**status: Any) -> Body:
    body = waiting(**status)
    body["spec"] = {"workloadRef": {"kind": "Job", "name": "own"}, "placement": {"pools": {"allow": ["elsewhere"]}}}
    return body


def own(pods: int = 1, started: str = "2026-11-29T13:01:00Z") -> Body:
    container = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = {"spec": {"nodeSelector": dict(POOLS["a100"]["nodeSelector"]), "containers": [container]}}
    return {"spec": {"parallelism": pods, "template": template}, "status": {"startTime": started}}


STARTS = asking("other", 2), asking("other", 2, placement={"pool": "a", "chips": 2})
GROWS = (
    asking("other", 0, placement={"pool": "a", "chips": 2}),
    asking(
        *("other", 0),
        placement={"pool": "a", "chips": 2},
        migration={"id": "d-1", "phase": "Planned", "reason": "FleetGains", "to": {"pool": "a", "chips": 4}},
    ),
)


@pytest.mark.parametrize(
    ("waits", "seconds", "change", "found"),
    [
        (waiting(), 31.0, STARTS, ["waits"]),
        (waiting(), 31.0, GROWS, ["waits"]),
        (waiting(), 29.0, STARTS, []),
        (waiting(avoid=[{"pool": "a"}]), 31.0, STARTS, []),
        (waiting(), 31.0, (asking("other", 0), asking("other", 0, placement={"pool": "a", "chips": 2})), []),
        (waiting(), 31.0, (asking("other", 2), asking("other", 2, placement={"pool": "c", "chips": 2})), []),
    ],
    ids=["a later start", "a move", "not for so long", "it avoids the pool", "an earlier start", "another pool"],
)
def test_who_has_waited_for_too_long_is_passed_over(
    waits: Body, seconds: float, change: tuple[Body, Body], found: list[str]
) -> None:
    known = WaitingJobs(30.0)
    assert [*known.observe(waits, None, deleted=False)] == []
    known.tick(seconds)
    assert [*known.observe(waits, waits, deleted=False)] == []
    assert [body["metadata"]["name"] for body, _ in known.observe(change[1], change[0], deleted=False)] == found


@pytest.mark.parametrize(
    ("objects", "pool", "adopted", "found"),
    [
        ([own(), own()], "a100", False, ["waits"]),
        ([own(), own()], "a10g", False, []),
        ([own(2), own(2)], "a100", False, ["waits"]),
        ([own(3), own(3)], "a100", False, []),
        ([own(), own()], "a100", True, []),
        ([own(), own(started="2026-11-29T13:03:00Z")], "a100", False, []),
        ([None, None], "a100", False, []),
    ],
    ids=["its pool", "another", "all its pods", "too few chips", "by Kubernetes", "resumed since", "not seen"],
)
def test_an_adopted_object_waits_where_its_template_has_it(
    objects: list[Body | None], pool: str, adopted: bool, found: list[str]
) -> None:
    seen = iter(objects)
    known = WaitingJobs(30.0, lambda namespace, name: next(seen))
    assert [*known.observe(adopting(), None, deleted=False)] == []
    known.tick(31.0)
    assert [*known.observe(adopting(), adopting(), deleted=False)] == []
    before, after = asking("other", 2), asking("other", 2, placement={"pool": pool, "chips": 2})
    if adopted:
        for body in (before, after):
            body["spec"] = {"workloadRef": {"name": "theirs"}}
    assert [body["metadata"]["name"] for body, _ in known.observe(after, before, deleted=False)] == found
