"""What the messages of a status are made of, as numbers: enough to see that other ones are worth a write."""

from __future__ import annotations

from rightpool.planning.offers.assessment import Assessment
from rightpool.reporting.write_policy import ShownValues


def shown_values(assessment: Assessment | None) -> ShownValues:
    """The alternative that the messages compare with: what would be taken, else the best of the others. And how well
    the job scales where it is."""
    if assessment is None:
        return {}
    candidate, current = assessment.decision.candidate or assessment.first, assessment.current
    if candidate is None or candidate.throughput is None:
        return {}
    shown: dict[str, float | str] = {
        "pool": candidate.placement.pool,
        "chips": str(candidate.placement.chips),
        "throughput": candidate.throughput.median,
        "unit": candidate.unit.value,
    }
    if candidate.cost_per_hour is not None:
        shown["costPerHour"] = candidate.cost_per_hour
    if candidate.saving is not None:
        shown["savings"] = candidate.saving
    if current is not None and current.scaling_efficiency is not None:
        shown["scalingEfficiency"] = current.scaling_efficiency
    if current is not None and current.flops_utilization is not None:
        shown["modelFlopsUtilization"] = current.flops_utilization
    return shown
