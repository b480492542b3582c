"""Placed: a Revision is running on a pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import floor, inf
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.revision import Revision
from rightpool.api.units import write_unix_time
from rightpool.api.wording import both_ends, brief, chips, dollars, how_many, instant, span
from rightpool.contract import LABEL_JOB
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.lingering import UNENDED_SECONDS, first_to_end, foreign_pod, unended
from rightpool.planning.jobs.revision_state import Crash, RevisionState
from rightpool.planning.offers.readiness import COMPLETED
from rightpool.reporting.conditions.context import Context, Statement, operator_failed
from rightpool.reporting.decision_texts import decision_text
from rightpool.workloads.kinds.registry import kind_name, naming_of
from rightpool.workloads.names import child_name

# What the scheduler says of nodes that the child does not select.
_OTHER_NODES: Final = "didn't match Pod's node affinity/selector"
# Kubernetes waits ten minutes at most before it starts a failed program again. A pod that is missing later than that is
# missing for another reason.
CRASH_SECONDS: Final = 900.0
# Characters of what a failed program has written last.
_OUTPUT: Final = 60
# A start that takes longer, and says nothing, will not end by itself. Large images and checkpoints take less.
SILENT_SECONDS: Final = 3600.0
# Kubernetes makes the pods of a Job within a second or so; where it tries again, after ten and twenty.
LATE_SECONDS: Final = 30.0

_SILENT: Final = "see `kubectl describe` of its {kind} and pods, and that Kubernetes' {kind} controller runs"
_SOON: Final = "the result follows in a moment: if not, see that Kubernetes' {kind} controller runs"


def placed(job: Job, context: Context) -> Statement:
    return next(found for rule in _RULES if (found := rule(job, context)) is not None)


def _unreadable(job: Job, context: Context) -> Statement | None:
    """What the user wrote, or what is stored, can't be used."""
    if job.invalid is not None:
        return Statement("False", Reason.INVALID_SPEC, f"{job.invalid}; nothing is done until it is corrected")
    wrong = contradiction(job) if job.state.finished is None and not job.deleting else None
    if wrong is None:
        return None
    text = wrong.text(naming_of(job.spec.workload, job.key.name))
    return Statement("Unknown", Reason.INVALID_STATUS, f"{text}; what runs is left as it is until then")


def _over(job: Job, context: Context) -> Statement | None:
    """The job has ended, is ending, or is stopped."""
    if job.state.finished is not None:
        reason = Reason.JOB_COMPLETED if job.state.finished == COMPLETED else Reason.JOB_FAILED
        return Statement("False", reason, "the job has ended and holds no chips")
    stuck = unended(job, context.now)
    if stuck is not None and not _all_run(job):
        return Statement("False", Reason.PODS_NOT_ENDING, stuck.text())
    if job.child is not None and job.child.stopped_by_user:
        message = f"{job.spec.workload_ref} is suspended, and not by the operator: resume it by its own spec"
        return Statement("False", Reason.SUSPENDED, message)
    return _stopped(job, context) if job.deleting or job.stops else None


def _running(job: Job, context: Context) -> Statement | None:
    if not _all_run(job):
        return None
    assert job.state.revision is not None
    completed = job.revision(job.state.revision.revision).completed
    also = f"; {completed} of {job.state.revision.placement.replicas} pods have completed" if completed else ""
    server = job.spec.workload.server
    if server is not None and server.scaled_elsewhere:
        also = f"; {how_many(job.state.revision.placement.replicas, 'replica')}, as somebody else scales it"
    return Statement("True", Reason.RUNNING, f"{_place(job.state.revision)}{also}")


def _without_child(job: Job, context: Context) -> Statement | None:
    """There is no place, or no child for it that Kubernetes would make pods of."""
    if context.problem is not None:
        return Statement("Unknown", Reason.OPERATOR_FAILED, operator_failed(context.problem))
    refusal = job.observed.refusal
    if refusal is not None:
        return Statement("False", refusal.reason, refusal.message)
    if job.state.revision is None:
        return _unplaced(job, context)
    at, state = _at(job.state.revision), job.revision(job.state.revision.revision)
    if job.queued:
        again = "" if job.state.revision.since is None else " again"
        message = f"{at}: queue {job.queue} has not admitted it{again} yet"
        return Statement("False", Reason.WAITING_FOR_QUOTA, message)
    if state.finishing:
        soon = _SOON.format(kind=kind_name(job.spec.workload))
        return Statement("False", Reason.FINISHING, f"{at}: the pods have ended; {soon}")
    earlier = sorted(revision.revision for revision in job.observed.revisions.values() if revision.earlier)
    if earlier:
        message = f"{at}: r{earlier[0]} of an earlier ProfiledJob of this name is being ended first"
        return Statement("False", Reason.STARTING, message)
    if not state.exists and job.observed.pool_problem is not None:
        return Statement("False", Reason.NO_FEASIBLE_POOL, f"{at}: {job.observed.pool_problem}, or allow other pools")
    return None


def _obstructed(job: Job, context: Context) -> Statement | None:
    """Something is known to be in the way of its pods."""
    assert job.state.revision is not None
    at, state = _at(job.state.revision), job.revision(job.state.revision.revision)
    foreign = foreign_pod(job)
    if foreign is not None:
        return Statement("False", Reason.FOREIGN_POD, f"{at}: {foreign.text()}")
    unschedulable = state.blocked is not None and "Unschedulable" in state.blocked
    crash = state.crash
    if crash is not None and not unschedulable and context.now - crash.at < CRASH_SECONDS:
        return Statement("False", Reason.CRASH_LOOP, f"{at}: {_crashed(job, crash)}")
    if state.blocked is None:
        return None
    # The scheduler calls a pod unschedulable for a volume, too, and no chip that comes free would help it.
    waiting = unschedulable and "persistentvolumeclaim" not in state.blocked.lower()
    kinds = (
        (state.unseen is not None, Reason.SCHEDULER_SILENT),
        (state.unmade, Reason.PODS_REFUSED),
        (state.cold, Reason.WARM_UP_FAILED),
        (state.refused, Reason.CONTAINER_NOT_STARTED),
        (waiting, Reason.WAITING_FOR_CAPACITY),
        (True, Reason.STARTING),
    )
    return Statement("False", next(reason for so, reason in kinds if so), f"{at}: {_of_own_nodes(state.blocked)}")


def _starting(job: Job, context: Context) -> Statement:
    assert job.state.revision is not None
    at, state = _at(job.state.revision), job.revision(job.state.revision.revision)
    running = f"{state.running} of {job.state.revision.placement.replicas} pods run"
    began = _began(job.state.revision, state)
    why = "; ".join(_causes(job, state, late=context.now - began > LATE_SECONDS))
    if job.state.revision.since is None and context.now - began > SILENT_SECONDS:
        silent = _SILENT.format(kind=kind_name(job.spec.workload))
        return Statement(
            "False", Reason.START_DEADLINE_EXCEEDED, f"{at}: {running} since {instant(began)}; {why or silent}"
        )
    return Statement("False", Reason.STARTING, f"{at}: {running}{f'; {why}' if why else ''}")


# The first that has something to say.
_RULES: Final[tuple[Callable[[Job, Context], Statement | None], ...]] = (
    _unreadable,
    _over,
    _running,
    _without_child,
    _obstructed,
    _starting,
)


def placed_until(job: Job, now: float) -> float:
    """Unix seconds up to which time alone changes nothing of the above; inf where it never does."""
    revision, state, first = job.state.revision, job.child, first_to_end(job)
    moments = [] if first is None else [first.since + UNENDED_SECONDS]
    if revision is not None and state is not None:
        moments += [] if state.crash is None else [state.crash.at + CRASH_SECONDS]
        began = _began(revision, state)
        moments += [began + LATE_SECONDS]
        moments += [] if revision.since is not None else [began + SILENT_SECONDS]
    return min((moment for moment in moments if moment >= now), default=inf)


def _began(revision: Revision, state: RevisionState) -> float:
    return state.started_at or revision.created_at


def _causes(job: Job, state: RevisionState, *, late: bool) -> Iterator[str]:
    """What Kubernetes says of pods that have ended or do not become ready, and where it may say why there are none.

    late: whether pods should be there, and most of them ready.
    """
    assert job.state.revision is not None
    if state.pod_fault is not None:
        yield f"a pod has failed: {brief(state.pod_fault, 80)}"
    missing = state.lacking(job.state.revision.placement.replicas)
    if late and state.unready is not None:
        yield f"{state.unready}; see `kubectl describe pod -l {LABEL_JOB}={job.key.name}`"
    if late and missing:
        kind = kind_name(job.spec.workload).lower()
        yield (
            f"{how_many(missing, 'pod')} {'does' if missing == 1 else 'do'} not exist: see `kubectl describe {kind} "
            f"{child_name(job.key.name, state.revision)}`"
        )


def _all_run(job: Job) -> bool:
    if job.state.revision is None:
        return False
    return job.revision(job.state.revision.revision).all_running(job.state.revision.placement.replicas)


def _stopped(job: Job, context: Context) -> Statement:
    pause = job.state.pause
    broke = not job.deleting and not job.spec.suspend
    why = "the job is being deleted" if job.deleting else "spec.suspend is true"
    if broke:
        why = "targets.budget is spent and targets.budgetAction is Suspend"
    if pause is not None and not pause.stopping and not job.deleting:
        timeout = span(job.spec.checkpoint.timeout.total_seconds())
        return Statement("False", Reason.STOPPING, f"{why}; the program was asked to save, and has {timeout} for it")
    staying = (
        each for each in job.observed.revisions.values() if each.exists and not (each.deleting or each.suspended)
    )
    kept = sum(state.active for state in staying)
    if job.deleting and kept:
        stay = "1 pod runs on and holds its" if kept == 1 else f"{kept} pods run on and hold their"
        return Statement(
            "False",
            Reason.STOPPING,
            f"{why}, and {stay} chips: see metadata.finalizers of the ProfiledJob",
        )
    ending = sum(revision.active for revision in job.observed.revisions.values())
    if ending:
        still = (
            "1 pod is still ending and holds its" if ending == 1 else f"{ending} pods are still ending and hold their"
        )
        return Statement("False", Reason.STOPPING, f"{why}; {still} chips")
    if job.deleting:
        return Statement("False", Reason.STOPPING, f"{why}, and holds no chips any more")
    saved = ""
    if pause is not None and pause.saved_at is not None:
        saved = f"; its last save was {write_unix_time(floor(pause.saved_at))}"
    elif pause is not None and pause.unsaved is Reason.SAVE_FAILED:
        saved = "; it was stopped without a new save, since the program failed after one was asked for"
    elif pause is not None and pause.unsaved is not None:
        timeout = span(job.spec.checkpoint.timeout.total_seconds())
        saved = f"; it was stopped without a new save, since none came within {timeout}"
    if broke:
        return Statement("False", Reason.BUDGET_EXCEEDED, f"{why}{saved}; raise the budget to run the job")
    return Statement("False", Reason.SUSPENDED, f"{why}{saved}; set it to false to run the job")


def _unplaced(job: Job, context: Context) -> Statement:
    if context.assessment is None:
        return Statement("Unknown", Reason.WAITING_FOR_CAPACITY, "no placement was decided on yet")
    decision = context.assessment.decision
    message = partial(decision_text, job, context.assessment, context.now)
    if decision.action is Action.START:
        return Statement("False", Reason.STARTING, message)
    return Statement("False", decision.reason, message)


def _crashed(job: Job, crash: Crash) -> str:
    """The program fails and is started again."""
    # The child counts a failure a moment after its pod has ended.
    times = "once" if crash.count <= 1 else f"{crash.count} times"
    most = "" if crash.allowed is None else f" of {crash.allowed} allowed"
    limit = "" if crash.allowed is None else f"; the limit is {crash.limit}"
    lines = crash.output.splitlines()
    output = f"; {both_ends(lines[-1].strip(), _OUTPUT)}" if lines else ""
    return f"{crash}, has failed {times}{most}{output}{limit}"


def _at(ref: Revision) -> str:
    return f"r{ref.revision} on {ref.placement.pool}"


def _place(ref: Revision) -> str:
    at = ref.placement
    cost = "" if ref.cost_per_hour is None else f", {dollars(ref.cost_per_hour)}/h"
    return f"r{ref.revision} on {at.pool}: {chips(at.chips)} in {how_many(at.replicas, 'pod')}{cost}"


def _of_own_nodes(words: str) -> str:
    """What the scheduler says, without nodes of other pools: of a large cluster they come first and are the most."""
    head, found, reasons = words.partition(" nodes are available: ")
    reasons = reasons.partition(". preemption: ")[0]
    own = [reason for reason in reasons.rstrip(".").split(", ") if _OTHER_NODES not in reason]
    return f"{head}{found}{', '.join(own)}" if found and own else words
