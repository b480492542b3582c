"""Which pods are about to be lost: by the node that they are on, and by themselves."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from rightpool.hardware.clouds import CLOUDS
from rightpool.planning.jobs.threat import Threat
from rightpool.runtime.observe.facts import child_facts, node_facts, pod_facts
from rightpool.runtime.observe.revisions import revision_states
from rightpool.runtime.observe.threats import drained_nodes, threat_to
from rightpool.workloads.kinds.registry import KINDS
from tests.unit.runtime.makers import Body, child, pod

LEAVING = {"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}}
DISRUPTED = {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}}


def node(**spec: Any) -> Body:
    return {"metadata": {"name": "node-1"}, "spec": spec, "status": {}}


def taint(key: str, effect: str) -> Body:
    return {"key": key, "effect": effect}


def threat(pods: list[Body], **spec: Any) -> Threat | None:
    return threat_to([f for body in pods if (f := pod_facts(body))], drained_nodes([node_facts(node(**spec))]))


def tolerating(**toleration: Any) -> Body:
    body = pod()
    body["spec"]["tolerations"] = [{"operator": "Exists", **toleration}]
    return body


@pytest.mark.parametrize(
    ("spec", "leaves"),
    [
        ({}, False),
        ({"unschedulable": True}, True),
        ({"taints": [taint("maintenance", "NoExecute")]}, True),
        ({"taints": [taint("nvidia.com/gpu", "NoSchedule")]}, False),
        ({"taints": [taint("ToBeDeletedByClusterAutoscaler", "NoSchedule")]}, True),
        *(
            ({"taints": [taint(key, "NoSchedule")]}, True)
            for key in chain.from_iterable(cloud.removal_taints for cloud in CLOUDS)
        ),
        ({"taints": [taint("node.kubernetes.io/unreachable", "NoExecute")]}, False),
        ({"taints": [taint("node.kubernetes.io/not-ready", "NoExecute")]}, False),
    ],
)
def test_nodes_that_pods_are_taken_from(spec: Body, leaves: bool) -> None:
    assert threat([pod()], **spec) == (Threat(1, "node-1") if leaves else None)


@pytest.mark.parametrize(
    ("toleration", "stays"),
    [({}, True), ({"effect": "NoSchedule"}, False), ({"tolerationSeconds": 300}, False), ({"key": "tpu"}, True)],
)
def test_who_tolerates_a_taint_for_ever_stays(toleration: Body, stays: bool) -> None:
    found = threat([tolerating(**toleration)], taints=[taint("tpu", "NoExecute")])
    assert (found is None) is stays


def test_a_cordoned_node_is_drained_whatever_pods_tolerate() -> None:
    assert threat([tolerating()], unschedulable=True) == Threat(1, "node-1")


def test_pods_that_are_evicted_or_preempted() -> None:
    by = "default-scheduler: preempting to accommodate a higher priority pod"
    preempted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": by}
    assert threat([pod(status={"conditions": [preempted]})]) == Threat(1, cause=by)
    assert threat([pod(status={"conditions": [{**preempted, "message": ""}]})]) == Threat(1, cause=preempted["reason"])
    assert threat([pod(**LEAVING), pod(uid="pod-2", **DISRUPTED), pod(uid="pod-3")]) == Threat(2)
    assert threat([pod(phase="Failed", **DISRUPTED)]) is None


def test_pods_that_end_because_their_child_does_are_not_evicted() -> None:
    def evicted(**more: Any) -> int:
        facts = child_facts(KINDS["job"], child(**more))
        made = [f for body in (pod(**LEAVING), pod(uid="pod-2")) if (f := pod_facts(body))]
        assert facts is not None
        return revision_states("uid-1", [facts], made)[1].evicted

    assert evicted() == 1
    assert evicted(suspend=True) == 0
    assert evicted(**LEAVING) == 0
    assert evicted(status={"conditions": [{"type": "FailureTarget", "status": "True"}]}) == 0
