"""CostEfficient and TargetsMet: what the job costs, compared with the alternatives and with its targets."""

from __future__ import annotations

from typing import Final

from rightpool.api.conditions import Reason
from rightpool.api.migration import Phase
from rightpool.api.wording import dollars, share
from rightpool.planning.jobs.job import Job
from rightpool.planning.judge.forecast import SURE, forecast
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.reporting.candidate_texts import verdict_text
from rightpool.reporting.conditions.context import UNDER_WAY, Context, Statement, complete_profile
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.flops_texts import unknown_flops_text
from rightpool.reporting.forecast_texts import end_text, lasting_text

_TARGET_MISSED: Final = {
    RejectionReason.SCALING: Reason.MIN_SCALING_EFFICIENCY_MISSED,
    RejectionReason.FLOPS_UTILIZATION: Reason.MIN_FLOPS_UTILIZATION_MISSED,
    RejectionReason.COST_PER_HOUR: Reason.MAX_COST_PER_HOUR_EXCEEDED,
    RejectionReason.COST_PER_SAMPLE: Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED,
    RejectionReason.BUDGET: Reason.BUDGET_AT_RISK,
    RejectionReason.DEADLINE: Reason.DEADLINE_AT_RISK,
}


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
    message = decision_text(job, context.assessment, context.now)
    missed = None if current is None or current.rejection is None else current.rejection.reason
    if missed in _COST_TARGETS:
        return Statement("False", reason if reason in _UNREACHABLE else _TARGET_MISSED[missed], message)
    if reason in _AS_GOOD_AS_IT_GETS:
        return Statement("True", _AS_GOOD_AS_IT_GETS[reason], message)
    purpose = decision.purpose
    if purpose is None or purpose not in _BETTER or reason is Reason.UNCERTAIN_SAVING:
        return Statement("Unknown", reason, message)
    return Statement("False", purpose, message)


_COST_TARGETS: Final = frozenset(
    {RejectionReason.COST_PER_HOUR, RejectionReason.COST_PER_SAMPLE, RejectionReason.BUDGET}
)
_UNREACHABLE: Final = frozenset({Reason.COST_TARGET_UNREACHABLE, Reason.OVER_BUDGET})
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
    targets = job.spec.targets
    declared = (
        targets.min_scaling_efficiency,
        targets.min_model_flops_utilization,
        targets.max_cost_per_hour,
        targets.max_cost_per_million_samples,
        targets.budget,
        targets.deadline,
    )
    if all(target is None for target in declared):
        return Statement("True", Reason.NO_TARGETS, "no target is declared")
    profile = complete_profile(job)
    current = None if context.assessment is None else context.assessment.current
    rate = None if profile is None or current is None else current.throughput
    rest = forecast(job, rate, context.now)
    message = end_text(rest) if job.state.finished is not None else lasting_text(rest, targets.deadline)
    if rest.money_left is not None and rest.money_left < 0.0:
        return Statement("False", Reason.BUDGET_EXCEEDED, message)
    if rest.time_left is not None and rest.time_left < 0.0:
        return Statement("False", Reason.DEADLINE_MISSED, message)
    if job.state.finished is not None:
        return Statement("True", Reason.TARGETS_HOLD, message)
    if rest.late is not None and rest.late >= SURE:
        return Statement("False", Reason.DEADLINE_AT_RISK, message)
    if rest.over is not None and rest.over >= SURE:
        return Statement("False", Reason.BUDGET_AT_RISK, message)
    missed = None if current is None or current.rejection is None else _TARGET_MISSED.get(current.rejection.reason)
    if current is not None and missed is not None:
        # Not certain enough to be stated as a fact.
        open_yet = missed in (Reason.DEADLINE_AT_RISK, Reason.BUDGET_AT_RISK)
        return Statement("Unknown" if open_yet else "False", missed, verdict_text(current))
    hourly = None if job.state.revision is None else job.state.revision.cost_per_hour
    if targets.max_cost_per_hour is not None and hourly is not None and hourly > float(targets.max_cost_per_hour):
        limit = dollars(float(targets.max_cost_per_hour))
        return Statement(
            "False", Reason.MAX_COST_PER_HOUR_EXCEEDED, f"{dollars(hourly)}/h, and targets.maxCostPerHour is {limit}"
        )
    if profile is None:
        return Statement("Unknown", Reason.PROFILE_NEEDED, "there is no complete profile to judge by")
    least = targets.min_model_flops_utilization
    if least is not None and (current is None or current.flops_utilization is None):
        return Statement(
            "Unknown",
            Reason.FLOPS_UNKNOWN,
            f"targets.minModelFlopsUtilization is {share(float(least))}, and {unknown_flops_text(job, current)}",
        )
    return Statement("True", Reason.TARGETS_HOLD, message or "every declared target holds")
