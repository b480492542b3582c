"""The status draft: all that the operator has to say about one job, made once per cycle and applied once, if at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.altered import altered
from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition, set_conditions
from rightpool.api.ledger import measured_cost_per_million
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.quantities import format_cents, format_money
from rightpool.api.status import (
    ColumnsStatus,
    OutlookStatus,
    ProfiledJobStatus,
    ProfileStatus,
    Recommendation,
    ServerStatus,
    measured_now,
)
from rightpool.api.value_object import value_object
from rightpool.api.wording import sentence, share, short_place
from rightpool.api.work_unit import WorkUnit
from rightpool.contract import LABEL_JOB
from rightpool.planning.jobs.approval import recommendation_id
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.work.forecast import forecast
from rightpool.planning.work.progress import goodput, progress_of
from rightpool.reporting.conditions.context import Context, complete_profile
from rightpool.reporting.conditions.table import conditions_of
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.profile_status import profile_status
from rightpool.reporting.recovery import carried_over, still_applies
from rightpool.reporting.server_status import p99_text, server_status, target_text
from rightpool.reporting.stored_job import StoredJob
from rightpool.reporting.verdicts import proposed_candidate
from rightpool.reporting.write_policy import ShownValues


@value_object
class StatusDraft:
    """A status that could be written."""

    body: Mapping[str, Any]
    """The whole status in wire form."""

    stored: Mapping[str, Any]
    """The stored status in wire form."""

    before: tuple[Condition, ...]
    """The stored conditions."""

    conditions: tuple[Condition, ...]
    """As in the body."""

    shown: ShownValues
    """What its messages are made of."""


def draft_status(stored: StoredJob, job: Job, context: Context) -> StatusDraft:
    """What the status should be. job: as it is to be persisted; stored: what is there."""
    if job.unreadable is not None:
        return _untouched(stored, job, context)
    stored_body = stored.status_body
    before = stored.status_of(stored_body)
    profiled = find_condition(before.conditions, ConditionType.PROFILED)
    measured = profiled is not None and profiled.status == "True"
    still = context.recovering and context.telemetry and still_applies(stored, job, measured=measured)
    applying = list(conditions_of(job, context))
    if still:
        applying = list(carried_over(before, applying))
    kept = {condition.type for condition in applying}
    stored_conditions = (condition for condition in before.conditions if condition.type in kept)
    profile, per_million = profile_status(job, context.assessment), _per_million(job)
    server = server_status(job)
    recommendation = _recommendation(job, context.assessment, context.now)
    ref, placed = job.state.revision, before.state.revision
    if still:
        profile, recommendation, server = before.profile, before.recommendation, before.server
        per_million = before.state.account.cost_per_million
    elif profile is None and ref is not None and placed is not None and placed.revision == ref.revision:
        profile = before.profile  # a restart of the operator does not make the numbers wrong
    account = job.state.account.settled(context.now)
    progress = job.state.progress if job.state.finished is not None else progress_of(job, context.now)
    account = altered(account, cost_per_million=per_million, goodput=goodput(account, progress))
    if progress is not None and progress.since is None:
        progress = None
    outlook = before.outlook if still else _outlook(job, context)
    conditions = set_conditions(stored_conditions, applying, context.now)
    status = ProfiledJobStatus(
        observed_generation=job.generation,
        conditions=conditions,
        replicas=0 if ref is None else job.revision(ref.revision).running,
        selector=f"{LABEL_JOB}={job.key.name}" if job.observed.adopted is None else job.observed.adopted.selector,
        profile=profile,
        state=altered(job.state, account=account, progress=progress),
        outlook=outlook,
        recommendation=recommendation,
        server=server,
        summary=_summary(account, measured_now(conditions, profile), outlook, recommendation, server, job),
    )
    return StatusDraft(status.to_dict(), stored_body, before.conditions, conditions, _shown_values(context.assessment))


def _untouched(stored: StoredJob, job: Job, context: Context) -> StatusDraft:
    """The status as it is, and that it can't be read: it is the only memory of what runs, for the repair."""
    before = stored.status_body
    try:
        stored_conditions = ProfiledJobStatus.from_dict({"conditions": before.get("conditions") or ()}).conditions
    except ValidationError:
        stored_conditions = ()
    placed = [condition for condition in conditions_of(job, context) if condition.type == ConditionType.PLACED]
    conditions = set_conditions(stored_conditions, placed, context.now)
    written = ProfiledJobStatus(conditions=conditions).to_dict()
    body = {**before, "conditions": written["conditions"], "observedGeneration": job.generation}
    return StatusDraft(body, before, stored_conditions, conditions, {})


def _shown_values(assessment: Assessment | None) -> ShownValues:
    """What the messages are made of, as numbers, enough to see that other ones are worth a write: the alternative that
    they compare with, which is what would be taken, else the best of the others; and how well the job scales here."""
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


def _summary(
    account: Account,
    profile: ProfileStatus | None,
    outlook: OutlookStatus | None,
    recommendation: Recommendation | None,
    server: ServerStatus | None,
    job: Job,
) -> ColumnsStatus | None:
    """profile: where it says what the job does now."""
    if account.empty:
        return None
    hourly, per_million = account.cost_per_hour, account.cost_per_million
    progress = None if outlook is None else outlook.progress
    saves = None if recommendation is None else recommendation.savings
    return ColumnsStatus(
        bottleneck=None if profile is None else profile.bottleneck,
        samples_per_second=None if profile is None else profile.samples_per_second,
        steps_per_second=None if profile is None else profile.steps_per_second,
        scaling_efficiency=None if profile is None else profile.scaling_efficiency,
        per_hour=None if hourly is None else format_money(hourly),
        requests_per_second=None if server is None else server.requests_per_second,
        p99=None if server is None else p99_text(server.p99_at_least, server.p99_at_most),
        target=target_text(job.spec.targets),
        per_million=_per_million_text(per_million, unit_of(job), server),
        saved=format_cents(account.saved),
        progress=None if progress is None else share(progress),
        goes_to=None if recommendation is None else short_place(recommendation.placement),
        saves=None if saves is None else share(saves),
    )


def _per_million_text(per_million: float | None, unit: WorkUnit, server: ServerStatus | None) -> str | None:
    if unit is WorkUnit.TOKENS:
        per_million = None if server is None or server.tokens is None else server.tokens.cost_per_million
    elif server is not None and server.cost_per_million is not None:
        return f"{format_money(server.cost_per_million)} requests"
    return None if per_million is None else _of(unit, format_money(per_million))


def _of(unit: WorkUnit, money: str) -> str:
    """Dollars for a million, and of what where it is not samples."""
    return money if unit is WorkUnit.SAMPLES else f"{money} {unit.plural}"


def _outlook(job: Job, context: Context) -> OutlookStatus | None:
    """None where the job does not say how much work it has, or its rate is not known."""
    current = None if context.assessment is None or complete_profile(job) is None else context.assessment.current
    rest = forecast(job, None if current is None else current.throughput, context.now)
    if rest.progress is None:
        return None
    ends = None if rest.finish_at is None else math.floor(rest.finish_at)
    return OutlookStatus(progress=rest.progress, finish_at=ends)


def _per_million(job: Job) -> float | None:
    if job.state.revision is None or job.observed.profile is None or not job.observed.profile.complete:
        return None
    if job.observed.profile.key.revision != job.state.revision.revision:
        return None  # the rate of one place and the price of another give nothing
    rate = job.observed.profile.throughput
    return None if rate is None else measured_cost_per_million(rate.value, job.state.revision.cost_per_hour)


def _saving(assessment: Assessment | None, target: Placement) -> float | None:
    """What the placement would save by now; None where that is not known, or it is not compared any more."""
    candidates = () if assessment is None else assessment.candidates
    return next((candidate.saving for candidate in candidates if candidate.placement == target), None)


def _recommendation(job: Job, assessment: Assessment | None, now: float) -> Recommendation | None:
    """What would be done next: the migration that waits for approval, else the decision that nothing came of yet."""
    if job.state.finished is not None or job.state.revision is None:
        return None
    migration = job.state.migration
    if migration is not None:
        if migration.phase is not Phase.PLANNED:
            return None
        return Recommendation(
            id=migration.id,
            action=migration.action,
            placement=migration.target.placement,
            cost_per_hour=migration.target.cost_per_hour,
            unit=migration.unit,
            # What that rests on stands in the migration until it begins.
            throughput=None if migration.predicted is None else altered(migration.predicted, basis=(), shared=()),
            savings=_saving(assessment, migration.target.placement),
            reason=migration.reason.value,
            held_by=Reason.AWAITING_APPROVAL.value if job.awaits_approval else None,
            message=migration.message,
        )
    candidate = proposed_candidate(job, assessment)
    if assessment is None or candidate is None:
        return None
    decision = assessment.decision
    elsewhere = candidate.placement.pool != job.state.revision.placement.pool
    return Recommendation(
        id=recommendation_id(job, candidate.placement),
        action=Action.MOVE if elsewhere else Action.RESIZE,
        placement=candidate.placement,
        cost_per_hour=candidate.cost_per_hour,
        unit=candidate.unit,
        throughput=candidate.throughput,
        savings=candidate.saving,
        reason=(decision.purpose or decision.reason).value,
        held_by=decision.reason.value if decision.action is Action.HOLD else None,
        message=sentence(decision_text(job, assessment, now)),
    )
