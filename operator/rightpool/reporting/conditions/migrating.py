"""Migrating and Verified: the Migration that is in progress, and what the last one delivered."""

from __future__ import annotations

from functools import partial
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.wording import chips, place, sentence
from rightpool.contract import ANNOTATION_APPROVE
from rightpool.planning.jobs.approval import approves, recommendation_id
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.lingering import foreign_pod, unended
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.decision import Decision
from rightpool.planning.work.unsaved import unsaved
from rightpool.reporting.conditions.context import UNDER_WAY, Context, Statement
from rightpool.reporting.decision_texts import decision_text, undone_text

_MOVING: Final = {
    Action.MOVE: Reason.MOVING,
    Action.RESIZE: Reason.RESIZING,
    Action.UPDATE: Reason.UPDATING,
    Action.START: Reason.STARTING,
}
_NOT_TRIED: Final = frozenset({Outcome.HELD, Outcome.SUPERSEDED, Outcome.CARRIED_OUT})


def migrating(job: Job, context: Context) -> Statement | None:
    if job.state.migration is not None:
        return _under_way(job, job.state.migration, context)
    if job.state.revision is None or job.state.finished is not None:
        return None
    assessment = context.assessment
    decision = None if assessment is None else assessment.decision
    refused = _refused_approval(job, decision)
    if refused is not None:
        return refused
    if job.overruled is not None:
        return Statement("False", Reason.CHANGE_UNDONE, undone_text(job.overruled))
    if unsaved(job.state.history) and (decision is None or decision.action is not Action.KEEP):
        last = job.state.history[-1]
        return Statement("False", last.reason, f"{last.id}: {last.message}")
    # In the cycle in which a migration ends, the decision is still about it.
    if assessment is None or assessment.decision.action is not Action.HOLD or assessment.decision.reason in UNDER_WAY:
        return Statement("False", Reason.SETTLED, "nothing is to be moved")
    return _held(job, assessment, context.now)


def _under_way(job: Job, migration: Migration, context: Context) -> Statement:
    if migration.failure is not None and migration.given_up:
        message = f"{migration.id} waits for the next edit: {migration.failure_message}"
        return Statement("False", migration.failure, message)
    source, target = migration.moving.placement, migration.target.placement
    way = f"{migration.id}: {chips(source.chips)} of {source.pool} → {chips(target.chips)} of {target.pool}"
    if job.awaits_approval:
        how = f"approve it by `rightpool approve {job.key.name}`"
        if job.approved is not None and not _known(job):
            return Statement("False", Reason.APPROVAL_UNKNOWN, f"{_unknown(job)}, and {migration.id} waits: {how}")
        return Statement("False", Reason.AWAITING_APPROVAL, f"{way}: {how}")
    waiting = None if context.assessment is None else context.assessment.waits_for
    if migration.phase is Phase.PLANNED and waiting is not None:
        return Statement("False", waiting.reason, f"{migration.id}: {waiting.text(context.now)}")
    reason, why = _MOVING.get(migration.action, Reason.MOVING), migration.message
    if migration.phase is Phase.PLANNED:
        why = ""  # status.recommendation has it until the move begins
    if migration.rolling_back:
        reason, why = Reason.ROLLING_BACK, ""  # Verified has it
    stuck, waits = _waits(job, migration, context.now)
    if waits:
        return Statement("True", stuck or reason, f"{migration.id} is {migration.phase.value}: {waits}")
    share = f" {migration.share}%" if migration.share and migration.phase is Phase.SHARING else ""
    return Statement("True", reason, sentence(f"{way}, {migration.phase.value}{share}", why))


def _waits(job: Job, migration: Migration, now: float) -> tuple[Reason | None, str]:
    """What a migration waits for, as its reason where that is what matters, and in words; empty: nothing."""
    starts = migration.phase in (Phase.DRAINING, Phase.STARTING)
    stuck = unended(job, now) if starts else None
    if stuck is not None:
        return Reason.PODS_NOT_ENDING, stuck.text()
    if job.state.pause is not None:
        return None, "the job is stopped, and the move goes on when it runs again"
    foreign = foreign_pod(job) if starts else None
    return None, "" if foreign is None else foreign.text()


def _refused_approval(job: Job, decision: Decision | None) -> Statement | None:
    """That what was approved is no decision, where it is not the one that is held either."""
    if job.approved is None or _known(job):
        return None
    assert job.state.revision is not None
    other = None if decision is None or decision.action is not Action.HOLD else decision.target
    if other is not None and approves(job, other):
        return None
    instead = "nothing waits for an approval"
    if other is not None and other != job.state.revision.placement:
        instead = f"what is recommended now is {recommendation_id(job, other)}"
    return Statement("False", Reason.APPROVAL_UNKNOWN, f"{_unknown(job)}: {instead}")


def _held(job: Job, assessment: Assessment, now: float) -> Statement:
    decision = assessment.decision
    if decision.reason is Reason.POLICY_RECOMMEND_ONLY and decision.target is not None:
        named = recommendation_id(job, decision.target)
        return Statement("False", decision.reason, f"{named} is recommended, which mode Recommend does not carry out")
    if decision.reason is Reason.ADOPTION_RECOMMEND_ONLY and decision.target is not None:
        left = f"adoption.change Recommend leaves {job.spec.workload_ref} as it is"
        return Statement("False", decision.reason, f"{place(decision.target)} is recommended, and {left}")
    return Statement("False", decision.reason, partial(decision_text, job, assessment, now))


def _known(job: Job) -> bool:
    """Whether the approval is of a decision that was taken."""
    return any((f"{job.approved}-").startswith(f"{entry.id}-") for entry in job.state.history)


def _unknown(job: Job) -> str:
    return f"the annotation {ANNOTATION_APPROVE} names {job.approved}, which does not wait for approval"


def verified(job: Job, context: Context) -> Statement | None:
    migration = job.state.migration
    if migration is not None and migration.failure is not None:
        return Statement("False", migration.failure, f"{migration.id}: {migration.failure_message}")
    if migration is not None and migration.promises and migration.phase is not Phase.PLANNED:
        return Statement("Unknown", Reason.VERIFICATION_PENDING, f"{migration.id} is {migration.phase.value}")
    return _last_verified(job)


_DELIVERED: Final = (Reason.DELIVERED, Reason.LATENCY_HELD, Reason.TOO_FEW_REQUESTS)


def _was_tried(entry: LedgerEntry) -> bool:
    return entry.outcome not in _NOT_TRIED and entry.action not in (Action.START, Action.UPDATE)


def _last_verified(job: Job) -> Statement | None:
    entry: LedgerEntry | None = next((e for e in reversed(job.state.history) if _was_tried(e)), None)
    if entry is None:
        return None
    # Until the next move is decided; then status.history has it.
    message = f"{entry.id}: {entry.message}" if entry.message and job.state.migration is None else entry.id
    delivered = entry.outcome is Outcome.VERIFIED and entry.reason in _DELIVERED
    return Statement("True" if delivered else "False", entry.reason, message)
