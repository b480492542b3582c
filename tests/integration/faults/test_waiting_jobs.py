"""Whoever has waited for too long, and is passed over, is found; nobody else is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.waiting_jobs import WaitingJobs

Body = dict[str, Any]


def asking(name: str, created: int, **status: Any) -> Body:
    about = {"uid": name, "namespace": "ns", "name": name, "creationTimestamp": f"2026-11-29T13:0{created}:00Z"}
    workload, allowed = {"job": {"chipsPerReplica": 2}}, {"pools": {"allow": ["a", "b"]}}
    return {"metadata": about, "spec": {"workload": workload, "placement": allowed}, "status": status}


def waiting(**status: Any) -> Body:
    placed = {"type": "Placed", "status": "False", "reason": "WaitingForCapacity"}
    return asking("waits", 1, conditions=[placed], **status)


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
