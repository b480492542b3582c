"""What explain says of a server: its week, what a replica takes, and what it would be in each pool."""

from __future__ import annotations

from typing import Any

from rightpool.api.workload import Workload
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.workloads.kinds.registry import pod_sets_of
from rightpool.workloads.names import workload_hash
from tests.unit.cli.cluster import placement, running_status
from tests.unit.cli.test_explain import explained, output, with_job
from tests.unit.planning.test_surge import TEMPLATE

SERVER = {
    "chipsPerReplica": 4,
    "replicas": {"min": 1, "max": 8},
    "port": 8000,
    "metrics": {"port": 8002},
    "template": TEMPLATE,
}


def side(pool: str, hours: str, **fields: Any) -> dict[str, Any]:
    known = {"fixed": "0.01", "each": "0.001", "servable": "500", "probability": "0.93", "replicas": 2}
    rest = {"load": "4", "seen": "8", "doubt": "0.1", "spare": "1.5", "hours": hours, "within": "0.041"}
    return {"pool": pool, **known, **rest, **fields}


def shown(*sides: dict[str, Any]) -> Any:
    program = workload_hash(pod_sets_of(Workload.model_validate({"server": SERVER})))
    status = running_status(placement=placement() | {"workloadHash": program}, profile=None)
    status["server"] = {
        "requestsPerSecond": "800",
        "p99AtMost": "0.05",
        "peak": "900",
        "recordedHours": "160",
        "week": "▁▃█▅·",
        "servableAtLeast": "400",
        "servableAtMost": "550",
        "needed": 1,
        "sides": list(sides),
    }
    targets = {"latency": {"p99": "60ms"}}
    return with_job(
        status, workload={"server": SERVER}, elasticity={}, targets=targets, placement={"memoryPerChip": "10Gi"}
    )


def test_its_week_and_what_a_replica_takes_are_shown() -> None:
    text = output(shown(side("a100", "0.6", measured=True, servable="1000", replicas=1)), 140)
    assert "▁▃█▅·" in text and "a dot where nothing is known" in text
    assert "takes 400 to 550 requests/s at the peak with the limit kept" in text
    assert "800 a second, p99 <=50 ms" in text


def test_what_the_memory_of_each_pool_holds_is_shown() -> None:
    text = output(shown(side("a100", "0.6", measured=True, held="52"), side("a10g", "1.2", held="9.2")), 140)
    assert "holds so many requests of a replica at once: 52 in a100, 9.2 in a10g" in text


def test_pools_are_compared_by_replicas_their_p99_and_dollars() -> None:
    client = shown(side("a100", "0.6", measured=True, servable="1000", replicas=1), side("a10g", "1.2"))
    found = explained(client)
    there = next(one for one in found.assessment.candidates if one.placement.pool == "a10g")
    assert there.placement.replicas == 2 and there.rejection is not None
    assert there.rejection.reason is RejectionReason.DOES_NOT_PAY_BACK, "the server is an hour old"
    text = output(client, 160)
    assert "P99" in text and "P(HELD)" in text and "$/M REQUESTS" in text
    assert "0.93" in text and "41 ms" in text


def test_a_pool_that_does_not_keep_the_limit_says_why() -> None:
    slow = side("a10g", "1.2", fixed="0.1")
    found = explained(shown(side("a100", "0.6", measured=True), slow))
    there = next(one for one in found.assessment.candidates if one.placement.pool == "a10g")
    assert there.rejection is not None and there.rejection.reason is RejectionReason.TOO_SLOW_ALONE
