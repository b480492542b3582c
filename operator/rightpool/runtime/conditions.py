"""The conditions of a ProfiledJob: each says one thing, why it is so in one word, and the evidence with a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from rightpool.api.choices import Switch
from rightpool.api.conditions import Condition, ConditionType, Reason
from rightpool.hardware.placement import hourly_cost
from rightpool.hardware.pool import Pool
from rightpool.planning.assess import Assessment
from rightpool.planning.candidate import RejectionReason
from rightpool.planning.contradiction import contradiction
from rightpool.planning.decision import Action
from rightpool.planning.ledger import LedgerEntry, Outcome
from rightpool.planning.migration import Phase
from rightpool.planning.revision import RevisionRef
from rightpool.planning.snapshot import JobState
from rightpool.planning.stranger import stranger
from rightpool.planning.transitions import COMPLETED, FAILED
from rightpool.planning.wording import chips, dollars, share, span
from rightpool.profiles.diagnosis import Bottleneck
from rightpool.profiles.profile import Profile, Steadiness
from rightpool.profiles.sample import Field
from rightpool.runtime.executor import Refusal
from rightpool.workloads.notes import NOTE_MESSAGES, InjectionNote, notes_for
from rightpool.workloads.template import InvalidTemplate

Truth = Literal["True", "False", "Unknown"]

_INEFFICIENT: Final = {
    Bottleneck.INPUT_BOUND: Reason.INPUT_BOUND,
    Bottleneck.HOST_BOUND: Reason.CHIP_IDLE,
    Bottleneck.IDLE: Reason.CHIP_IDLE,
    Bottleneck.COMMUNICATION_BOUND: Reason.COMMUNICATION_BOUND,
    Bottleneck.THROTTLED: Reason.THROTTLED,
}
_TARGET_MISSED: Final = {
    RejectionReason.SCALING: Reason.MIN_SCALING_EFFICIENCY_MISSED,
    RejectionReason.COST_PER_HOUR: Reason.MAX_COST_PER_HOUR_EXCEEDED,
    RejectionReason.COST_PER_SAMPLE: Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED,
    RejectionReason.BUDGET: Reason.BUDGET_EXCEEDED,
    RejectionReason.DEADLINE: Reason.DEADLINE_MISSED,
}
_MOVING: Final = {
    Action.MOVE: Reason.MOVING,
    Action.RESIZE: Reason.RESIZING,
    Action.UPDATE: Reason.UPDATING,
    Action.START: Reason.STARTING,
}
_UNDER_WAY: Final = frozenset({Reason.MOVING, Reason.RESIZING, Reason.UPDATING, Reason.ROLLING_BACK})
_NOT_TRIED: Final = frozenset({Outcome.HELD, Outcome.SUPERSEDED, Outcome.CARRIED_OUT})


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a job's conditions depend on besides the job. pool: of the current Revision, None where it is unknown.

    assessment: None where the job was not assessed. refusal: why the child can't be created. telemetry: whether
    measurements could be read at all. problem: what went wrong in the operator itself with this job. recovering: the
    operator was started anew and has not measured the job again yet.
    """

    assessment: Assessment | None
    pool: Pool | None
    refusal: Refusal | None
    telemetry: bool
    now: float
    problem: str | None = None
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class _Said:
    status: Truth
    reason: str
    message: str = ""


def conditions_of(job: JobState, around: Circumstances) -> Iterator[Condition]:
    """Those that apply; without lastTransitionTime, which depends on what was said before."""
    for kind, function in _CONDITIONS:
        said = function(job, around)
        if said is not None:
            yield Condition(
                type=kind.value,
                status=said.status,
                reason=str(said.reason),
                message=said.message,
                observed_generation=job.generation,
            )


# --- Placed ----------------------------------------------------------------------------------------------------------


def _placed(job: JobState, around: Circumstances) -> _Said:
    if job.invalid is not None:
        return _Said("False", Reason.INVALID_SPEC, f"{job.invalid}; nothing is done until it is corrected")
    wrong = contradiction(job) if job.finished is None and not job.deleting else None
    if wrong is not None:
        return _Said("Unknown", Reason.INVALID_STATUS, f"{wrong}. What runs is left as it is until then")
    if job.finished is not None:
        reason = Reason.JOB_COMPLETED if job.finished == COMPLETED else Reason.JOB_FAILED
        return _Said("False", reason, "the job has ended and holds no chips")
    if job.deleting or job.spec.suspend:
        return _stopped(job)
    if around.problem is not None and not _all_run(job):
        return _Said("Unknown", Reason.OPERATOR_FAILED, _operator_failed(around.problem))
    if around.refusal is not None:
        return _Said("False", around.refusal.reason, around.refusal.message)
    if job.ref is None:
        return _unplaced(around)
    state = job.revision(job.ref.revision)
    place = _place(job.ref)
    if _all_run(job):
        return _Said("True", Reason.RUNNING, place)
    if state.exists and state.suspended and job.spec.queue_name is not None:
        return _Said("False", Reason.WAITING_FOR_QUOTA, f"{place}: queue {job.spec.queue_name} has not admitted it yet")
    earlier = sorted(revision.revision for revision in job.revisions.values() if revision.earlier)
    if earlier:
        message = f"{place}: r{earlier[0]} of an earlier ProfiledJob of this name is being ended first"
        return _Said("False", Reason.STARTING, message)
    if not state.exists and job.absent is not None:
        return _Said("False", Reason.NO_FEASIBLE_POOL, f"{place}: {job.absent}, or allow other pools")
    foreign = stranger(job)
    if foreign is not None:
        return _Said("False", Reason.FOREIGN_POD, f"{place}: {foreign}")
    if state.blocked is not None:
        # The scheduler calls a pod unschedulable for a volume, too, and no chip that comes free would help it.
        waiting = "Unschedulable" in state.blocked and "persistentvolumeclaim" not in state.blocked.lower()
        reason = Reason.WAITING_FOR_CAPACITY if waiting else Reason.STARTING
        return _Said("False", reason, f"{place}: {state.blocked}")
    running = f"{state.running} of {job.ref.placement.replicas} pods run"
    return _Said("False", Reason.STARTING, f"{place}: {running}")


def _all_run(job: JobState) -> bool:
    if job.ref is None:
        return False
    state = job.revision(job.ref.revision)
    return state.running >= job.ref.placement.replicas and not state.deleting


def _stopped(job: JobState) -> _Said:
    why = "the job is being deleted" if job.deleting else "spec.suspend is true"
    ending = sum(revision.active for revision in job.revisions.values())
    if ending:
        still = (
            "1 pod is still ending and holds its" if ending == 1 else f"{ending} pods are still ending and hold their"
        )
        return _Said("False", Reason.STOPPING, f"{why}; {still} chips")
    if job.deleting:
        return _Said("False", Reason.STOPPING, f"{why}, and holds no chips any more")
    return _Said("False", Reason.SUSPENDED, f"{why}; set it to false to run the job")


def _operator_failed(problem: str) -> str:
    return (
        f"the operator failed on this job, which is a defect of it: {problem}. What runs is left as it is. Report it "
        "with this message, the ProfiledJob as YAML, and the operator's log"
    )


def _unplaced(around: Circumstances) -> _Said:
    if around.assessment is None:
        return _Said("Unknown", Reason.WAITING_FOR_CAPACITY, "no placement was decided on yet")
    decision = around.assessment.decision
    if decision.action is Action.START:
        return _Said("False", Reason.STARTING, decision.message)
    return _Said("False", decision.reason, decision.message)


def _place(ref: RevisionRef) -> str:
    at = ref.placement
    cost = "" if ref.cost_per_hour is None else f", {dollars(ref.cost_per_hour)}/h"
    return f"r{ref.revision} on {at.pool}: {chips(at.chips)} in {_pods(at.replicas)}{cost}"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


# --- Profiled, Efficient ---------------------------------------------------------------------------------------------


def _running(job: JobState) -> bool:
    return job.ref is not None and job.finished is None and job.revision(job.ref.revision).running > 0


def _profiled(job: JobState, around: Circumstances) -> _Said:
    profile = job.profile
    if not _running(job):
        return _Said("Unknown", Reason.NOT_RUNNING, "no pod runs")
    if not around.telemetry:
        return _Said(
            "Unknown", Reason.TELEMETRY_UNAVAILABLE, "measurements can't be read at the moment; see the operator's log"
        )
    if profile is None or profile.steadiness is Steadiness.ABSENT:
        if job.spec.profiling.mode is Switch.OFF:
            return _Said("False", Reason.PROFILING_OFF, "spec.profiling.mode is Off and nothing else measures the pods")
        if InjectionNote.HOST_NETWORK in _notes(job):
            return _noted(InjectionNote.HOST_NETWORK)
        return _Said("False", Reason.NO_TELEMETRY, "the pods run and nothing was heard from their profilers yet")
    if profile.complete:
        return _Said("True", Reason.MEASURED, f"{_pods(profile.pods)} over {span(profile.window)}")
    if profile.steadiness is Steadiness.STALE:
        return _Said("False", Reason.STALE_TELEMETRY, f"nothing was heard within {span(profile.window)}")
    if profile.steadiness is Steadiness.WARMING_UP:
        return _Said(
            "False", Reason.WARMING_UP, f"{share(profile.covered)} of the {span(profile.window)} window is covered"
        )
    if profile.pods < profile.expected:
        return _Said("False", Reason.PARTIAL_TELEMETRY, f"{profile.pods} of {profile.expected} pods answer")
    if Field.STEPS in profile.readings:
        return _Said("False", Reason.WARMING_UP, "training steps are seen; their rate is not known yet")
    notes = _notes(job) if job.spec.profiling.mode is not Switch.OFF else ()
    if notes:
        return _noted(notes[0])
    return _Said(
        "False",
        Reason.PARTIAL_TELEMETRY,
        "throughput is not known: the profiler sees no training steps. The program has not begun to train, or is not "
        "Python with PyTorch or JAX, or runs in a virtual environment of its image: then set PYTHONPATH in the "
        "template, empty if need be",
    )


def _notes(job: JobState) -> tuple[InjectionNote, ...]:
    workload = job.spec.workload.job
    try:
        return notes_for(workload.template, workload.chip_container)
    except InvalidTemplate:
        return ()  # Placed says so


def _noted(note: InjectionNote) -> _Said:
    return _Said("False", note.value, NOTE_MESSAGES[note])


def _complete(job: JobState) -> Profile | None:
    return job.profile if job.profile is not None and job.profile.complete and _running(job) else None


def _efficient(job: JobState, around: Circumstances) -> _Said:
    if _complete(job) is None or job.diagnosis is None:
        return _Said("Unknown", Reason.PROFILE_NEEDED, "there is no complete profile yet")
    diagnosis = job.diagnosis
    text = f"{diagnosis.evidence}. What helps: {diagnosis.lever}" if diagnosis.lever else diagnosis.evidence
    reason = _INEFFICIENT.get(diagnosis.bottleneck)
    if reason is not None:
        return _Said("False", reason, text)
    current = None if around.assessment is None else around.assessment.current
    target = job.spec.targets.min_scaling_efficiency
    efficiency = None if current is None else current.scaling_efficiency
    if efficiency is not None and target is not None and efficiency < float(target):
        wanted = f"targets.minScalingEfficiency is {share(float(target))}"
        return _Said("False", Reason.POOR_SCALING, f"{share(efficiency)} of perfect scaling, and {wanted}. {text}")
    return _Said("True", Reason.EFFICIENT_ENOUGH, text)


# --- CostEfficient, TargetsMet ---------------------------------------------------------------------------------------


def _cost_efficient(job: JobState, around: Circumstances) -> _Said | None:
    if job.finished is not None:
        return None
    budget = job.spec.targets.budget
    spent = job.account.settled(around.now).spent
    if budget is not None and spent > float(budget):
        return _Said("False", Reason.OVER_BUDGET, f"{dollars(spent)} of {dollars(float(budget))} are spent")
    migration = job.migration
    if migration is not None and migration.phase is Phase.PLANNED and migration.reason in _BETTER:
        return _Said("False", migration.reason, f"{migration.id}: {migration.message}")
    if migration is not None:
        return _Said("Unknown", Reason.VERIFICATION_PENDING, f"{migration.id} is under way")
    if _complete(job) is None or around.assessment is None or job.ref is None:
        return _Said("Unknown", Reason.PROFILE_NEEDED, "there is no complete profile to compare with")
    decision = around.assessment.decision
    if decision.reason in _UNDER_WAY:  # of the migration that has just ended
        return _Said("Unknown", Reason.PROFILE_NEEDED, "the alternatives are looked at again after the move")
    reason, current = decision.reason, around.assessment.current
    missed = None if current is None or current.rejection is None else current.rejection.reason
    if missed in _COST_TARGETS:
        return _Said("False", reason if reason in _UNREACHABLE else _TARGET_MISSED[missed], decision.message)
    if reason in _AS_GOOD_AS_IT_GETS:
        return _Said("True", _AS_GOOD_AS_IT_GETS[reason], decision.message)
    purpose = decision.purpose
    if purpose is None or purpose not in _BETTER or reason is Reason.UNCERTAIN_SAVING:
        return _Said("Unknown", reason, decision.message)
    return _Said("False", purpose, decision.message)


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
    }
)


def _targets_met(job: JobState, around: Circumstances) -> _Said:
    targets = job.spec.targets
    declared = (
        targets.min_scaling_efficiency,
        targets.max_cost_per_hour,
        targets.max_cost_per_million_samples,
        targets.budget,
        targets.deadline,
    )
    if all(target is None for target in declared):
        return _Said("True", Reason.NO_TARGETS, "no target is declared")
    budget = targets.budget
    spent = job.account.settled(around.now).spent
    if budget is not None and spent > float(budget):
        return _Said("False", Reason.BUDGET_EXCEEDED, f"{dollars(spent)} of {dollars(float(budget))} are spent")
    current = None if around.assessment is None else around.assessment.current
    if current is not None and current.rejection is not None:
        missed = _TARGET_MISSED.get(current.rejection.reason)
        if missed is not None:
            return _Said("False", missed, current.rejection.message)
    hourly = None if job.ref is None else job.ref.cost_per_hour
    if targets.max_cost_per_hour is not None and hourly is not None and hourly > float(targets.max_cost_per_hour):
        limit = dollars(float(targets.max_cost_per_hour))
        return _Said(
            "False", Reason.MAX_COST_PER_HOUR_EXCEEDED, f"{dollars(hourly)}/h, and targets.maxCostPerHour is {limit}"
        )
    if _complete(job) is None:
        return _Said("Unknown", Reason.PROFILE_NEEDED, "there is no complete profile to judge by")
    return _Said("True", Reason.TARGETS_HOLD, "every declared target holds")


# --- Migrating, Verified ---------------------------------------------------------------------------------------------


def _migrating(job: JobState, around: Circumstances) -> _Said | None:
    migration = job.migration
    if migration is not None:
        if job.awaits_approval:
            return _Said(
                "False",
                Reason.AWAITING_APPROVAL,
                f"{migration.id}: {migration.message}. Approve by the annotation rightpool.dev/approve={migration.id}",
            )
        foreign = stranger(job) if migration.phase in (Phase.DRAINING, Phase.STARTING) else None
        waits = "" if foreign is None else f". {foreign}"
        source, target = migration.moving.placement, migration.target.placement
        way = f"{migration.id}: {chips(source.chips)} of {source.pool} → {chips(target.chips)} of {target.pool}"
        reason, why = _MOVING.get(migration.action, Reason.MOVING), migration.message
        if migration.rolling_back:
            reason, why = Reason.ROLLING_BACK, str(migration.failure_message)
        return _Said("True", reason, f"{way}, {migration.phase.value}: {why}{waits}")
    if job.ref is None or job.finished is not None:
        return None
    decision = None if around.assessment is None else around.assessment.decision
    last = job.history[-1] if job.history else None
    unsaved = last is not None and last.outcome is Outcome.HELD and last.reason == Reason.CHECKPOINT_TIMEOUT
    if last is not None and unsaved and (decision is None or decision.action is not Action.KEEP):
        return _Said("False", Reason.CHECKPOINT_TIMEOUT, f"{last.id}: {last.message}")
    # In the cycle in which a migration ends, the decision is still about it.
    over = decision is not None and decision.reason in _UNDER_WAY
    if decision is not None and decision.action is Action.HOLD and not over:
        return _Said("False", decision.reason, decision.message)
    return _Said("False", Reason.SETTLED, "nothing is to be moved")


def _verified(job: JobState, around: Circumstances) -> _Said | None:
    if job.migration is not None and not job.migration.rolling_back:
        if not job.migration.promises or job.migration.phase is Phase.PLANNED:
            return _last_verified(job)
        return _Said("Unknown", Reason.VERIFICATION_PENDING, f"{job.migration.id} is {job.migration.phase.value}")
    return _last_verified(job)


def _was_tried(entry: LedgerEntry) -> bool:
    return entry.outcome not in _NOT_TRIED and entry.action not in (Action.START, Action.UPDATE)


def _last_verified(job: JobState) -> _Said | None:
    entry: LedgerEntry | None = next((e for e in reversed(job.history) if _was_tried(e)), None)
    if entry is None:
        return None
    message = f"{entry.id}: {entry.message}" if entry.message else entry.id
    delivered = entry.outcome is Outcome.VERIFIED and entry.reason == Reason.DELIVERED
    return _Said("True" if delivered else "False", entry.reason, message)


# --- Degraded, terminal ----------------------------------------------------------------------------------------------


def _degraded(job: JobState, around: Circumstances) -> _Said | None:
    if around.problem is not None and job.finished is None:
        return _Said("True", Reason.OPERATOR_FAILED, _operator_failed(around.problem))
    if job.ref is None or job.finished is not None:
        return None
    if around.pool is None:
        where = job.absent or f"pool {job.ref.placement.pool} can't be used: see its conditions"
        return _Said("True", Reason.ACCELERATOR_UNKNOWN, where)
    if hourly_cost(job.ref.placement, around.pool) is None:
        counted = "what the job spends is not counted"
        if job.ref.cost_per_hour is not None:
            counted = f"what the job spends is counted at {dollars(job.ref.cost_per_hour)}/h, as when it was placed"
        remedy = f"pool {around.pool.name} has no price: set spec.price of the pool"
        return _Said("True", Reason.PRICE_UNKNOWN, f"{remedy}; until then {counted}")
    if job.diagnosis is not None and job.diagnosis.bottleneck is Bottleneck.STRAGGLER:
        return _Said("True", Reason.STRAGGLER, f"{job.diagnosis.evidence}. What helps: {job.diagnosis.lever}")
    return _Said("False", Reason.HEALTHY, "")


def _completed(job: JobState, around: Circumstances) -> _Said | None:
    return _Said("True", Reason.JOB_COMPLETED, "the child Job succeeded") if job.finished == COMPLETED else None


def _failed(job: JobState, around: Circumstances) -> _Said | None:
    if job.finished != FAILED:
        return None
    failure = None if job.ref is None else job.revision(job.ref.revision).failure
    return _Said("True", Reason.JOB_FAILED, failure or "the child Job failed")


_CONDITIONS: Final[tuple[tuple[ConditionType, Callable[[JobState, Circumstances], _Said | None]], ...]] = (
    (ConditionType.PLACED, _placed),
    (ConditionType.PROFILED, _profiled),
    (ConditionType.EFFICIENT, _efficient),
    (ConditionType.COST_EFFICIENT, _cost_efficient),
    (ConditionType.TARGETS_MET, _targets_met),
    (ConditionType.MIGRATING, _migrating),
    (ConditionType.VERIFIED, _verified),
    (ConditionType.DEGRADED, _degraded),
    (ConditionType.COMPLETED, _completed),
    (ConditionType.FAILED, _failed),
)
