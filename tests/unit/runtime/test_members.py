"""Pods of objects that somebody else has made: which are listed, when, and that they count once."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import Unavailable
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import ANNOTATION_ADOPTED_BY, LABEL_JOB, LABEL_REVISION, SIDECAR_CONTAINER
from rightpool.planning.jobs.job import JobKey
from rightpool.runtime.observe.members import LATEST_SECONDS, SOON_SECONDS, Members
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from tests.unit.runtime.makers import Body, pod, profiled_job

GPU = "nvidia.com/gpu"
UID = "batch.kubernetes.io/controller-uid"
KEY = JobKey("research", "bert")
CHIPS = {"limits": {GPU: "4"}}


def referring(name: str = "bert") -> Body:
    body = profiled_job(name)
    body["spec"] = {"workloadRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}}
    return body


def adopted(version: int = 20, **status: Any) -> Body:
    template = {"spec": {"containers": [{"name": "trainer", "image": "a", "resources": CHIPS}]}}
    return {
        "metadata": {
            "name": "train",
            "namespace": "research",
            "uid": "job-1",
            "resourceVersion": str(version),
            "generation": 1,
            "labels": {LABEL_JOB: "bert"},
            "annotations": {ANNOTATION_ADOPTED_BY: "uid-1"},
        },
        "spec": {"parallelism": 2, "template": template},
        "status": status,
    }


def member(uid: str, *, owner: str = "job-1", ready: bool = True) -> Body:
    body = pod(uid=uid, owner=owner, ready=ready)
    about = body["metadata"]
    about["labels"] = {UID: "job-1"}
    about["ownerReferences"][0]["name"] = "train"
    return body


class Lister:
    """The pods of a cluster, of which selectors of members and of others choose."""

    def __init__(self, *pods: Body) -> None:
        self.pods = list(pods)
        self.trouble: Exception | None = None
        self.asked: list[str] = []

    def pages(self, resource: Resource, namespace: str | None = None, **selectors: Any) -> Iterable[Listing]:
        if resource is not PODS:
            return
        self.asked.append(selectors["labels"])
        if self.trouble is not None:
            raise self.trouble
        yield Listing(self.pods, "1", "")


class Seen:
    def __init__(self, *pods: Body) -> None:
        self.now = 100.0
        self.lister, self.store = Lister(*pods), Store()
        self.members = Members(self.lister, self.store, lambda: None, lambda: self.now)
        self.store.observe(PROFILED_JOBS, None, referring())
        self.store.observe(JOBS, None, adopted())

    def refresh(self) -> int:
        """How many requests that took."""
        before = len(self.lister.asked)
        self.members.refresh()
        return len(self.lister.asked) - before


def test_a_job_runs_what_its_object_asks_for() -> None:
    seen = Seen()
    stored = seen.store.job(KEY)
    assert stored is not None
    assert (stored.job.spec.chips, stored.job.spec.workload.replicas, stored.job.spec.seen) == (8, 2, True)
    # The object may come first, and the status of either changes nothing of that.
    store = Store()
    store.observe(JOBS, None, adopted())
    store.observe(PROFILED_JOBS, None, referring())
    store.observe(JOBS, "MODIFIED", adopted(21, active=2))
    other = store.job(KEY)
    assert other is not None and other.job.workload_hash == stored.job.workload_hash
    assert other.job.spec.chips == 8


def test_an_object_that_names_another_profiledjob_is_not_this_ones() -> None:
    store = Store()
    body = referring()
    body["metadata"]["uid"] = "uid-2"
    store.observe(PROFILED_JOBS, None, body)
    store.observe(JOBS, None, adopted())
    stored = store.job(KEY)
    assert stored is not None and not stored.job.spec.seen
    assert store.adopted_by(KEY, "uid-2") is None


def test_its_pods_are_listed_together_when_it_has_changed() -> None:
    seen = Seen(member("a"), member("b"), member("foreign", owner="other"))
    assert seen.refresh() == 1
    assert seen.lister.asked == [f"{UID} in (job-1)"]
    assert [p.uid for p in seen.store.pods(KEY, 1)] == ["a", "b"], "a label alone makes no member"
    state = seen.store.revisions(KEY, "uid-1")[1]
    assert (state.exists, state.running, state.foreign_pod) == (True, 2, None)
    assert seen.refresh() == 0, "nothing has changed, and all run"
    seen.store.observe(JOBS, "MODIFIED", adopted(21, active=1))
    seen.lister.pods = [member("b", ready=False)]
    assert seen.refresh() == 1
    assert [p.uid for p in seen.store.pods(KEY, 1)] == ["b"]
    assert seen.refresh() == 0
    seen.now += SOON_SECONDS
    assert seen.refresh() == 1, "one that does not run yet is looked at again soon"
    seen.lister.pods = [member("b")]
    seen.now += SOON_SECONDS
    assert seen.refresh() == 1
    seen.now += LATEST_SECONDS - 1.0
    assert seen.refresh() == 0
    seen.now += 1.0
    assert seen.refresh() == 1, "some time in any case"


def test_nothing_is_forgotten_where_pods_can_not_be_listed() -> None:
    seen = Seen(member("a"), member("b"))
    seen.refresh()
    pods = seen.store.all_pods()
    seen.lister.trouble = Unavailable("no answer")
    seen.store.observe(JOBS, "MODIFIED", adopted(21))
    assert seen.refresh() == 1
    assert seen.store.all_pods() is pods
    # Neither is it by the list of the pods that have our label.
    seen.store.reconcile(PODS, [], "9999")
    assert seen.store.all_pods() is pods


def test_pods_are_gone_with_the_object() -> None:
    seen = Seen(member("a"))
    seen.refresh()
    seen.store.observe(JOBS, "DELETED", adopted(30))
    assert seen.store.all_pods() == () and seen.store.adopted() == ()
    assert seen.refresh() == 0
    stored = seen.store.job(KEY)
    assert stored is not None and stored.job.spec.chips == 8, "what was known of it stays"


def test_its_chips_count_once() -> None:
    other = pod(uid="other")
    other["metadata"]["labels"] = {}
    seen = Seen(member("a"), member("b"), other)
    usage = ChipUsage(seen.lister, interval=0.0, members=lambda: seen.members.labels)
    seen.refresh()
    usage.refresh({GPU})
    assert usage.by_node((), {GPU}) == {("node-1", GPU): 4}, "of other people's pods"
    assert usage.by_node(seen.store.all_pods(), {GPU}) == {("node-1", GPU): 12}


def test_its_pods_are_not_asked_for_a_profile() -> None:
    seen = Seen(member("a"))
    seen.refresh()
    assert [p.profiled for p in seen.store.all_pods()] == [False]


def test_a_member_with_our_label_is_one_for_the_watch_of_pods_too() -> None:
    """A pod with the profiler has it, and the watch tells of it what the lists of members do not know yet."""
    labelled = member("a")
    labelled["metadata"]["labels"] |= {LABEL_JOB: KEY.name, LABEL_REVISION: "1"}
    labelled["metadata"]["resourceVersion"] = "50"
    labelled["spec"]["initContainers"] = [{"name": SIDECAR_CONTAINER}]
    seen = Seen(labelled)
    seen.refresh()
    [found] = seen.store.pods(KEY, 1)
    assert found.profiled and found.owner == "job-1"
    newer = copy.deepcopy(labelled)
    newer["metadata"]["resourceVersion"] = "60"
    newer["status"]["podIP"] = "10.0.0.9"
    seen.store.observe(PODS, "MODIFIED", newer)
    assert [one.ip for one in seen.store.pods(KEY, 1)] == ["10.0.0.9"]
    seen.now += LATEST_SECONDS
    seen.refresh()
    assert [one.ip for one in seen.store.pods(KEY, 1)] == ["10.0.0.9"], "the list is older"
    seen.store.observe(PODS, "DELETED", newer)
    seen.now += LATEST_SECONDS
    seen.refresh()
    assert seen.store.pods(KEY, 1) == ()
