"""Verdicts: what a reader of a status acts on. To compare them takes a tenth of the time of making a status, since they
are compared before any of its sentences is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rightpool.api.action import Action
from rightpool.api.conditions import ConditionType, Reason
from rightpool.api.migration import Phase
from rightpool.planning.jobs.approval import recommendation_id
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.candidate import Candidate
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.table import statements_of
from rightpool.reporting.recovery import not_known_yet, still_applies
from rightpool.reporting.server_status import shown_sides
from rightpool.reporting.stored_job import StoredJob

FACTS: Final = frozenset({ConditionType.PLACED, ConditionType.VERIFIED, ConditionType.COMPLETED, ConditionType.FAILED})
"""Conditions whose text is one, too: it holds no measured number."""
_PROPOSING: Final = frozenset({Action.MOVE, Action.RESIZE, Action.HOLD})


def verdicts(body: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Of each condition of a status in wire form, what a reader acts on."""
    return {
        condition["type"]: (condition["status"], condition["reason"], condition.get("message", ""))
        if condition["type"] in FACTS
        else (condition["status"], condition["reason"])
        for condition in body.get("conditions") or ()
    }


class Verdicts(NamedTuple):
    """What a status says."""

    conditions: Mapping[str, tuple[str, ...]]
    """Status and reason of each, and the text of a fact."""
    generation: int | None
    """Of the spec that was looked at."""
    running: int
    """Pods."""
    bottleneck: str | None
    """None where there is none."""
    proposed: str | None
    """The id of the recommendation."""
    held_by: str | None
    """Why that is not carried out."""
    timed: frozenset[str]
    """Pools where a server's batches were timed."""

    @property
    def print(self) -> int:
        """Equal where they are. For comparison within one process."""
        return hash((frozenset(self.conditions.items()), self[1:]))


def stored_verdicts(body: Mapping[str, Any]) -> Verdicts:
    """Of a status in wire form."""
    proposed, profile = body.get("recommendation") or {}, body.get("profile") or {}
    return Verdicts(
        verdicts(body),
        body.get("observedGeneration"),
        body.get("replicas") or 0,
        profile.get("bottleneck"),
        proposed.get("id"),
        proposed.get("heldBy"),
        frozenset(side["pool"] for side in (body.get("server") or {}).get("sides") or () if side.get("measured")),
    )


def made_verdicts(job: Job, context: Context) -> Verdicts:
    """Of the status that would be made of the job, but for what would be carried over after a restart."""
    reasons = {}
    for kind, statement in statements_of(job, context):
        words = statement.status, str(statement.reason)
        reasons[kind] = (*words, statement.text()) if kind in FACTS else words
    ref, diagnosis = job.state.revision, job.observed.diagnosis
    return Verdicts(
        reasons,
        job.generation,
        0 if ref is None else job.revision(ref.revision).running,
        None if diagnosis is None else diagnosis.bottleneck.value,
        *_proposed(job, context.assessment),
        _timed(job),
    )


def with_stored(made: Verdicts, before: Verdicts, stored: StoredJob, job: Job, context: Context) -> Verdicts:
    """What the status would say, with what is carried over of the stored one after a restart."""
    measured = before.conditions.get(ConditionType.PROFILED, ("",))[0] == "True"
    if not (context.recovering and context.telemetry and still_applies(stored, job, measured=measured)):
        return made
    reasons = dict(made.conditions)
    for kind, words in before.conditions.items():
        if kind in reasons and not_known_yet(reasons[kind][1], words[1]):
            reasons[kind] = words
    return made._replace(
        conditions=reasons,
        bottleneck=before.bottleneck,
        proposed=before.proposed,
        held_by=before.held_by,
        timed=before.timed,
    )


def _timed(job: Job) -> frozenset[str]:
    sizing, ref = job.observed.sizing, job.state.revision
    sides = () if sizing is None or ref is None else shown_sides(sizing, ref.placement.pool)
    return frozenset(side.pool for side in sides if side.measured)


def proposed_candidate(job: Job, assessment: Assessment | None) -> Candidate | None:
    """What the decision proposes and nothing came of yet."""
    if job.state.finished is not None or job.state.revision is None or assessment is None:
        return None
    decision = assessment.decision
    candidate = decision.candidate
    if decision.action not in _PROPOSING or candidate is None or candidate.placement == job.state.revision.placement:
        return None
    return candidate


def _proposed(job: Job, assessment: Assessment | None) -> tuple[str | None, str | None]:
    """The id of the recommendation, and what holds it."""
    migration = job.state.migration
    if migration is not None and job.state.finished is None:
        if migration.phase is not Phase.PLANNED:
            return None, None
        return migration.id, Reason.AWAITING_APPROVAL.value if job.awaits_approval else None
    candidate = proposed_candidate(job, assessment)
    if assessment is None or candidate is None:
        return None, None
    decision = assessment.decision
    return recommendation_id(job, candidate.placement), (
        decision.reason.value if decision.action is Action.HOLD else None
    )
