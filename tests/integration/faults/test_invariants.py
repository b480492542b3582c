"""The checker reports each violated invariant of a stream, and nothing else."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rightpool.api.kubernetes import JOBS, Resource
from rightpool.api.ledger import MAX_HISTORY
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.cluster.resources import PODS, PROFILED_JOBS, SERVICES
from rightpool.workloads.in_place import held
from rightpool.workloads.names import ANNOTATION_ORIGINAL
from tests.chaos import faults_objects
from tests.chaos.adopted_objects import JOB
from tests.chaos.invariants import Checker
from tests.chaos.stream import StreamEvent

Body = dict[str, Any]
OWNER = {"uid": "pj", "controller": True}
TO, ELSEWHERE = {"pool": "b", "chips": 8}, {"pool": "c", "chips": 8}


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


def hold(number: int, attempts: int = 1, **more: Any) -> Body:
    """No save came before a move."""
    counted = {"attempts": attempts} if attempts > 1 else {}
    why = {"outcome": "Held", "reason": "CheckpointTimeout", "action": "Move", "from": {"pool": "a"}, "to": TO}
    return {"id": f"d-{number}", **why, **counted, **more}


class Feed:
    def __init__(self) -> None:
        self.checker = Checker(limit=10.0)
        self._clock = itertools.count()

    def __call__(self, resource: Resource, body: Body, kind: str = "MODIFIED", *, listed: bool = False) -> Feed:
        self.checker.observe(StreamEvent(resource, kind, body, float(next(self._clock)), listed))
        return self

    @property
    def found(self) -> list[str]:
        return [violation.invariant for violation in self.checker.violations]


@pytest.fixture
def feed() -> Feed:
    return Feed()(PROFILED_JOBS, job(), "ADDED")(JOBS, child("c1", 1), "ADDED")(PODS, pod("p1", 1, "c1"), "ADDED")


def test_a_correct_move_is_no_violation(feed: Feed) -> None:
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
            {"ledgerCount": 1, "migration": {"id": "d-1", "phase": "Verifying"}},
            {"ledgerCount": 1, "migration": {"id": "d-1", "phase": "Draining", "failure": "RolledBack"}},
            "phase",
        ),
        (
            {"conditions": [{"type": "Completed", "status": "True"}]},
            {"conditions": [{"type": "Completed", "status": "False"}]},
            "ended",
        ),
    ],
)
def test_forbidden_status_changes(feed: Feed, before: Body, after: Body, invariant: str) -> None:
    feed(PROFILED_JOBS, job(**before))
    feed.checker.violations.clear()
    feed(PROFILED_JOBS, job(**after))
    assert feed.found == [invariant]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("Planned", "Draining", []),
        ("Planned", "Verifying", []),
        ("Verifying", "Starting", []),
        ("Draining", "Planned", ["phase"]),
    ],
)
def test_phases_that_the_stream_may_have_missed(feed: Feed, before: str, after: str, found: list[str]) -> None:
    """A list follows where the server has forgotten the watch: a migration may have gone on by several phases."""
    feed(PROFILED_JOBS, job(ledgerCount=1, migration={"id": "d-1", "phase": before}))
    feed(PROFILED_JOBS, job(ledgerCount=1, migration={"id": "d-1", "phase": after}), listed=True)
    assert feed.found == found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"cost": "0.10"}),
        ({}, {"cost": "0.10", "lostSeconds": "60"}),
        ({"cost": "0.10", "lostSeconds": "9.5"}, {"cost": "0.20", "lostSeconds": "10"}),
    ],
)
def test_what_a_move_cost_may_be_set_and_grow(feed: Feed, before: Body, after: Body) -> None:
    feed(PROFILED_JOBS, job(history=[entry(1, **before)]))(PROFILED_JOBS, job(history=[entry(1, **after)]))
    assert feed.found == []


SIZE: Body = {"action": "Update", "baseline": "10"}


def test_the_message_of_an_old_entry_may_go(feed: Feed) -> None:
    feed(PROFILED_JOBS, job(history=[entry(1, message="why")]))(PROFILED_JOBS, job(history=[entry(1)]))
    assert feed.found == []


@pytest.mark.parametrize("size", [SIZE, SIZE | {"action": "Resize", "reason": "FleetGains"}], ids=["edit", "plan"])
def test_what_another_size_brought_is_measured_later(feed: Feed, size: Body) -> None:
    measured = size | {"realised": "8"}
    feed(PROFILED_JOBS, job(history=[entry(1, **size)]))(PROFILED_JOBS, job(history=[entry(1, **measured)]))
    assert feed.found == []


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({"cost": "0.20"}, {"cost": "0.10"}, "cost went from 0.20 to 0.10"),
        ({"cost": "0.20"}, {}, "cost vanished"),
        ({"lostSeconds": "10"}, {"lostSeconds": "9.5"}, "lostSeconds went from 10 to 9.5"),
        ({"lostSeconds": "10"}, {"cost": "1"}, "lostSeconds vanished"),
        ({}, {"cost": "0.10", "doubt": "0.1"}, "doubt"),
        ({"message": "why"}, {"message": "other"}, "message"),
        ({"action": "Move"}, {"action": "Move", "realised": "9"}, "realised"),
        (SIZE | {"realised": "8"}, SIZE | {"realised": "9"}, "realised"),
    ],
)
def test_an_entry_changes_in_another_way(feed: Feed, before: Body, after: Body, change: str) -> None:
    feed(PROFILED_JOBS, job(history=[entry(1, **before)]))(PROFILED_JOBS, job(history=[entry(1, **after)]))
    assert [violation.message for violation in feed.checker.violations] == [f"d-1 was changed: {change}"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([hold(1)], [hold(2, 2)]),
        ([entry(1), hold(2, 3)], [entry(1), hold(3, 4)]),
        ([hold(1)], [hold(3, 3)]),
        ([hold(1), hold(2, to=ELSEWHERE)], [hold(2, to=ELSEWHERE), hold(3, 2)]),
        ([hold(1), hold(2, to=ELSEWHERE)], [hold(3, 2), hold(4, 2, to=ELSEWHERE)]),
        ([hold(1)], [hold(2, 2), entry(3)]),
    ],
)
def test_a_save_that_is_asked_for_again_is_counted_in_one_entry(
    feed: Feed, before: list[Body], after: list[Body]
) -> None:
    feed(PROFILED_JOBS, job(history=before))(PROFILED_JOBS, job(history=after))
    assert feed.found == []


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ([hold(1)], [hold(2)], "d-1 is gone"),
        ([hold(1)], [hold(2, 2, action="Resize")], "d-1 is gone"),
        ([hold(1)], [hold(2, 2, to=ELSEWHERE)], "d-1 is gone"),
        ([hold(1)], [entry(2, attempts=2)], "d-1 is gone"),
        ([entry(1)], [hold(2, 2)], "d-1 is gone"),
        ([hold(1, 2)], [hold(2, 2)], "d-1 is gone"),
        ([hold(1)], [hold(2, 3)], "1 decisions were made, and 2 attempts are counted"),
        ([hold(1)], [hold(3, 2)], "2 decisions were made, and 1 attempts are counted"),
        ([hold(1), hold(2)], [hold(3, 2)], "1 decisions were made, and 0 attempts are counted"),
    ],
)
def test_an_attempt_that_is_not_counted(feed: Feed, before: list[Body], after: list[Body], message: str) -> None:
    feed(PROFILED_JOBS, job(history=before))(PROFILED_JOBS, job(history=after))
    assert [violation.message for violation in feed.checker.violations] == [message]


def test_a_revision_that_failed_while_it_was_verified_has_nothing_to_save(feed: Feed) -> None:
    feed(PROFILED_JOBS, job(ledgerCount=1, migration={"id": "d-1", "phase": "Verifying"}))
    failed = {"id": "d-1", "phase": "Draining", "rollingBack": True, "failure": "JobFailed"}
    feed(PROFILED_JOBS, job(ledgerCount=1, migration=failed))
    assert feed.found == []


@pytest.mark.parametrize(("length", "found"), [(MAX_HISTORY, []), (MAX_HISTORY - 1, ["history"])])
def test_only_a_full_history_may_drop_its_oldest_entry(feed: Feed, length: int, found: list[str]) -> None:
    feed(PROFILED_JOBS, job(ledgerCount=length + 1, history=[entry(n + 1) for n in range(length)]))
    feed(PROFILED_JOBS, job(ledgerCount=length + 1, history=[entry(n + 2) for n in range(length)]))
    assert feed.found == found


def test_a_child_created_a_second_time(feed: Feed) -> None:
    feed(JOBS, child("c1", 1), "DELETED")(JOBS, child("other", 1), "ADDED")
    assert feed.found == ["revision"]


def test_a_child_deleted_by_another_client_may_be_created_again(feed: Feed) -> None:
    feed.checker.allow_recreation("c1")
    feed(JOBS, child("c1", 1), "DELETED")(JOBS, child("other", 1), "ADDED")
    assert feed.found == []


@pytest.mark.parametrize(
    ("resource", "body", "invariant"),
    [
        (JOBS, child("c2", 2), "unreferenced"),
        (PODS, pod("p2", 1, "gone", "Failed"), "orphan"),
        (JOBS, labelled("c9", 1, {"uid": "gone", "controller": True}), "orphan"),
        (SERVICES, labelled("s9", 1, {"uid": "gone", "controller": True}), "orphan"),
    ],
)
def test_a_state_that_lasts_too_long(feed: Feed, resource: Resource, body: Body, invariant: str) -> None:
    feed(resource, body, "ADDED")
    feed.checker.tick(6)
    assert feed.found == []
    assert [violation.invariant for violation in feed.checker.lasting()] == [invariant]
    feed.checker.tick(6)
    assert feed.found == [invariant]
    feed.checker.tick(6)
    assert feed.found == [invariant], "told once"


def test_a_state_that_is_cleaned_up_in_time(feed: Feed) -> None:
    feed(JOBS, child("c2", 2), "ADDED")
    feed.checker.tick(9)
    feed(JOBS, child("c2", 2), "DELETED")
    feed.checker.tick(9)
    feed.checker.allow_recreation("c2")
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
def test_a_job_that_needs_no_revision(feed: Feed, change: Body) -> None:
    feed(PROFILED_JOBS, {**job(), **change})
    feed(JOBS, child("c1", 1), "DELETED")(PODS, pod("p1", 1, "c1"), "DELETED")
    feed.checker.tick(1000)
    assert "no Revision" not in feed.found


def test_the_last_status_that_was_written_is_known(feed: Feed) -> None:
    before = feed.checker.written_at
    feed(PROFILED_JOBS, {**job(), "spec": {"suspend": True}})(JOBS, child("c2", 2), "ADDED")
    feed(PROFILED_JOBS, job(ledgerCount=1), listed=True)
    assert feed.checker.written_at == before, "a user's edit, and what a list tells, are no writes of a leader"
    feed(PROFILED_JOBS, job(ledgerCount=2))
    assert feed.checker.written_at > before


# --- adopted objects -------------------------------------------------------------------------------------------------


def own(pods: int = 1, *, suspend: bool = False, note: dict[str, Any] | None = None) -> Body:
    """A Job that a user has made himself. note: fields that it had before the operator changed them."""
    containers = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    template = {"spec": {"nodeSelector": {"pool": "a"}, "containers": containers}}
    spec = {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "suspend": suspend}
    about: Body = {"uid": "own", "namespace": "ns", "name": "own"}
    body = {"metadata": about, "spec": {**spec, "template": template}}
    if note is not None:
        fields = {**JOB.adoption.settings(body), **note}
        placement = {"pool": "a", "chips": 1, "replicas": 1, "capacity": "OnDemand"}
        left = dict.fromkeys(fields, "")
        original = {"placement": placement, "selector": {}, "fields": fields, "left": left}
        about["annotations"] = {ANNOTATION_ORIGINAL: json.dumps(original)}
    return body


SIZES = ("/spec/completions", "/spec/parallelism")


def adopting(feed: Feed) -> Feed:
    feed.checker.objects.wrote(own())
    return feed(JOBS, own(), "ADDED")


def test_what_the_operator_does_to_an_object_violates_nothing() -> None:
    feed = adopting(Feed())
    feed(JOBS, own(suspend=True))(JOBS, own(3, note=dict.fromkeys(SIZES, 1)))(JOBS, own())
    assert feed.checker.violations == [] == feed.checker.lasting() == [*feed.checker.objects.lost()]


@pytest.mark.parametrize(
    "body",
    [own(3), own(3, note=dict.fromkeys(SIZES, 2)), {**own(), "spec": {**own()["spec"], "template": {"spec": {}}}}],
    ids=["no note", "another note", "a template without its fields"],
)
def test_a_lost_field_is_found(body: Body) -> None:
    feed = adopting(Feed())(JOBS, body)
    assert [violation.invariant for violation in feed.checker.violations] == ["lost field"]


def test_what_its_user_has_written_last_is_what_counts_in_the_end() -> None:
    feed = adopting(Feed())
    feed.checker.objects.wrote(own(2))
    feed(JOBS, own(2))(JOBS, own())
    assert feed.checker.violations == [], "an event may be of before"
    assert [found[0] for found in feed.checker.objects.lost()] == ["lost edit"]


@pytest.mark.parametrize(("fault", "lost"), [(faults_objects.labelled, []), (faults_objects.resized, ["lost edit"])])
def test_a_write_of_what_was_read_is_no_edit(fault: Callable[[Any], None], lost: list[str]) -> None:
    """What the operator has moved gets a label of its user's, or another size, and goes home as it was at first."""
    feed, moved = adopting(Feed()), own(5, note=dict.fromkeys(SIZES, 1))
    client = SimpleNamespace(replace=lambda resource, body: body)
    context = SimpleNamespace(
        pick=lambda adopted: "own",
        choose=lambda sizes: sizes[-1],
        object=lambda slot: moved,
        client=client,
        checker=feed.checker,
        rng=random.Random(0),
    )
    fault(context)
    feed(JOBS, own())
    assert [found[0] for found in feed.checker.objects.lost()] == lost


def test_who_takes_an_edit_back_has_what_was_before_it() -> None:
    """What the operator has moved gets another size, and the one again that it was left with; then it goes home."""
    here = Revision(1, Placement("a", 5, 5), "", 5, 5, 0.0)
    left = json.loads(held(JOB, own(5), here, None)["metadata"]["annotations"][ANNOTATION_ORIGINAL])["left"]
    feed = adopting(Feed())
    for pods, lost in ((7, ["lost edit"]), (5, [])):
        moved = own(pods, note=dict.fromkeys(SIZES, 1))
        note = moved["metadata"]["annotations"]
        note[ANNOTATION_ORIGINAL] = json.dumps({**json.loads(note[ANNOTATION_ORIGINAL]), "left": left})
        feed.checker.objects.wrote(moved)
        feed(JOBS, moved)(JOBS, own())
        assert [found[0] for found in feed.checker.objects.lost()] == lost
    assert feed.checker.violations == []


def test_an_object_that_is_deleted_by_the_operator_is_found() -> None:
    feed = adopting(Feed())
    feed(JOBS, own(), "DELETED")
    assert [violation.invariant for violation in feed.checker.violations] == ["deleted"]
    allowed = adopting(Feed())
    allowed.checker.objects.removed(own())
    assert allowed(JOBS, own(), "DELETED").checker.violations == []


def test_an_object_that_is_left_suspended_is_found_unless_its_user_has_suspended_it() -> None:
    feed = adopting(Feed())(JOBS, own(suspend=True))
    feed.checker.tick(11.0)
    assert [violation.invariant for violation in feed.checker.violations] == ["left suspended"]
    feed = adopting(Feed())
    feed.checker.objects.suspended(own(), True)
    feed(JOBS, own(suspend=True)).checker.tick(11.0)
    assert feed.checker.violations == []
