"""The checker itself: fed with streams in which something forbidden happens, it must say so, and nothing else."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from chaos.invariants import Checker
from chaos.stream import Seen
from rightpool.cluster.resources import JOBS, PODS, PROFILED_JOBS, SERVICES, Resource

Body = dict[str, Any]
OWNER = {"uid": "pj", "controller": True}


def job(uid: str = "pj", **status: Any) -> Body:
    placement = {"revision": status.pop("revision", 1)}
    full = {"placement": placement, "history": [], "ledgerCount": 0, "moves": 0, **status}
    return {"metadata": {"uid": uid, "namespace": "ns", "name": "bert"}, "spec": {}, "status": full}


def labelled(uid: str, revision: int, owner: Body, **more: Any) -> Body:
    labels = {"rightpool.dev/profiledjob": "bert", "rightpool.dev/revision": str(revision)}
    about = {"uid": uid, "namespace": "ns", "name": uid, "labels": labels, "ownerReferences": [owner]}
    return {"metadata": about, **more}


def child(uid: str, revision: int) -> Body:
    return labelled(uid, revision, OWNER)


def pod(uid: str, revision: int, of: str, phase: str = "Running") -> Body:
    return labelled(uid, revision, {"uid": of, "controller": True}, status={"phase": phase})


def entry(number: int, **more: Any) -> Body:
    return {"id": f"d-{number}", "outcome": "Verified", **more}


class Feed:
    def __init__(self) -> None:
        self.checker = Checker(limit=10.0)
        self._clock = itertools.count()

    def __call__(self, resource: Resource, body: Body, kind: str = "MODIFIED") -> Feed:
        self.checker.see(Seen(resource, kind, body, float(next(self._clock))))
        return self

    @property
    def found(self) -> list[str]:
        return [violation.invariant for violation in self.checker.violations]


@pytest.fixture
def feed() -> Feed:
    return Feed()(PROFILED_JOBS, job(), "ADDED")(JOBS, child("c1", 1), "ADDED")(PODS, pod("p1", 1, "c1"), "ADDED")


def test_a_clean_move_is_no_violation(feed: Feed) -> None:
    moving = {"id": "d-1", "rollingBack": False}
    for phase in ("Planned", "Checkpointing", "Draining"):
        feed(PROFILED_JOBS, job(ledgerCount=1, migration={**moving, "phase": phase}))
    feed(PODS, pod("p1", 1, "c1", "Failed"))(PODS, pod("p1", 1, "c1"), "DELETED")(JOBS, child("c1", 1), "DELETED")
    feed(PROFILED_JOBS, job(revision=2, ledgerCount=1, migration={**moving, "phase": "Starting"}))
    feed(JOBS, child("c2", 2), "ADDED")(PODS, pod("p2", 2, "c2", "Pending"), "ADDED")(PODS, pod("p2", 2, "c2"))
    for phase in ("WarmingUp", "Verifying"):
        feed(PROFILED_JOBS, job(revision=2, ledgerCount=1, migration={**moving, "phase": phase}))
    feed(PROFILED_JOBS, job(revision=2, ledgerCount=1, moves=1, history=[entry(1)]))
    feed.checker.tick(1000)
    assert feed.checker.events > 10
    assert feed.found == []


def test_pods_of_two_revisions_at_once(feed: Feed) -> None:
    feed(JOBS, child("c2", 2), "ADDED")(PODS, pod("p2", 2, "c2", "Pending"), "ADDED")
    assert feed.found == ["two Revisions"]
    assert "p1 (Running), p2 (Pending)" in feed.checker.violations[0].message


def test_pods_of_an_earlier_job_of_the_same_name(feed: Feed) -> None:
    feed(PODS, pod("p9", 1, "another"), "ADDED")
    assert feed.found == ["two Revisions"]


def test_two_pods_of_one_revision_are_fine(feed: Feed) -> None:
    feed(PODS, pod("p2", 1, "c1"), "ADDED")
    assert feed.found == []


@pytest.mark.parametrize(
    ("before", "after", "invariant"),
    [
        ({"cost": {"spent": "2"}}, {"cost": {"spent": "1.99"}}, "money"),
        ({"cost": {"spent": "2"}}, {}, "money"),
        ({"revision": 3}, {"revision": 2}, "revision"),
        ({"moves": 2}, {"moves": 1}, "history"),
        ({"ledgerCount": 2}, {"ledgerCount": 1}, "history"),
        ({"history": [entry(1)]}, {"history": []}, "history"),
        ({"history": [entry(1)]}, {"history": [entry(1, outcome="Failed")]}, "history"),
        ({}, {"history": [entry(2), entry(1)]}, "history"),
        ({}, {"history": [entry(1), entry(1)]}, "history"),
        ({}, {"ledgerCount": 1, "migration": {"id": "d-2", "phase": "Planned"}}, "history"),
        (
            {"ledgerCount": 1, "migration": {"id": "d-1", "phase": "Planned"}},
            {"ledgerCount": 1, "migration": {"id": "d-1", "phase": "Starting"}},
            "phase",
        ),
        (
            {"ledgerCount": 1, "migration": {"id": "d-1", "phase": "Draining", "rollingBack": True}},
            {"ledgerCount": 1, "migration": {"id": "d-1", "phase": "Starting", "rollingBack": False}},
            "phase",
        ),
        ({"ledgerCount": 1, "migration": {"id": "d-1", "phase": "Starting"}}, {"ledgerCount": 1}, "phase"),
        (
            {"conditions": [{"type": "Completed", "status": "True"}]},
            {"conditions": [{"type": "Completed", "status": "False"}]},
            "ended",
        ),
    ],
)
def test_what_a_status_must_not_do(feed: Feed, before: Body, after: Body, invariant: str) -> None:
    feed(PROFILED_JOBS, job(**before))
    feed.checker.violations.clear()
    feed(PROFILED_JOBS, job(**after))
    assert feed.found == [invariant]


def test_a_full_history_may_drop_its_oldest_entry(feed: Feed) -> None:
    feed(PROFILED_JOBS, job(ledgerCount=11, history=[entry(n) for n in range(1, 11)]))
    feed(PROFILED_JOBS, job(ledgerCount=11, history=[entry(n) for n in range(2, 12)]))
    assert feed.found == []


def test_a_child_made_a_second_time(feed: Feed) -> None:
    feed(JOBS, child("c1", 1), "DELETED")(JOBS, child("other", 1), "ADDED")
    assert feed.found == ["revision"]


def test_a_child_that_somebody_else_deleted_may_be_made_again(feed: Feed) -> None:
    feed.checker.excuse("c1")
    feed(JOBS, child("c1", 1), "DELETED")(JOBS, child("other", 1), "ADDED")
    assert feed.found == []


@pytest.mark.parametrize(
    ("resource", "body", "invariant"),
    [
        (JOBS, child("c2", 2), "stray"),
        (PODS, pod("p2", 1, "gone", "Failed"), "orphan"),
        (JOBS, labelled("c9", 1, {"uid": "gone", "controller": True}), "orphan"),
        (SERVICES, labelled("s9", 1, {"uid": "gone", "controller": True}), "orphan"),
    ],
)
def test_what_must_not_stay(feed: Feed, resource: Resource, body: Body, invariant: str) -> None:
    feed(resource, body, "ADDED")
    feed.checker.tick(6)
    assert feed.found == []
    assert [violation.invariant for violation in feed.checker.lasting()] == [invariant]
    feed.checker.tick(6)
    assert feed.found == [invariant]
    feed.checker.tick(6)
    assert feed.found == [invariant], "told once"


def test_what_goes_in_time_may_have_been_there(feed: Feed) -> None:
    feed(JOBS, child("c2", 2), "ADDED")
    feed.checker.tick(9)
    feed(JOBS, child("c2", 2), "DELETED")
    feed.checker.tick(9)
    feed.checker.excuse("c2")
    feed(JOBS, child("c2", 2), "ADDED")
    feed.checker.tick(9)
    assert feed.found == []


def test_a_job_without_a_revision(feed: Feed) -> None:
    feed(JOBS, child("c1", 1), "DELETED")(PODS, pod("p1", 1, "c1"), "DELETED")
    feed.checker.tick(11)
    assert feed.found == ["no Revision"]


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"suspend": True}},
        {"status": {"conditions": [{"type": "Completed", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Placed", "status": "False", "reason": "InvalidTemplate"}]}},
    ],
)
def test_a_job_that_need_not_have_one(feed: Feed, change: Body) -> None:
    feed(PROFILED_JOBS, {**job(), **change})
    feed(JOBS, child("c1", 1), "DELETED")(PODS, pod("p1", 1, "c1"), "DELETED")
    feed.checker.tick(1000)
    assert "no Revision" not in feed.found
