"""What is seen of a Revision's pods: on which nodes they are, and since when there is none for one of them."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.planning.jobs.revision_state import EndingPod, RevisionState, UnseenPod
from rightpool.runtime.observe.facts import child_facts, pod_facts
from rightpool.runtime.observe.revisions import revision_states, with_unseen
from rightpool.workloads.kinds.registry import KINDS
from tests.unit.runtime.makers import Body, child, pod

SINCE = "2027-01-15T08:00:00Z"


def waiting(uid: str, reason: str, since: Any = SINCE) -> Body:
    """A pod without a node."""
    scheduled = {"type": "PodScheduled", "status": "False", "reason": reason, "lastTransitionTime": since}
    body = pod(uid=uid, phase="Pending", ready=False, status={"conditions": [scheduled]})
    del body["spec"]["nodeName"]
    return body


def unscheduled(message: str) -> Body:
    return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}


def stuck(reason: str, message: str) -> Body:
    return {"name": "trainer", "state": {"waiting": {"reason": reason, "message": message}}}


def seen(*pods: Body, of: Body | None = None) -> RevisionState:
    facts = child_facts(KINDS["job"], of or child())
    assert facts is not None
    found = [made for body in pods if (made := pod_facts(body)) is not None]
    return revision_states("uid-1", [facts], found)[1]


def test_pods_are_counted_by_node() -> None:
    state = seen(pod(), pod(uid="pod-2"), waiting("pod-3", "Unschedulable"))
    assert state.nodes == {"node-1": 2} and state.active == 3
    assert seen(pod(phase="Succeeded")).nodes == {}


def test_a_pod_that_has_run_to_its_end_is_not_waited_for() -> None:
    """Replicas end one after another, and the first may end before the last one starts."""
    ended = pod(uid="pod-2", phase="Succeeded", ready=False)
    assert seen(pod(), ended).all_running(2)
    assert not seen(pod(), ended).all_running(3)
    assert not seen(pod(), pod(uid="pod-2", phase="Failed", ready=False)).all_running(2)
    assert not seen(ended).all_running(1), "it runs no more"


@pytest.mark.parametrize(
    ("reason", "since", "known"),
    [
        ("Unschedulable", SINCE, 1_800_000_000.0),
        ("SchedulingGated", SINCE, None),
        ("Unschedulable", "yesterday", None),
        ("Unschedulable", None, None),
    ],
)
def test_since_when_kubernetes_finds_no_node(reason: str, since: Any, known: float | None) -> None:
    assert seen(pod(), waiting("pod-2", reason, since)).unschedulable_since == known


@pytest.mark.parametrize(
    ("ready", "phase", "more", "blocks"),
    [
        ("False", "Pending", {}, True),
        ("True", "Pending", {}, False),
        ("False", "Succeeded", {}, False),
        ("False", "Running", {"deletionTimestamp": SINCE}, False),
    ],
)
def test_a_node_that_does_not_set_up_volumes_or_network_is_an_obstacle(
    ready: str, phase: str, more: Body, blocks: bool
) -> None:
    """A slow image is none: it is pulled once these are there. The pod shows ContainerCreating in both cases."""
    creating = [{"name": "trainer", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    conditions = [{"type": "PodReadyToStartContainers", "status": ready}]
    body = pod(
        phase=phase, ready=False, metadata=more, status={"conditions": conditions, "containerStatuses": creating}
    )
    state = seen(body)
    assert (state.blocked is not None) is blocks
    assert not state.refused
    if state.blocked is not None:
        assert "volumes and network" in state.blocked


def test_a_pod_that_its_node_did_not_take_says_why() -> None:
    """It has no container that ended."""
    refused = {"reason": "UnexpectedAdmissionError", "message": "Allocate failed: no healthy devices"}
    state = seen(pod(uid="pod-2", phase="Failed", ready=False, status=refused), pod(phase="Pending", ready=False))
    assert state.pod_fault == "UnexpectedAdmissionError: Allocate failed: no healthy devices"
    assert state.crash is None and state.failure is None
    assert seen(pod(uid="pod-2", owner="somebody", phase="Failed", ready=False, status=refused)).pod_fault is None
    assert seen(pod(uid="pod-2", phase="Failed", ready=False)).pod_fault is None


def test_containers_that_are_not_ready_are_named() -> None:
    initial = {"type": "Initialized", "status": "False", "message": "containers with incomplete status: [fetch]"}
    waiting_for = {"type": "ContainersReady", "status": "False", "message": "containers with unready status: [trainer]"}

    def of(*conditions: Body) -> RevisionState:
        return seen(pod(ready=False, status={"conditions": list(conditions)}))

    assert of(waiting_for, initial).unready == "containers with incomplete status: [fetch]"
    assert of(waiting_for, {**initial, "status": "True"}).unready == "containers with unready status: [trainer]"
    assert of({**waiting_for, "message": ""}).unready is None
    assert seen(pod()).unready is None


@pytest.mark.parametrize(
    ("ready", "state", "words", "cold"),
    [
        (False, "lastState", "warmed\nrightpool_profiler: warm-up failed: POST /infer: HTTP 400: no\n", True),
        (False, "state", "rightpool_profiler: warm-up failed: POST /infer: HTTP 400: no", True),
        (True, "lastState", "rightpool_profiler: warm-up failed: POST /infer: HTTP 400: no", False),
        (False, "lastState", "MemoryError", False),
    ],
    ids=("started again", "backing off", "warm since", "another end"),
)
def test_a_server_that_does_not_warm_up_says_how(ready: bool, state: str, words: str, cold: bool) -> None:
    """By the last words of its profiler, which the kubelet starts again."""
    ended = {"name": "rightpool-profiler", "ready": ready, state: {"terminated": {"exitCode": 1, "message": words}}}
    found = seen(pod(ready=False, status={"initContainerStatuses": [ended]}))
    assert (found.cold, found.prevented) == (cold, cold)
    assert found.blocked == ("warm-up failed: POST /infer: HTTP 400: no" if cold else None)


def test_which_pod_was_to_be_gone_first() -> None:
    later = pod(uid="pod-2", metadata={"name": "late", "deletionTimestamp": "2027-01-15T08:10:00Z"})
    first = pod(uid="pod-3", metadata={"name": "first", "deletionTimestamp": SINCE})
    assert seen(pod(), later, first).ending == EndingPod("first", "node-1", 1_800_000_000.0)
    assert seen(pod()).ending is None
    gone = revision_states("uid-1", [], [made for body in (first,) if (made := pod_facts(body)) is not None])
    assert gone[1].ending is not None, "also where its Job is gone"


def test_a_pod_that_has_a_node_waits_for_none() -> None:
    assert seen(pod()).unschedulable_since is None


@pytest.mark.parametrize(
    ("queue", "annotations", "evicted"),
    [("research", {}, 1), ("research", {"rightpool.dev/held": "true"}, 0), (None, {}, 0)],
)
def test_pods_that_a_queue_ends_are_evicted(queue: str | None, annotations: Body, evicted: int) -> None:
    """Where the operator itself has suspended the child, a save was asked for before."""
    stopped = child(suspend=True)
    stopped["metadata"]["annotations"] = annotations
    if queue is not None:
        stopped["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    ending = pod(metadata={"deletionTimestamp": SINCE})
    assert seen(ending, of=stopped).evicted == evicted


def test_a_note_that_somebody_puts_on_a_child_is_seen() -> None:
    """Who sees the same takes the child to be as it should, and the note would stay."""
    labels = {"kueue.x-k8s.io/queue-name": "research"}
    plain, noted = child(), child()
    for body in (plain, noted):
        body["metadata"]["labels"] |= labels
    noted["metadata"]["annotations"] = {"rightpool.dev/held": "true"}
    assert seen(pod(), of=plain) != seen(pod(), of=noted)


def test_a_container_that_outlives_the_program_is_named_with_the_remedy() -> None:
    ended = {"name": "trainer", "state": {"terminated": {"exitCode": 0}}}
    proxy = {"name": "mesh-proxy", "state": {"running": {}}}
    waits = {"type": "ContainersReady", "status": "False", "message": "containers with unready status: [trainer]"}
    status = {"conditions": [waits], "containerStatuses": [ended, proxy]}
    text = seen(pod(ready=False, status=status)).unready
    assert text == (
        "container trainer has completed, and mesh-proxy runs on and holds the chips: make it an init container with "
        "restartPolicy Always"
    )
    failed = {"name": "trainer", "state": {"terminated": {"exitCode": 1}}}
    assert seen(pod(ready=False, status={**status, "containerStatuses": [failed, proxy]})).unready == waits["message"]
    helper = {"name": "copy", "state": {"terminated": {"exitCode": 0}}}
    runs = {"name": "trainer", "state": {"running": {}}}
    assert seen(pod(ready=False, status={**status, "containerStatuses": [helper, runs]})).unready == waits["message"]


def test_a_pod_that_no_scheduler_looks_at_is_blocked_after_a_minute() -> None:
    made = 1_800_000_000.0
    body = pod(phase="Pending", ready=False, metadata={"creationTimestamp": SINCE})
    del body["spec"]["nodeName"]
    body["spec"]["schedulerName"] = "volcano"
    states = {1: seen(body)}
    assert states[1].unseen == UnseenPod(made, "volcano") and states[1].blocked is None
    assert with_unseen(states, made + 60.0) is states
    late = with_unseen(states, made + 61.0)[1]
    assert late.blocked is not None and "scheduler volcano has not looked at the pods" in late.blocked
    assert late.prevented
    assert seen(waiting("pod-2", "Unschedulable")).unseen is None
    assert seen(pod()).unseen is None


@pytest.mark.parametrize(
    ("status", "prevented"),
    [
        ({"conditions": [unscheduled("0/4 nodes are available: 4 Insufficient nvidia.com/gpu.")]}, False),
        ({"conditions": [unscheduled("0/4 nodes: 4 node(s) had volume node affinity conflict.")]}, True),
        ({"containerStatuses": [stuck("CreateContainerConfigError", 'configmap "x" not found')]}, True),
        ({"containerStatuses": [stuck("ImagePullBackOff", "timeout")]}, False),
    ],
)
def test_what_the_job_asks_for_itself_is_told_from_what_its_pool_lacks(status: Body, prevented: bool) -> None:
    state = seen(pod(status=status))
    assert state.blocked is not None and state.prevented is prevented
