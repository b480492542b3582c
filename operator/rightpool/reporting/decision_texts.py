"""Decisions in words: made last, of the type and numbers of a decision, the job and its candidates."""

import math
from collections.abc import Callable
from typing import Final

from rightpool.api.action import Action
from rightpool.api.adopted_object import Undone
from rightpool.api.conditions import Reason
from rightpool.api.wording import brief, dollars, how_many, place, share, span
from rightpool.planning.jobs.adopted import UNFOLLOWED
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.lingering import foreign_pod
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import Decision, Held
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.offers.evidence import (
    Bill,
    Failure,
    FleetGain,
    Gathering,
    NoPoolFits,
    PoolGone,
    Restart,
    SourceNotHeld,
)
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.rejection import Avoided, Gap, MemoryUnknown
from rightpool.planning.offers.running import MIN_PROBABILITY
from rightpool.planning.offers.targets.registry import TARGETS
from rightpool.reporting.candidate_texts import by_pool, compared, difference, measured, predicted, some, verdict_text
from rightpool.workloads.kinds.registry import naming_of

# What a message has room for, in characters.
_MANAGER: Final = 28
_POINTER: Final = 28
_CAUSE: Final = 64


def decision_text(job: Job, assessment: Assessment, now: float) -> str:
    """Why the job's decision is what it is. now: Unix seconds."""
    text, evaluated = _text(job, assessment, assessment.decision, now), assessment.evaluated
    untried = None if assessment.decision.reason not in _STAYS or evaluated is None else _untried(job, evaluated)
    if untried is None or evaluated is None:
        return text
    first = f"{verdict_text(untried)}; {_comparison(job, assessment, untried)}"
    return f"{first}; {text}" if evaluated.best() is not None else f"{first}{_now(assessment)}"


def _text(job: Job, assessment: Assessment, decision: Decision, now: float) -> str:
    evidence = decision.evidence
    match evidence:
        case Held(limit, held):
            return f"{limit.text(now)}; after that {_text(job, assessment, held, now)}"
        case Gap():
            return evidence.text()
        case Failure(error):
            return f"a defect of the operator: {error}; what runs is left as it is"
        case PoolGone():
            problem = evidence.problem or f"pool {evidence.pool} is not known any more"
            return f"{problem}; {_gone(job, assessment, evidence)}"
        case NoPoolFits():
            if assessment.intent is Intent.LEAVE:
                return _no_alternative(assessment)
            return _no_pool_fits(job, assessment, evidence)
        case Restart(here, obstacle):
            target = "" if decision.target is None else place(decision.target)
            return f"starts on {target}, because it does not start on {place(here)}; {obstacle or 'no reason known'}"
        case Gathering(placement):
            kept = f"nodes of {placement.pool} are kept free for it, since it has waited longer than startDeadline"
            return f"{kept}; {_waiting(job, assessment, decision)}"
        case SourceNotHeld():
            head, *numbers = _taken(job, assessment, decision).split("; ")
            return "; ".join((head, *_without_return(evidence), *numbers))
        case Bill():
            return f"{_bill(evidence)}; {_best(job, assessment)}{_now(assessment)}"
    if job.state.migration is not None and decision.action is Action.HOLD and decision.candidate is None:
        migration = job.state.migration
        return f"{migration.id} is under way: {migration.phase}, to {place(migration.target.placement)}"
    return _TEXTS.get(decision.reason, _taken)(job, assessment, decision)


# --- what is not evaluated -------------------------------------------------------------------------------------------


def _over(job: Job, assessment: Assessment, decision: Decision) -> str:
    return f"the job is over: {job.state.finished}"


def _invalid_status(job: Job, assessment: Assessment, decision: Decision) -> str:
    wrong = contradiction(job)
    return "" if wrong is None else wrong.text(naming_of(job.spec.workload, job.key.name))


def _invalid_template(job: Job, assessment: Assessment, decision: Decision) -> str:
    refusal = job.observed.refusal
    return "" if refusal is None else f"{refusal.message}; what runs is left as it is until the template is corrected"


def _unfollowed(job: Job, assessment: Assessment, decision: Decision) -> str:
    refusal = job.observed.refusal
    if refusal is not None:
        return refusal.message
    found = "no pod of it has a node of a pool" if job.observed.adopted is not None else "it is being looked for"
    why = by_pool(assessment.candidates) if assessment.candidates else "what it costs follows once it runs"
    return f"{job.spec.workload_ref}: {found}; {why}"


def undone_text(undone: Undone) -> str:
    """That somebody takes back what is changed of an adopted object, with the remedy."""
    times = "twice" if undone.times == 2 else how_many(undone.times, "time")
    back = f"{brief(undone.manager, _MANAGER) or 'somebody else'} set {_short(undone.field)} back {times}"
    return f"{back}, so no move is made: have it ignore the field, then approve a move or edit the spec"


def _short(pointer: str) -> str:
    """The end of a JSON pointer that a message has room for; status.adopted has all of it."""
    if len(pointer) <= _POINTER:
        return pointer
    end = pointer[1 - _POINTER :]
    return f"…/{end.partition('/')[2] or end[1:]}"


def _foreign_pod(job: Job, assessment: Assessment, decision: Decision) -> str:
    pod = foreign_pod(job)
    return "" if pod is None else pod.text()


def _suspended(job: Job, assessment: Assessment, decision: Decision) -> str:
    if job.spec.suspend:
        return "spec.suspend is true: set it to false to go on"
    if job.spec.workload_ref is not None and job.state.pause is None:
        return f"{job.spec.workload_ref} is suspended, and not by the operator: resume it by its own spec"
    if decision.candidate is not None:  # moved, or to be moved, to spend less of it
        return _taken(job, assessment, decision)
    return "targets.budget is spent: raise it, or set targets.budgetAction to Warn, to go on"


# --- nothing to gain ------------------------------------------------------------------------------------------------


def _gone(job: Job, assessment: Assessment, evidence: PoolGone) -> str:
    if evidence.no_pool_fits is not None:
        return _no_pool_fits(job, assessment, evidence.no_pool_fits)
    if evidence.runs:
        return "nothing is decided until then"
    return "it is started elsewhere after the policy's startDeadline"


def _no_pool_fits(job: Job, assessment: Assessment, evidence: NoPoolFits) -> str:
    """No pool can take the job."""
    allowed, there = job.spec.placement.pools.allow, evidence.known
    if allowed and there and not set(allowed) & set(there):
        absent = f"placement.pools.allow names {some(allowed)}, and there are only {some(there)}"
        return f"no pool can take the job: {absent}"
    return f"no pool can take the job: {by_pool(assessment.candidates)}"


def _no_alternative(assessment: Assessment) -> str:
    """Where the job is is not allowed any more, and nothing else is possible."""
    current = assessment.current
    tried = [one.rejection for one in assessment.candidates if isinstance(one.rejection, Avoided)]
    soonest = min(tried, key=lambda one: one.remaining or math.inf, default=None)
    if current is not None and soonest is not None and soonest.remaining is not None:
        here, found = current.placement.pool, brief(soonest.why.partition("; ")[0].partition(", ")[0], _CAUSE)
        again = f"{soonest.pool} is tried again in {span(soonest.remaining)}, since {found}"
        return f"stays on {here}, which is not allowed: {again}; correct the cause or allow {here}"
    why = "" if current is None else verdict_text(current)
    return f"{why}; there is nowhere else to go; {by_pool(assessment.candidates)}"


def _unreachable(job: Job, assessment: Assessment, decision: Decision) -> str:
    """A target is missed here and held nowhere, or nowhere surely enough."""
    current, best = assessment.current, decision.candidate
    missed = "" if current is None else f"on {place(current.placement)} {verdict_text(current)}"
    if best is not None:
        return f"{missed}; {place(best.placement)} may hold it, and that is too uncertain to move; {predicted(best)}"
    return f"{missed}; no other placement holds all targets; {by_pool(assessment.candidates)}"


def _unpriced(job: Job, assessment: Assessment, decision: Decision) -> str:
    current = assessment.current
    pool = "the pool" if current is None else current.placement.pool
    return f"{pool}, where the job runs, has no price to compare with: set its spec.price"


def _waiting(job: Job, assessment: Assessment, decision: Decision) -> str:
    """The chips are taken."""
    best = decision.candidate
    assert best is not None
    full = next(candidate for candidate in assessment.candidates if candidate.placement == best.placement)
    return f"{place(best.placement)} would be next: {verdict_text(full)}"


# --- staying ---------------------------------------------------------------------------------------------------------


def _best(job: Job, assessment: Assessment) -> str | None:
    """The best other placement that passes the gates, against the current one; None where none does."""
    best = None if assessment.evaluated is None else assessment.evaluated.best()
    return None if best is None else _comparison(job, assessment, best)


def _untried(job: Job, evaluated: Evaluated) -> Candidate | None:
    """The best placement that saves enough, and that the job's memory, which is not known, rules out."""
    for entry in evaluated.entries:
        saving = evaluated.saving(entry)
        if not saving > 0.0 or saving < float(job.spec.adaptation.min_savings):
            break
        candidate = evaluated.candidate(entry)
        if isinstance(candidate.rejection, MemoryUnknown):
            return candidate
    return None


def _comparison(job: Job, assessment: Assessment, candidate: Candidate) -> str:
    return compared(candidate, _rate(assessment), job.spec.targets.objective)


def _difference(job: Job, assessment: Assessment, candidate: Candidate) -> str:
    return difference(candidate, _rate(assessment), job.spec.targets.objective)


def _rate(assessment: Assessment) -> float | None:
    current = assessment.current
    return None if current is None or current.throughput is None else current.throughput.median


def _now(assessment: Assessment) -> str:
    current = assessment.current
    return "" if current is None else f"; {measured(current)}"


def _cheapest(job: Job, assessment: Assessment, decision: Decision) -> str:
    """Nothing beats staying, or nothing else passes the gates."""
    best = _best(job, assessment)
    if best is None:
        return _alone(job, assessment, decision)
    return f"nothing is better than staying, next is {best}{_now(assessment)}"


def _alone(job: Job, assessment: Assessment, decision: Decision) -> str:
    """No other placement passes the gates."""
    if not assessment.candidates:
        return f"there is nowhere else to go{_now(assessment)}"
    return f"no other placement is possible; {by_pool(assessment.candidates)}{_now(assessment)}"


def _too_little(job: Job, assessment: Assessment, decision: Decision) -> str:
    """Better, and by less than the user wants to be moved for."""
    below = f"below adaptation.minSavings {share(float(job.spec.adaptation.min_savings))}"
    best = None if assessment.evaluated is None else assessment.evaluated.best()
    if best is None:
        return below
    return f"{_difference(job, assessment, best)}, {below}; {predicted(best)}{_now(assessment)}"


def _uncertain(job: Job, assessment: Assessment, decision: Decision) -> str:
    """Probably better, and not surely enough."""
    assert decision.candidate is not None
    head = f"{_difference(job, assessment, decision.candidate)}, and {share(MIN_PROBABILITY)} is needed to act"
    return f"{head}; {predicted(decision.candidate)}{_now(assessment)}"


def _bill(bill: Bill) -> str:
    """Better, and not for long enough."""
    fades = " while prices change as they have" if bill.fades else ""
    if bill.beside:
        return (
            f"a move would bring {dollars(bill.gain)} in {span(bill.horizon)}, and both sides at once cost "
            f"{dollars(bill.cost)} more, in {span(bill.restart)} there and back"
        )
    return (
        f"a move would bring {dollars(bill.gain)} in {span(bill.horizon)}{fades}, and its restart costs "
        f"{dollars(bill.cost)}, {span(bill.restart)} of work"
    )


# --- going -----------------------------------------------------------------------------------------------------------


def _starting(job: Job, assessment: Assessment, decision: Decision) -> str:
    if decision.target is None:
        return ""
    seen, here = job.observed.adopted, job.state.revision
    if not job.starts_itself(decision.target):
        return f"starts on {place(decision.target)}"
    number = seen.revision if seen is not None else here.revision if here is not None else 0
    why = job.revision(number).blocked
    room = f"there is room for {place(decision.target)}, and Kubernetes starts it"
    return f"{room}; now it says {why}" if why else room


def _updating(job: Job, assessment: Assessment, decision: Decision) -> str:
    return "" if decision.target is None else f"the workload was edited: runs on {place(decision.target)}"


def _off(job: Job, assessment: Assessment, decision: Decision) -> str:
    return f"adaptation.mode is Off; {_taken(job, assessment, decision)}"


def _not_checkpointable(job: Job, assessment: Assessment, decision: Decision) -> str:
    held = "checkpoint.mode is None, so the job is not moved while it runs"
    return f"{held}; {_taken(job, assessment, decision)}"


def _without_return(evidence: SourceNotHeld) -> tuple[str, str]:
    """Why what is left is not held until the verdict."""
    jobs = "another job waits" if evidence.waiting == 1 else f"{evidence.waiting} other jobs wait"
    return (
        f"without a way back, because {jobs} for the chips that it leaves",
        f"holding them for {span(evidence.seconds)} would cost {dollars(evidence.cost)}, and a way back is worth "
        f"{dollars(evidence.worth)}",
    )


def _for_all(job: Job, assessment: Assessment, decision: Decision) -> str:
    """Why the fleet moves the job."""
    target = "" if decision.target is None else f"{place(decision.target)}: "
    own = decision.evidence.own if isinstance(decision.evidence, FleetGain) else 0.0
    if own < 0.0:
        return (
            f"{target}gives way, since others gain more from its chips than the {dollars(-own)} an hour that it loses"
        )
    return f"{target}gains {dollars(own)} an hour by chips that nobody values more, its restart paid"


def _taken(job: Job, assessment: Assessment, decision: Decision) -> str:
    """Why a move is made."""
    candidate, current = decision.candidate, assessment.current
    if candidate is None:
        return ""
    here = "" if current is None or current.rejection is None else f", because now {verdict_text(current)}"
    if assessment.unreachable is not None:
        here += ", and no placement is sure enough to hold it"
    if current is None or candidate.throughput is None:
        shorter = "" if candidate.size is None else f": batches take {share(1.0 / candidate.size.spare)} of their time"
        return f"{place(candidate.placement)}{shorter}{here}"
    if here:
        return f"{place(candidate.placement)}{here}; {predicted(candidate)}; {measured(current)}"
    return f"{_comparison(job, assessment, candidate)}; {measured(current)}"


_STAYS: Final = frozenset(
    {Reason.CHEAPEST, Reason.BELOW_MIN_SAVINGS, Reason.UNCERTAIN_SAVING, Reason.DOES_NOT_PAY_BACK}
)

_TEXTS: Final[dict[Reason, Callable[[Job, Assessment, Decision], str]]] = {
    Reason.JOB_COMPLETED: _over,
    Reason.FLEET_GAINS: _for_all,
    Reason.JOB_FAILED: _over,
    Reason.SETTLED: lambda job, assessment, decision: "the job is being deleted",
    Reason.INVALID_SPEC: lambda job, assessment, decision: job.invalid or "",
    Reason.INVALID_STATUS: _invalid_status,
    Reason.INVALID_TEMPLATE: _invalid_template,
    Reason.NAME_TAKEN: _invalid_template,
    Reason.FOREIGN_POD: _foreign_pod,
    Reason.KIND_NOT_INSTALLED: lambda job, assessment, decision: (
        "" if job.observed.refusal is None else job.observed.refusal.message
    ),
    **dict.fromkeys(UNFOLLOWED, _unfollowed),
    Reason.SUSPENDED: _suspended,
    Reason.BUDGET_EXCEEDED: _suspended,
    Reason.NO_FEASIBLE_POOL: lambda job, assessment, decision: _no_alternative(assessment),
    **{target.unreachable: _unreachable for target in TARGETS},
    Reason.PRICE_UNKNOWN: _unpriced,
    Reason.WAITING_FOR_CAPACITY: _waiting,
    Reason.WAITING_FOR_OLDER_JOB: _waiting,
    Reason.CHEAPEST: _cheapest,
    Reason.NOT_PREDICTABLE: _alone,
    Reason.BELOW_MIN_SAVINGS: _too_little,
    Reason.UNCERTAIN_SAVING: _uncertain,
    Reason.STARTING: _starting,
    Reason.UPDATING: _updating,
    Reason.ADAPTATION_OFF: _off,
    Reason.NOT_CHECKPOINTABLE: _not_checkpointable,
    Reason.CHANGE_UNDONE: lambda job, assessment, decision: "" if job.overruled is None else undone_text(job.overruled),
}
