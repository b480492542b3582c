"""The decision that commands tell: the operator's, as the status has it, and what it would be if evaluated now.

The operator evaluates a job anew where something new is seen of it, and every half an hour in any case; what the fleet
has learned since, and chips that were taken since, it does not know yet. It acts by its own decision, so this is the
one that is told; another one is told beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import ConditionType, Reason, find_condition
from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.api.wording import place
from rightpool.cli.state import without_operator
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.decision import REASONS
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.stored_job import StoredJob

# Why a job stays, by how CostEfficient has it.
_STAYS: Final[Mapping[str, Reason]] = {Reason.NEAR_CHEAPEST: Reason.BELOW_MIN_SAVINGS}


@value_object
class Decided:
    """A decision in words."""

    action: Action
    """What is done; Hold where nothing can be."""
    reason: str
    """Why; of Hold, why not."""
    message: str
    """The same with the numbers that decide."""
    target: Placement | None
    """Where to; of Hold, where the job would go."""


def decided(stored: StoredJob, job: Job, assessment: Assessment, now: float) -> tuple[Decided, Decided | None]:
    """The decision on a job, and what it would be if evaluated now, where that is another one. job: with what is
    observed of it."""
    anew = _evaluated(stored, job, assessment, now)
    known = _recorded(stored, job)
    return (anew, None) if known is None or _same(known, anew) else (known, anew)


def _evaluated(stored: StoredJob, job: Job, assessment: Assessment, now: float) -> Decided:
    decision = assessment.decision
    message = decision_text(job, assessment, now)
    if decision.action is Action.START and decision.target is not None and without_operator(stored, now):
        message = f"would start on {place(decision.target)}"  # nothing is promised where no operator looks
    return Decided(decision.action, decision.reason.value, message, decision.target)


def _recorded(stored: StoredJob, job: Job) -> Decided | None:
    """What the operator wrote about a job that runs and that it has looked at since the last edit; None where it wrote
    nothing, or the job is on its way."""
    state, status = job.state, stored.status
    migrating = find_condition(status.conditions, ConditionType.MIGRATING)
    looked_at = stored.observed_generation == job.generation and job.spec.managed
    if not looked_at or migrating is None or state.migration is not None or state.finished is not None:
        return None
    offer = status.recommendation
    if offer is not None:
        action = offer.action if offer.held_by is None else Action.HOLD
        return Decided(action, offer.held_by or offer.reason, offer.message, offer.placement)
    if migrating.reason in REASONS[Action.HOLD]:
        return Decided(Action.HOLD, migrating.reason, migrating.message, None)
    efficient = find_condition(status.conditions, ConditionType.COST_EFFICIENT)
    reason = "" if efficient is None else _STAYS.get(efficient.reason, efficient.reason)
    if efficient is None or migrating.reason != Reason.SETTLED or reason not in REASONS[Action.KEEP]:
        return None
    return Decided(Action.KEEP, reason, efficient.message, None)


def _same(known: Decided, anew: Decided) -> bool:
    """Whether both come to the same, whatever the numbers are by now."""
    if known.action is not anew.action:
        return False
    if known.action is Action.HOLD and known.reason != anew.reason:
        return False
    return known.target is None or known.target == anew.target
