"""What explain says of an adopted object that waits for chips: what the operator says of it."""

from __future__ import annotations

from rightpool.api.kubernetes import JOBS
from rightpool.api.placement import Placement
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import ANNOTATION_ADOPTED_BY, LABEL_JOB
from tests.unit.cli.cluster import A100, FakeClient, job, moment, pod, two_pools
from tests.unit.cli.test_explain import explained, output

UID = "batch.kubernetes.io/controller-uid"
WORDS = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."


def with_object(chips: int) -> FakeClient:
    """Its only pod, of this many chips, has no node."""
    client = two_pools()
    body = job(status={})
    body["spec"] = {"workloadRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "own"}}
    made = client.add(PROFILED_JOBS, body)
    container = {"name": "trainer", "image": "a", "resources": {"limits": {"nvidia.com/gpu": str(chips)}}}
    spec = {"nodeSelector": A100, "containers": [container]}
    metadata = {"name": "own", "namespace": "vision", "uid": "own-1", "generation": 1}
    marks = {"labels": {LABEL_JOB: "resnet50"}, "annotations": {ANNOTATION_ADOPTED_BY: made["metadata"]["uid"]}}
    started = {"startTime": moment(300)}
    client.add(JOBS, {"metadata": metadata | marks, "spec": {"template": {"spec": spec}}, "status": started})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "own", "uid": "own-1", "controller": True}
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": WORDS}
    client.add(
        PODS,
        {
            "metadata": {
                "name": "own-0",
                "namespace": "vision",
                "uid": "own-0",
                "labels": {UID: "own-1"},
                "ownerReferences": [owner],
            },
            "spec": spec,
            "status": {"phase": "Pending", "conditions": [{**unscheduled, "lastTransitionTime": moment(200)}]},
        },
    )
    return client


def test_where_its_template_lets_it() -> None:
    decision = explained(with_object(8)).assessment.decision
    assert decision.target == Placement("a100", 8, 1)
    assert "Start (Starting) would start on 8 chips of a100" in " ".join(output(with_object(8)).split())


def test_what_it_waits_for() -> None:
    client = with_object(8)
    for index in range(2):
        other = pod(f"other-{index}", "vision", f"a100-{index}", chips=1)
        client.add(PODS, {**other, "metadata": {**other["metadata"], "labels": {}}})
    found = " ".join(output(client).split())
    assert "Hold (WaitingForCapacity) 8 chips of a100 would be next: a100 has no room for 8 chips now" in found
