"""What somebody has to see to: the part that leads the page of the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition
from rightpool.planning.jobs.adopted import UNFOLLOWED
from rightpool.planning.jobs.job import JobKey
from rightpool.reporting.stored_job import StoredJob


class Need(StrEnum):
    """Why a job needs somebody, the most urgent first. The word is shown, and is the class of its colour."""

    FAILED = "failed"
    STUCK = "stuck"  # it does not run, and nothing but a change by somebody gets it to
    DEGRADED = "degraded"
    THROTTLED = "throttled"
    TARGET = "target"  # a declared target is missed, or will probably be
    APPROVE = "approve"


# Placements that do not come about by waiting.
_STUCK: Final = frozenset(
    {
        Reason.NAME_TAKEN,
        *(set(UNFOLLOWED) - {Reason.WORKLOAD_NOT_RUNNING}),
        Reason.KIND_NOT_INSTALLED,
        Reason.PODS_NOT_ENDING,
        Reason.FOREIGN_POD,
        Reason.OPERATOR_FAILED,
        Reason.INVALID_SPEC,
        Reason.INVALID_STATUS,
        Reason.INVALID_TEMPLATE,
        Reason.NO_FEASIBLE_POOL,
        Reason.CRASH_LOOP,
        Reason.CONTAINER_NOT_STARTED,
        Reason.WARM_UP_FAILED,
        Reason.SCHEDULER_SILENT,
        Reason.START_PREVENTED,
        Reason.START_DEADLINE_EXCEEDED,
        Reason.BUDGET_EXCEEDED,
    }
)


class _Cause(NamedTuple):
    """What jobs have in common that are told in one row."""

    need: Need
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing to see to."""

    need: Need
    """What kind it is of."""
    reason: str
    """That of the condition, in one CamelCase word."""
    message: str
    """The evidence, and what can be done."""
    jobs: tuple[JobKey, ...]
    """Those that it holds for, by name."""


def attention(jobs: Iterable[StoredJob]) -> tuple[Attention, ...]:
    """What the jobs need somebody for, the most urgent first; what is true of many jobs alike once."""
    found: dict[_Cause, list[JobKey]] = {}
    for stored in jobs:
        for cause in _causes(stored):
            found.setdefault(cause, []).append(stored.job.key)
    urgency = list(Need)
    ranked = sorted(found.items(), key=lambda each: (urgency.index(each[0].need), -len(each[1]), min(each[1])))
    return tuple(Attention(*cause, tuple(sorted(keys))) for cause, keys in ranked)


def _causes(stored: StoredJob) -> Iterator[_Cause]:
    job, status = stored.job, stored.status

    def condition_of(kind: ConditionType, value: str) -> Condition | None:
        condition = find_condition(status.conditions, kind)
        return condition if condition is not None and condition.status == value else None

    if job.deleting or not job.spec.managed:
        return
    failed = condition_of(ConditionType.FAILED, "True")
    if failed is not None:
        yield _Cause(Need.FAILED, failed.reason, failed.message)
    if job.state.finished is not None:
        return
    placed = find_condition(status.conditions, ConditionType.PLACED)
    if placed is not None and placed.reason in _STUCK:
        yield _Cause(Need.STUCK, placed.reason, placed.message)
    degraded = condition_of(ConditionType.DEGRADED, "True")
    if degraded is not None:
        yield _Cause(Need.DEGRADED, degraded.reason, degraded.message)
    efficient = condition_of(ConditionType.EFFICIENT, "False")
    if efficient is not None and efficient.reason == Reason.THROTTLED:
        yield _Cause(Need.THROTTLED, efficient.reason, efficient.message)
    missed = condition_of(ConditionType.TARGETS_MET, "False")
    if missed is not None:
        yield _Cause(Need.TARGET, missed.reason, missed.message)
    recommended = status.recommendation
    if recommended is not None and recommended.held_by == Reason.AWAITING_APPROVAL:
        yield _Cause(Need.APPROVE, recommended.reason, recommended.message)
