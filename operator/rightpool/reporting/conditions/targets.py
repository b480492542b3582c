"""CostEfficient and TargetsMet: what the job costs, compared with the alternatives and with its targets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from rightpool.api.conditions import Reason
from rightpool.api.migration import Phase
from rightpool.api.wording import dollars
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.time_limits import time_limits
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.targets.registry import TARGETS, target_missed
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.planning.work.forecast import SURE, forecast
from rightpool.reporting.conditions.context import UNDER_WAY, Context, Statement, complete_profile
from rightpool.reporting.conditions.served import latency_met, size_text
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.forecast_texts import end_text, lasting_text


def cost_efficient(job: Job, context: Context) -> Statement | None:
    if job.state.finished is not None:
        return None
    budget = job.spec.targets.budget
    spent = 0.0 if budget is None else job.state.account.spent_by(context.now)
    if budget is not None and spent > float(budget):
        return Statement("False", Reason.OVER_BUDGET, f"{dollars(spent)} of {dollars(float(budget))} are spent")
    migration = job.state.migration
    if migration is not None and migration.phase is Phase.PLANNED and migration.reason in _BETTER:
        return Statement("False", migration.reason, f"{migration.id} is planned: status.recommendation says why")
    if migration is not None:
        return Statement("Unknown", Reason.VERIFICATION_PENDING, f"{migration.id} is under way")
    if complete_profile(job) is None or context.assessment is None or job.state.revision is None:
        return Statement("Unknown", Reason.PROFILE_NEEDED, "there is no complete profile to compare with")
    decision = context.assessment.decision
    if decision.reason in UNDER_WAY:  # of the migration that has just ended
        return Statement("Unknown", Reason.PROFILE_NEEDED, "the alternatives are looked at again after the move")
    reason, current = decision.reason, context.assessment.current
    message = partial(decision_text, job, context.assessment, context.now)
    missed = None if current is None or current.rejection is None else target_missed(current.rejection)
    if missed is not None and missed.of_cost:
        why = reason if reason is missed.unreachable else missed.at_risk or missed.missed
        return Statement("False", why, message)
    if reason in _AS_GOOD_AS_IT_GETS:
        return Statement("True", _AS_GOOD_AS_IT_GETS[reason], message)
    purpose = decision.purpose
    if purpose is None or purpose not in _BETTER or reason is Reason.UNCERTAIN_SAVING:
        return Statement("Unknown", reason, message)
    return Statement("False", purpose, message)


_AS_GOOD_AS_IT_GETS: Final = {
    Reason.CHEAPEST: Reason.CHEAPEST,
    Reason.BELOW_MIN_SAVINGS: Reason.NEAR_CHEAPEST,
    Reason.DOES_NOT_PAY_BACK: Reason.DOES_NOT_PAY_BACK,
}
_BETTER: Final = frozenset(
    {
        Reason.CHEAPER_POOL_MEETS_TARGETS,
        Reason.CHEAPER_SIZE_MEETS_TARGETS,
        Reason.FASTER_PLACEMENT_MEETS_TARGETS,
        Reason.BETTER_TARGET_UNREACHABLE,
    }
)


def targets_met(job: Job, context: Context) -> Statement:
    declared = [target for target in TARGETS if target.declared(job.spec.targets)]
    if time_limits(job.spec.targets):
        missed = latency_met(job)
        if missed is not None or not declared:
            return missed or Statement("True", Reason.TARGETS_HOLD, partial(size_text, job))
    if not declared:
        return Statement("True", Reason.NO_TARGETS, "no target is declared")
    profile = complete_profile(job)
    current = None if context.assessment is None else context.assessment.current
    rate = None if profile is None or current is None else current.throughput
    rest = forecast(job, rate, context.now)
    ended = job.state.finished is not None
    message = partial(end_text, rest) if ended else partial(lasting_text, rest, job.spec.targets.deadline)
    over = next((target.missed for target in declared if target.over(rest)), None)
    if over is not None:
        return Statement("False", over, message)
    if ended:
        return Statement("True", Reason.TARGETS_HOLD, message)
    at_risk = next(
        (target.at_risk for target in declared if target.at_risk and (target.chance(rest) or 0.0) >= SURE), None
    )
    if at_risk is not None:
        return Statement("False", at_risk, message)
    return _held_now(job, declared, current) or Statement(
        "True", Reason.TARGETS_HOLD, lambda: message() or "every declared target holds"
    )


def _held_now(job: Job, declared: Sequence[JobTarget], current: Candidate | None) -> Statement | None:
    """What is missed where it is, or not known; None where all hold."""
    for target in declared:
        missed = target.missed_at(job, current)
        if missed is not None:
            # What will be so in the end is not certain enough to be stated as a fact.
            if target.at_risk is not None:
                return Statement("Unknown", target.at_risk, missed.text())
            return Statement("False", target.missed, missed.text())
    if complete_profile(job) is None:
        return Statement("Unknown", Reason.PROFILE_NEEDED, "there is no complete profile to judge by")
    for target in declared:
        unknown = target.unknown_at(job, current)
        if unknown is not None:
            return Statement("Unknown", unknown[0], f"{target.name} can't be judged: {unknown[1]}")
    return None
