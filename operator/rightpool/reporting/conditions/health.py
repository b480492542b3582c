"""Degraded, Completed and Failed."""

from __future__ import annotations

from functools import partial
from typing import Final

from rightpool.api.conditions import Reason
from rightpool.api.wording import MESSAGE, both_ends, brief, dollars
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.transitions import FAILED
from rightpool.planning.offers.readiness import COMPLETED
from rightpool.profiles.bottleneck import Bottleneck
from rightpool.reporting.conditions.context import Context, Statement, operator_failed
from rightpool.reporting.diagnosis_texts import diagnosis_text
from rightpool.workloads.kinds.registry import kind_name

_FAULTS: Final = {Bottleneck.STRAGGLER: Reason.STRAGGLER, Bottleneck.UNHEALTHY: Reason.UNHEALTHY}


def degraded(job: Job, context: Context) -> Statement | None:
    if context.problem is not None and job.state.finished is None:
        return Statement("True", Reason.OPERATOR_FAILED, operator_failed(context.problem))
    revision = job.state.revision
    if job.state.finished is not None:
        return None
    if revision is None:
        return _refused_variant(job)
    if context.price is None:
        where = job.observed.pool_problem or f"pool {revision.placement.pool} can't be used: see its conditions"
        return Statement("True", Reason.ACCELERATOR_UNKNOWN, where)
    if context.price.hourly(revision.placement) is None:
        counted = "its hours are not counted"
        if revision.cost_per_hour is not None:
            counted = f"{dollars(revision.cost_per_hour)}/h counts, its last price"
        text = f"pool {revision.placement.pool} has no price, and {counted}: set spec.price of the pool"
        return Statement("True", Reason.PRICE_UNKNOWN, text)
    diagnosis = job.observed.diagnosis
    reason = None if diagnosis is None else _FAULTS.get(diagnosis.bottleneck)
    if diagnosis is not None and reason is not None:
        return Statement("True", reason, partial(diagnosis_text, diagnosis.finding))
    refused = _refused_variant(job)
    if refused is None and context.uncalibrated is not None:
        return Statement("True", Reason.POOL_UNCALIBRATED, f"pool {revision.placement.pool}: {context.uncalibrated}")
    return refused or Statement("False", Reason.HEALTHY, "")


def _refused_variant(job: Job) -> Statement | None:
    """That the job can't go where it has a variant for. What runs is not concerned."""
    refused = job.observed.refused_variants
    if not refused:
        return None
    return Statement("True", Reason.INVALID_VARIANT, "; ".join(refusal.message for refusal in refused))


def completed(job: Job, context: Context) -> Statement | None:
    if job.state.finished != COMPLETED:
        return None
    return Statement("True", Reason.JOB_COMPLETED, f"the child {kind_name(job.spec.workload)} succeeded")


def failed(job: Job, context: Context) -> Statement | None:
    if job.state.finished != FAILED:
        return None
    failure = None if job.child is None else job.child.failure
    if not failure:
        return Statement("True", Reason.JOB_FAILED, f"the child {kind_name(job.spec.workload)} failed")
    # What the container has written, then what Kubernetes says of the child.
    pod, _, child = failure.partition("; ")
    if not child:
        return Statement("True", Reason.JOB_FAILED, both_ends(pod, MESSAGE))
    pod = brief(pod, MESSAGE // 2)
    return Statement("True", Reason.JOB_FAILED, f"{pod}; {both_ends(child, MESSAGE - len(pod) - 2)}")
