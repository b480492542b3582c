"""What a status shows of an assessment, without the texts: enough to see that a new status would not be worth a write.

At the end of each window a job is evaluated anew, with a little more known of how its windows differ. Almost always
the status would be the same but for digits that nobody would notice, and its texts are most of what it costs.
"""

from __future__ import annotations

from rightpool.planning.jobs.job import Job
from rightpool.planning.judge.forecast import SURE, forecast
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.measured_job import MeasuredJob
from rightpool.planning.offers.targets.registry import TARGETS
from rightpool.reporting.write_policy import ShownValues

Verdicts = tuple[object, ...]
"""What conditions and recommendation are chosen by."""


def verdicts_of(job: Job, assessment: Assessment, now: float) -> Verdicts | None:
    """The verdicts on a job that is where it is to stay, at `now`, Unix seconds. None where a status has to be made to
    know what it says: texts about what is under way are written as they change."""
    if job.state.migration is not None or job.state.revision is None:
        return None
    decision, current = assessment.decision, assessment.current
    evidence = decision.evidence
    return (
        decision.action,
        decision.reason,
        decision.purpose,
        decision.target,
        type(evidence),
        assessment.unreachable,
        None if current is None or current.rejection is None else current.rejection.reason,
        _misses(job, current, now),
    )


def _misses(job: Job, current: Candidate | None, now: float) -> Verdicts:
    """Which targets are missed, or probably will be, and whether FLOPs contradict the chips. Several may be so, and a
    rejection names one."""
    declared = [target for target in TARGETS if target.declared(job.spec.targets)]
    missed = [target.missed_at(job, current) is not None for target in declared]
    unknown = [target.unknown_at(job, current) is not None for target in declared]
    impossible = current is not None and current.peak_exceeded is not None
    if all(target.at_risk is None for target in declared):
        return impossible, *missed, *unknown
    rest = forecast(job, None if current is None else current.throughput, now)
    chances = [target.chance(rest) for target in declared]
    return impossible, *missed, *unknown, *(None if chance is None else chance >= SURE for chance in chances)


def shown_values(assessment: Assessment | None) -> ShownValues:
    """The alternative that the messages compare with: what would be taken, else the best of the others. And how well
    the job scales where it is."""
    if assessment is None or not isinstance(assessment.evaluated, MeasuredJob):
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
