"""The label of objects that run already: what is made, said and ended by it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import Forbidden, NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import LABEL_ADOPT, LABEL_JOB
from rightpool.reporting.events import Event
from rightpool.runtime.act.adopt_labels import LIST_SECONDS, AdoptLabels
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.observe.store import Store
from tests.unit.runtime.makers import LEADING, Body
from tests.unit.runtime.test_members import adopted, referring


class Cluster:
    """Jobs with the label, and what is asked of the API server."""

    def __init__(self) -> None:
        self.labelled: list[Body] = []
        self.created: list[Body] = []
        self.deleted: list[str] = []
        self.patched: list[Body] = []
        self.refuses: set[str] = set()

    def pages(self, resource: Resource, namespace: str | None = None, **selectors: Any) -> Iterable[Listing]:
        assert selectors["labels"] == f"{LABEL_ADOPT},!{LABEL_JOB}"
        yield Listing([body for body in self.labelled if body.get("kind", "Job") == resource.kind], "1", "")

    def create(self, resource: Resource, body: Body) -> Body:
        if body["metadata"]["name"] in self.refuses:
            raise Forbidden("a quota")
        self.created.append(body)
        about = {**body["metadata"], "uid": "made", "resourceVersion": "50", "generation": 1}
        return {**body, "metadata": about}

    def delete(self, resource: Resource, name: str, namespace: str, *, uid: str) -> None:
        self.deleted.append(f"{resource.kind} {name} {uid}")
        raise NotFound("it is gone already")


class Labels:
    def __init__(self) -> None:
        self.cluster, self.store = Cluster(), Store()
        self.events: list[Event] = []
        self.now = 100.0
        fence, clock = Fence(self.cluster, LEADING), lambda: self.now  # type: ignore[arg-type]
        self.labels = AdoptLabels(self.cluster, fence, self.store, self.events.append, (), clock)  # type: ignore[arg-type]

    def follow(self, *labelled: Body) -> list[str]:
        """The reasons of what is said of objects."""
        self.cluster.labelled = [*labelled]
        self.events.clear()
        self.now += LIST_SECONDS
        self.labels.follow()
        return [event.reason for event in self.events]


def job(name: str = "train", value: str = "recommend", **about: Any) -> Body:
    metadata = {"name": name, "namespace": "research", "uid": name, "labels": {LABEL_ADOPT: value}, **about}
    return {"metadata": metadata, "spec": {}}


def mine(version: int, value: str | None) -> Body:
    """The object of a ProfiledJob that belongs to it."""
    body = adopted(version)
    if value is not None:
        body["metadata"]["labels"][LABEL_ADOPT] = value
    return body


@pytest.fixture
def followed() -> Labels:
    labels = Labels()
    body = referring()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-1", "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    labels.store.observe(PROFILED_JOBS, None, body)
    labels.store.observe(JOBS, None, mine(20, "recommend"))
    return labels


def test_a_labelled_object_gets_a_profiledjob_that_belongs_to_it() -> None:
    labels = Labels()
    labels.cluster.refuses = {"first"}
    assert labels.follow(job("first"), job()) == []
    (made,) = labels.cluster.created
    assert made["spec"]["workloadRef"] == {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "train", "one's trouble is not the others'"
    assert labels.follow(job()) == [] and len(labels.cluster.created) == 1, "it is known from then on"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (job(value="yes"), "AdoptLabelUnknown"),
        (job("a.name.with.dots"), "NameTaken"),
        (job("n" * 60), "NameTaken"),
        (job("bert"), "NameTaken"),
        ({**job(), "kind": "Deployment"}, "WorkloadNotAdoptable"),
        (job(ownerReferences=[{"kind": "JobSet", "name": "llm", "controller": True}]), "WorkloadControlled"),
    ],
)
def test_what_gets_none_is_told_why(followed: Labels, body: Body, reason: str) -> None:
    assert followed.follow(body) == [reason]
    assert len(followed.events[0].note) <= 160
    assert followed.cluster.created == []


def test_a_profiledjob_goes_with_its_label(followed: Labels) -> None:
    assert followed.follow() == [] and followed.cluster.deleted == []
    followed.store.observe(JOBS, "MODIFIED", mine(21, "sometimes"))
    assert followed.follow() == ["AdoptLabelUnknown"] and followed.cluster.deleted == [], "a typo ends nothing"
    followed.store.observe(JOBS, "MODIFIED", mine(22, None))
    assert followed.follow() == [] and followed.cluster.deleted == ["ProfiledJob bert uid-1"]


def test_a_users_own_profiledjob_stays_without_label() -> None:
    labels = Labels()
    labels.store.observe(PROFILED_JOBS, None, referring())
    labels.store.observe(JOBS, None, mine(20, None))
    assert labels.follow() == [] and labels.cluster.deleted == []
