"""`rightpool explain` of a job whose chips a fault throttles: the same answer as the operator's."""

from __future__ import annotations

from rightpool.cli.explained import Explanation
from tests.unit.cli.cluster import condition, moment, placement, profile, running_status
from tests.unit.cli.test_explain import explained, output, with_job

THERE = {"pool": "a10g", "chips": 4, "replicas": 1}
MOVED = {
    "id": "d-1",
    "action": "Move",
    "from": THERE | {"pool": "a100"},
    "to": THERE,
    "baseline": "6048",
    "realised": "2432",
    "startedAt": moment(900),
    "finishedAt": moment(600),
    "outcome": "Verified",
    "reason": "Delivered",
}
EFFICIENT = condition("Efficient", "False", "Throttled", "clocks are held down 60% of the time by heat. what helps")


def throttled(**measured: str) -> Explanation:
    """Of a job that was measured on A100 before, and does 990 samples a second now."""
    recorded = profile(samplesPerSecond="990", bottleneck="Throttled", **measured)
    conditions = [condition("Placed", reason="Running"), condition("Profiled"), EFFICIENT]
    place = placement("a10g", cost="4.02", revision=2)
    client = with_job(running_status(placement=place, profile=recorded, conditions=conditions, history=[MOVED]))
    assert "by heat" in output(client), "as the operator said it"
    return explained(client)


def rate_on_a100(found: Explanation) -> float:
    (rate,) = (one.throughput for one in found.assessment.candidates if one.placement.pool == "a100")
    assert rate is not None
    return rate.median


def test_healthy_chips_elsewhere_are_not_predicted_by_throttled_ones() -> None:
    """Their rates were measured against those of healthy chips here."""
    as_if_healthy = rate_on_a100(throttled())
    assert rate_on_a100(throttled(throttle="0.6", clock="0.35")) > 1.5 * as_if_healthy
