"""The status draft: all that the operator has to say about one job, made once per cycle and applied once, if at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from pydantic import ValidationError

from rightpool.api import status as wire
from rightpool.api.conditions import Condition, ConditionType, Reason, set_condition
from rightpool.api.quantities import format_cents, format_duration, format_money, format_quantity, format_ratio
from rightpool.contract import LABEL_JOB
from rightpool.planning.account import Account
from rightpool.planning.assess import Assessment
from rightpool.planning.decision import Action
from rightpool.planning.migration import Phase
from rightpool.planning.snapshot import JobState
from rightpool.planning.verification import cost_per_million
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field, Quality
from rightpool.runtime.conditions import Circumstances, conditions_of
from rightpool.runtime.difference import Difference, difference
from rightpool.runtime.jobs import StoredJob
from rightpool.runtime.persistence import estimate_to_wire, persisted_fields, placement_to_wire, to_time
from rightpool.runtime.recovery import carried_over, stands

# A message or a measured number alone is not worth a write more often than this.
COSMETIC_SECONDS: Final = 60.0

_RATIOS: Final = {
    "chip_busy": Field.CHIP_BUSY,
    "compute_active": Field.COMPUTE_ACTIVE,
    "matrix_active": Field.MATRIX_ACTIVE,
    "memory_bandwidth": Field.MEMORY_BANDWIDTH,
    "exposed_communication": Field.EXPOSED_COMMUNICATION,
    "input_wait": Field.INPUT_WAIT,
}
_QUANTITIES: Final = {
    "samples_per_second": Field.SAMPLES_PER_SECOND,
    "step_seconds": Field.STEP_SECONDS,
    "power_watts": Field.POWER,
}
_PROPOSING: Final = frozenset({Action.MOVE, Action.RESIZE, Action.HOLD})
_VERDICTS: Final = frozenset({"conditions", "profile", "recommendation", "cost"})


@dataclass(frozen=True, slots=True)
class StatusDraft:
    """body: the whole status in wire form. difference: against what is stored. conditions: as in body.

    only_verdicts: whether nothing has changed but conditions, and the numbers and the advice behind them.
    """

    body: Mapping[str, Any]
    difference: Difference
    conditions: tuple[Condition, ...]
    only_verdicts: bool


def draft_status(stored: StoredJob, job: JobState, around: Circumstances) -> StatusDraft:
    """What the status should be. job: as it is to be persisted; stored: what is there."""
    if job.unreadable is not None:
        return _untouched(stored, job, around)
    said = stored.status
    now = to_time(around.now)
    still = around.recovering and around.telemetry and stands(said, job)
    applying = list(conditions_of(job, around))
    if still:
        applying = list(carried_over(said, applying))
    kept = {condition.type for condition in applying}
    conditions = [condition for condition in said.conditions if condition.type in kept]
    for condition in applying:
        conditions = set_condition(conditions, condition, now)
    settled = replace(job, account=job.account.settled(around.now))
    profile, per_million = _profile(job, around.assessment), _per_million(job)
    recommendation = _recommendation(job, around.assessment)
    ref, placed = job.ref, said.placement
    if still:
        profile, recommendation = said.profile, said.recommendation
        known = None if said.cost is None else said.cost.per_million_samples
        per_million = None if known is None else float(known)
    elif profile is None and ref is not None and placed is not None and placed.revision == ref.revision:
        profile = said.profile  # a restart of the operator does not make the numbers wrong
    status = wire.ProfiledJobStatus(
        observed_generation=job.generation,
        conditions=conditions,
        replicas=0 if ref is None else job.revision(ref.revision).running,
        selector=f"{LABEL_JOB}={job.key.name}",
        profile=profile,
        columns=_columns(settled.account, per_million),
        recommendation=recommendation,
        **persisted_fields(settled, per_million),
    )
    body = status.to_dict()
    before = stored.status_body
    facts = {*before, *body} - _VERDICTS
    return StatusDraft(
        body,
        difference(before, body),
        tuple(conditions),
        all(before.get(fact) == body.get(fact) for fact in facts),
    )


def _untouched(stored: StoredJob, job: JobState, around: Circumstances) -> StatusDraft:
    """The status as it is, and that it can't be read: it is the only memory of what runs, for whoever repairs it."""
    before = stored.status_body
    try:
        conditions = list(
            wire.ProfiledJobStatus.model_validate({"conditions": before.get("conditions") or ()}).conditions
        )
    except ValidationError:
        conditions = []
    for condition in conditions_of(job, around):
        if condition.type == ConditionType.PLACED:
            conditions = set_condition(conditions, condition, to_time(around.now))
    said = wire.ProfiledJobStatus(conditions=conditions).to_dict()
    body = {**before, "conditions": said["conditions"], "observedGeneration": job.generation}
    return StatusDraft(body, difference(before, body), tuple(conditions), only_verdicts=False)


def _columns(account: Account, per_million: float | None) -> wire.ColumnsStatus | None:
    if account == Account():
        return None
    return wire.ColumnsStatus(
        per_hour=None if account.cost_per_hour is None else format_money(account.cost_per_hour),
        per_million_samples=None if per_million is None else format_money(per_million),
        saved=format_cents(account.saved),
    )


def _per_million(job: JobState) -> float | None:
    if job.ref is None or job.profile is None or not job.profile.complete:
        return None
    rate = job.profile.value(Field.SAMPLES_PER_SECOND)
    return None if rate is None else cost_per_million(rate, job.ref.cost_per_hour)


def _profile(job: JobState, assessment: Assessment | None) -> wire.ProfileStatus | None:
    profile = job.profile
    if profile is None or profile.newest is None or not profile.readings:
        return None
    values: dict[str, Any] = {}
    for name, field in _RATIOS.items():
        value = profile.value(field)
        if value is not None:
            values[name] = format_ratio(value)
    for name, field in _QUANTITIES.items():
        value = profile.value(field)
        if value is not None:
            values[name] = format_quantity(value)
    memory = profile.value(Field.MEMORY_USED)
    if memory is not None:
        values["memory_used_bytes"] = int(memory)
    current = None if assessment is None else assessment.current
    if current is not None and current.scaling_efficiency is not None:
        values["scaling_efficiency"] = format_ratio(current.scaling_efficiency)
    return wire.ProfileStatus(
        window=format_duration(timedelta(seconds=profile.window)),
        measured_at=to_time(profile.newest).replace(microsecond=0),
        bottleneck=None if job.diagnosis is None else job.diagnosis.bottleneck.value,
        quality=_quality(profile),
        **values,
    )


def _quality(profile: Profile) -> str:
    if not profile.complete:
        return "Partial"
    derived = any(reading.quality is Quality.DERIVED for reading in profile.readings.values())
    return Quality.DERIVED.value if derived else Quality.MEASURED.value


def _recommendation(job: JobState, assessment: Assessment | None) -> wire.Recommendation | None:
    """What would be done next: the migration that waits for approval, else the decision that nothing came of yet."""
    if job.finished is not None or job.ref is None:
        return None
    migration = job.migration
    if migration is not None:
        if migration.phase is not Phase.PLANNED:
            return None
        return wire.Recommendation(
            id=migration.id,
            action=migration.action.value,
            placement=placement_to_wire(migration.target.placement, migration.target.cost_per_hour),
            samples_per_second=estimate_to_wire(migration.predicted),
            reason=migration.reason.value,
            held_by=Reason.AWAITING_APPROVAL.value if job.awaits_approval else None,
            message=migration.message,
        )
    if assessment is None:
        return None
    decision = assessment.decision
    candidate = decision.candidate
    if decision.action not in _PROPOSING or candidate is None or candidate.placement == job.ref.placement:
        return None
    elsewhere = candidate.placement.pool != job.ref.placement.pool
    return wire.Recommendation(
        id=f"d-{job.decisions + 1}",
        action=(Action.MOVE if elsewhere else Action.RESIZE).value,
        placement=wire.TargetPlacement(
            pool=candidate.placement.pool,
            chips=candidate.placement.chips,
            replicas=candidate.placement.replicas,
            capacity=candidate.placement.capacity.value,
            cost_per_hour=None if candidate.cost_per_hour is None else format_money(candidate.cost_per_hour),
        ),
        samples_per_second=estimate_to_wire(candidate.samples_per_second),
        savings=None if candidate.saving is None else format_ratio(candidate.saving),
        reason=(decision.purpose or decision.reason).value,
        held_by=decision.reason.value if decision.action is Action.HOLD else None,
        message=decision.message,
    )
