"""What explain says of where a job is, and of where it can't be."""

from __future__ import annotations

from rightpool.cluster.resources import PERSISTENT_VOLUMES
from rightpool.planning.offers.rejection import RejectionReason
from tests.unit.cli.cluster import condition, moment, placement, running_status
from tests.unit.cli.test_explain import explained, output, with_job


def test_a_job_that_has_ended_grows_no_older() -> None:
    ended = condition("Completed", reason="JobCompleted", message="the child Job succeeded")  # ten minutes ago
    since = {**placement(), "since": moment(4200)}
    assert "1, for 60 min" in output(with_job(running_status(conditions=[ended], placement=since)))
    stopped = condition("Placed", "False", "Suspended", "spec.suspend is true")
    paused = running_status(conditions=[stopped], placement=since, cost={"spent": "40.00", "saved": "0.00"})
    assert "1, for 60 min" in output(with_job(paused, suspend=True))
    assert "1, for 70 min" in output(with_job(running_status(placement=since)))


def test_a_volume_that_a_pool_can_not_reach_rules_it_out() -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    template = {"spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}], "volumes": [claim]}}
    workload = {"job": {"replicas": 1, "chipsPerReplica": 4, "template": template}}
    here = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-A100-SXM4-80GB"]}
    volume = {
        "metadata": {"name": "pv-1"},
        "spec": {
            "claimRef": {"namespace": "vision", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
        "status": {"phase": "Bound"},
    }
    client = with_job(workload=workload)
    client.add(PERSISTENT_VOLUMES, volume)
    rejected = {c.placement.pool: c.rejection and c.rejection.reason for c in explained(client).assessment.candidates}
    assert rejected["a10g"] is RejectionReason.VOLUME_ELSEWHERE
    client.hidden = {PERSISTENT_VOLUMES}
    found = explained(client)
    assert not any(c.rejection and c.rejection.reason == rejected["a10g"] for c in found.assessment.candidates)
    assert any("on which nodes volumes can be used is left out" in note for note in found.notes)
