"""The migration state machine: what a job's persisted state becomes, and what that state asks of the cluster.

`advance` is called once per job and cycle and takes at most one step; its result is persisted before `commands` of the
new state are carried out. Both are functions of what is persisted and what is observed, so that an operator killed
between any two instructions continues or undoes on return, and never repeats.

    Planned → Checkpointing → Draining → Starting → WarmingUp → Verifying → Verified
                  │                         │                       │
                  └─ Held                   └── Draining (back) ◀───┘ → Starting → RolledBack | Failed
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rightpool.api.choices import CheckpointMode
from rightpool.api.conditions import Reason
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.placement import Placement
from rightpool.planning.commands import Command, EndRevision, EnsureRevision, RequestCheckpoint
from rightpool.planning.contradiction import contradiction
from rightpool.planning.decision import MIGRATING_ACTIONS, Action, Decision
from rightpool.planning.ledger import MAX_HISTORY, AvoidedPlacement, LedgerEntry, Outcome
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.revision import RevisionRef, RevisionState
from rightpool.planning.snapshot import JobState
from rightpool.planning.survey import Intent
from rightpool.planning.verification import Verdict, verify

if TYPE_CHECKING:
    from rightpool.planning.assess import Assessment

# What the clock of a job's node may be behind the operator's. A save's time is told by the former.
CLOCK_SKEW_SECONDS = 5.0
# A pool that did not keep its promise is not tried again for a day: long enough to be repaired, short enough to matter.
AVOID_SECONDS = 86_400.0
# Without a complete Profile after this long on the target, nothing can be proven and the job stays where it is.
VERIFICATION_LIMIT_WINDOWS = 6
VERIFICATION_LIMIT_SECONDS = 1_800.0

COMPLETED = "Completed"
FAILED = "Failed"


def advance(job: JobState, assessment: Assessment | None, policy: PlacementPolicySpec, now: float) -> JobState:
    """The job's next persisted state; the very same object where nothing changes.

    assessment: None where the job was not assessed in this cycle (then nothing new is begun).
    """
    if job.deleting or job.finished or job.invalid or contradiction(job):
        return job
    ended = _ended(job, now)
    if ended is not None:
        return ended
    if job.migration is not None:
        return _step(job, job.migration, assessment, policy, now)
    job = _metered(job, now)
    if assessment is None or job.spec.suspend:
        return job
    job = _priced(job, assessment, now)
    return _begun(_allowed(job, assessment), assessment, now)


def commands(job: JobState) -> tuple[Command, ...]:
    """What the persisted state asks of the cluster; each command is a no-op where the cluster already complies."""
    if job.deleting or job.finished or job.invalid or contradiction(job):
        return ()
    # Kubernetes' garbage collector can miss what a ProfiledJob has left that was deleted and made anew while its watch
    # was broken: it would run for ever. The collector would do the same to any object whose owner is gone, so that
    # nobody gains by forging one.
    earlier = [r.revision for r in job.revisions.values() if r.earlier]
    if job.ref is None:
        return tuple(EndRevision(number) for number in sorted(earlier))
    wanted: list[Command] = []
    keep = {job.ref.revision}
    migration = job.migration
    suspend = job.spec.suspend
    if migration is None or migration.phase is Phase.PLANNED:
        wanted.append(EnsureRevision(job.ref, suspend))
    elif migration.phase is Phase.CHECKPOINTING:
        wanted.append(EnsureRevision(migration.moving, suspend))
        if migration.saved_at is None and not suspend:
            wanted.append(RequestCheckpoint(migration.moving.revision, migration.id))
    elif migration.phase is Phase.DRAINING:
        keep = {migration.moving.revision}
        wanted.append(EndRevision(migration.moving.revision))
    else:
        wanted.append(EnsureRevision(migration.target, suspend))
    # A leftover of a crash or of a late leader must not hold chips, and must not stop what is wanted from starting.
    strays = [
        r.revision for r in job.revisions.values() if r.exists and not r.succeeded and r.revision not in keep
    ] + earlier
    if strays:
        ends = tuple(EndRevision(number) for number in sorted(strays))
        return ends + tuple(c for c in wanted if not isinstance(c, EnsureRevision))
    return tuple(wanted)


def next_revision(job: JobState) -> int:
    """A number that no Revision of this job has had. What pods say of theirs, anybody can write."""
    numbers = [0, *(number for number, state in job.revisions.items() if state.exists or state.earlier)]
    if job.ref is not None:
        numbers.append(job.ref.revision)
    if job.migration is not None:
        numbers += [job.migration.source.revision, job.migration.target.revision]
    return max(numbers) + 1


def _ended(job: JobState, now: float) -> JobState | None:
    """The job's own end, which wins over everything; None where it has not ended."""
    if job.ref is None:
        return None
    migration = job.migration
    state = job.revision(job.ref.revision)
    if migration is not None and migration.phase is Phase.DRAINING:
        state = job.revision(migration.moving.revision)
    if state.succeeded:
        return _finished(job, COMPLETED, now)
    # On a target that is still to be verified, or left again, failing is the move's failure: undone, not the job's own.
    on_trial = (
        migration is not None
        and migration.promises
        and migration.phase
        in (
            (Phase.CHECKPOINTING, Phase.DRAINING)
            if migration.rolling_back
            else (Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING)
        )
    )
    if state.failed and not on_trial:
        return _finished(job, FAILED, now)
    return None


def _finished(job: JobState, how: str, now: float) -> JobState:
    if job.migration is not None:
        reason = Reason.JOB_COMPLETED if how == COMPLETED else Reason.JOB_FAILED
        job = _closed(job, job.migration, Outcome.SUPERSEDED, reason, now)
    return replace(job, finished=how, account=job.account.stopped(now))


def _metered(job: JobState, now: float) -> JobState:
    """The meter follows the pods: it starts when they first all run, and stops when none is left."""
    if job.ref is None:
        return job
    state = job.revision(job.ref.revision)
    if _all_running(state, job.ref.placement) and (job.account.since is None or job.ref.since is None):
        since = job.ref.since if job.ref.since is not None else now
        return replace(job, ref=replace(job.ref, since=since), account=job.account.started(job.ref.cost_per_hour, now))
    if job.account.since is not None and job.spec.suspend and state.active == 0:
        return replace(job, account=job.account.stopped(now))
    return job


def _priced(job: JobState, assessment: Assessment, now: float) -> JobState:
    """A price that was missing and is known now counts from now on; how long it was missing is on the account."""
    price = None if assessment.current is None else assessment.current.cost_per_hour
    if job.ref is None or job.ref.cost_per_hour is not None or price is None:
        return job
    account = job.account if job.account.since is None else job.account.started(price, now)
    return replace(job, ref=replace(job.ref, cost_per_hour=price), account=account)


def _allowed(job: JobState, assessment: Assessment) -> JobState:
    """Remember that the spec as it is now allows where the job is, so that a later edit is seen to be one."""
    if job.ref is None or job.ref.generation == job.generation or assessment.current is None:
        return job
    if assessment.intent in (Intent.UPDATE, Intent.LEAVE):
        return job
    return replace(job, ref=replace(job.ref, generation=job.generation))


def _begun(job: JobState, assessment: Assessment, now: float) -> JobState:
    decision = assessment.decision
    if decision.candidate is None or decision.target is None:
        return job
    if decision.action is Action.START and job.ref is None:
        target = _revision(job, decision, next_revision(job), now)
        return replace(job, ref=target, decisions=job.decisions + 1)
    if job.ref is None or decision.action not in (*MIGRATING_ACTIONS, Action.START):
        return job
    number = job.decisions + 1
    current = assessment.current
    measured = None if current is None else current.samples_per_second
    cost = None if current is None else current.cost_per_million
    migration = Migration(
        id=f"d-{number}",
        action=decision.action,
        phase=Phase.PLANNED,
        source=job.ref,
        target=_revision(job, decision, next_revision(job), now),
        created_at=now,
        phase_since=now,
        reason=decision.reason,
        message=decision.message,
        predicted=decision.candidate.samples_per_second,
        predicted_cost=decision.candidate.cost_per_million,
        baseline=None if measured is None else measured.median,
        baseline_cost=None if cost is None else cost.median,
    )
    return replace(job, migration=migration, decisions=number)


def _revision(job: JobState, decision: Decision, number: int, now: float) -> RevisionRef:
    assert decision.candidate is not None
    workload = job.spec.workload.job
    return RevisionRef(
        revision=number,
        placement=decision.candidate.placement,
        workload_hash=job.workload_hash,
        requested=(workload.chips, workload.replicas),
        created_at=now,
        cost_per_hour=decision.candidate.cost_per_hour,
        generation=job.generation,
    )


def _step(
    job: JobState, migration: Migration, assessment: Assessment | None, policy: PlacementPolicySpec, now: float
) -> JobState:
    edited = job.workload_hash != migration.target.workload_hash
    if migration.phase is Phase.PLANNED:
        return _planned(job, migration, assessment, edited, now)
    if migration.phase is Phase.CHECKPOINTING:
        return _checkpointing(job, migration, edited, now)
    if migration.phase is Phase.DRAINING:
        return _draining(job, migration, now)
    if edited or job.spec.suspend:
        # The target exists already: the job is there now, and the user's wish is the next decision.
        outcome = Outcome.ROLLED_BACK if migration.rolling_back else Outcome.SUPERSEDED
        return _closed(job, migration, outcome, Reason.SUPERSEDED, now)
    if migration.phase is Phase.STARTING:
        return _starting(job, migration, policy, now)
    return _proving(job, migration, now)


def _planned(job: JobState, migration: Migration, assessment: Assessment | None, edited: bool, now: float) -> JobState:
    if edited or job.spec.suspend:
        return _closed(job, migration, Outcome.SUPERSEDED, Reason.SUPERSEDED, now)
    if migration.promises and assessment is not None and assessment.candidates:
        # Time has passed since the decision was written (an approval may take days): it must still hold.
        same = [c for c in assessment.candidates if c.placement == migration.target.placement]
        if not same or not same[0].eligible:
            return _closed(job, migration, Outcome.HELD, Reason.SUPERSEDED, now)
    if job.awaits_approval:
        return job
    return _entered(job, replace(migration, saved_before=job.checkpoint_at), Phase.CHECKPOINTING, now)


def _checkpointing(job: JobState, migration: Migration, edited: bool, now: float) -> JobState:
    if (edited or job.spec.suspend) and not migration.rolling_back:
        return _closed(job, migration, Outcome.SUPERSEDED, Reason.SUPERSEDED, now)
    leaving = job.revision(migration.moving.revision)
    if leaving.finishing:
        return job  # to start it anew elsewhere would do its last part twice
    if migration.action is Action.START:
        if _all_running(leaving, migration.moving.placement):
            return _closed(job, migration, Outcome.SUPERSEDED, Reason.RUNNING, now)
        if leaving.exists:  # else nothing was tried, for want of the pool
            why = f"the job did not start there: {leaving.blocked or 'no reason known'}"
            job = _avoiding(job, migration.moving, why, now)
        return _entered(job, migration, Phase.DRAINING, now)
    nothing_to_save = leaving.running == 0 and (leaving.active == 0 or migration.moving.since is None)
    if nothing_to_save or job.spec.checkpoint.mode is CheckpointMode.NONE:
        return _entered(job, migration, Phase.DRAINING, now)
    saved = job.checkpoint_at
    # Where no save was known when one was asked for, an old one may only have been heard of since.
    before = (
        migration.saved_before if migration.saved_before is not None else migration.phase_since - CLOCK_SKEW_SECONDS
    )
    if saved is not None and saved > before:
        return _entered(job, replace(migration, saved_at=saved), Phase.DRAINING, now)
    if now - migration.phase_since <= job.spec.checkpoint.timeout.total_seconds():
        return job
    if migration.action is Action.UPDATE and not migration.rolling_back:
        # The user replaced the workload; waiting for ever for the old one to save would ignore that.
        return _entered(job, migration, Phase.DRAINING, now)
    detail = f": {job.checkpoint_error}" if job.checkpoint_error else ""
    message = f"no new checkpoint within {job.spec.checkpoint.timeout.total_seconds():.0f} s{detail}; the job runs on"
    outcome = Outcome.FAILED if migration.rolling_back else Outcome.HELD
    return _closed(job, replace(migration, message=message), outcome, Reason.CHECKPOINT_TIMEOUT, now)


def _draining(job: JobState, migration: Migration, now: float) -> JobState:
    state = job.revision(migration.moving.revision)
    if state.exists or state.active > 0:
        return job
    # Only here the job's place changes: from now on the target is what is there.
    target = replace(migration.target, workload_hash=job.workload_hash, created_at=now)
    migration = replace(migration, target=target, stopped_at=now, running_at=None)
    return _entered(replace(job, ref=target, account=job.account.stopped(now)), migration, Phase.STARTING, now)


def _starting(job: JobState, migration: Migration, policy: PlacementPolicySpec, now: float) -> JobState:
    state = job.revision(migration.target.revision)
    if _all_running(state, migration.target.placement):
        target = replace(migration.target, since=now)
        lost = migration.lost_seconds + (now - migration.stopped_at if migration.stopped_at is not None else 0.0)
        job = replace(job, ref=target, account=job.account.started(target.cost_per_hour, now))
        migration = replace(migration, target=target, running_at=now, lost_seconds=lost)
        if migration.rolling_back:
            return _closed(job, migration, Outcome.ROLLED_BACK, migration.failure or Reason.ROLLED_BACK, now)
        if not migration.promises:
            return _closed(job, migration, Outcome.CARRIED_OUT, migration.reason, now)
        return _entered(job, migration, Phase.WARMING_UP, now)
    overdue = now - migration.phase_since > policy.start_deadline.total_seconds()
    why = f"not running after {policy.start_deadline.total_seconds():.0f} s: {job.obstacle or 'no reason known'}"
    if migration.rolling_back or migration.action is Action.UPDATE:
        # There is nowhere left to go: wait, and say what for. Without a pool there is nothing to wait for.
        return _stranded(job, migration, why, now) if overdue and job.absent and not state.exists else job
    if migration.action is Action.START:
        if not overdue or job.obstacle is None:
            return job
        # Not back to where it did not start either: it stays a job to be started, and each place is tried once.
        job = _avoiding(job, migration.target, why, now) if state.exists else job
        return _closed(job, replace(migration, message=why), Outcome.FAILED, Reason.START_DEADLINE_EXCEEDED, now)
    if state.failed:
        return _turned_back(job, migration, Reason.JOB_FAILED, state.failure or "the Revision failed", now)
    if overdue:
        return _turned_back(job, migration, Reason.START_DEADLINE_EXCEEDED, why, now)
    return job


def _stranded(job: JobState, migration: Migration, why: str, now: float) -> JobState:
    """The pool that it was to start on is gone: from now on it is a job to be started, wherever it may be. A target
    that was left for being slow is better than none; one that did not run is none."""
    if migration.abandoned is not None and migration.failure in (Reason.START_DEADLINE_EXCEEDED, Reason.JOB_FAILED):
        job = _avoiding(job, migration.abandoned, migration.failure_message or str(migration.failure), now)
    message = f"{migration.failure_message}; on the way back: {why}" if migration.rolling_back else why
    migration = replace(migration, message=message, failure_message=message)
    return _closed(job, migration, Outcome.FAILED, Reason.START_DEADLINE_EXCEEDED, now)


def _proving(job: JobState, migration: Migration, now: float) -> JobState:
    state = job.revision(migration.target.revision)
    if state.failed:
        return _turned_back(job, migration, Reason.JOB_FAILED, state.failure or "the Revision failed", now)
    profile = job.profile
    if profile is None or profile.key.revision != migration.target.revision or not profile.complete:
        limit = max(VERIFICATION_LIMIT_SECONDS, VERIFICATION_LIMIT_WINDOWS * job.spec.profiling.window.total_seconds())
        if now - (migration.running_at or migration.phase_since) > limit:
            message = (
                f"no complete profile within {limit:.0f} s after the move, so nothing can be proven; the job stays"
            )
            return _closed(job, replace(migration, message=message), Outcome.FAILED, Reason.TELEMETRY_UNAVAILABLE, now)
        return job
    if migration.phase is Phase.WARMING_UP:
        return _entered(job, migration, Phase.VERIFYING, now)
    result = verify(migration, profile, job.spec)
    if not result.settled and now - migration.phase_since < job.spec.profiling.window.total_seconds():
        return job
    migration = replace(
        migration, realised=result.samples_per_second, realised_cost=result.cost_per_million, message=result.message
    )
    if result.verdict is Verdict.WORSE:
        return _turned_back(job, migration, result.reason, result.message, now, save_first=True)
    return _closed(job, migration, Outcome.VERIFIED, result.reason, now)


def _turned_back(
    job: JobState, migration: Migration, failure: Reason, message: str, now: float, *, save_first: bool = False
) -> JobState:
    """The way back: a Revision with the old placement. save_first: what the target has done since is worth saving."""
    back = replace(migration.source, revision=next_revision(job), created_at=now, since=None)
    migration = replace(
        migration,
        rolling_back=True,
        abandoned=migration.target,
        target=replace(back, workload_hash=job.workload_hash),
        failure=failure,
        failure_message=message,
        saved_before=job.checkpoint_at,
        saved_at=None,
    )
    return _entered(job, migration, Phase.CHECKPOINTING if save_first else Phase.DRAINING, now)


def _entered(job: JobState, migration: Migration, phase: Phase, now: float) -> JobState:
    return replace(job, migration=replace(migration, phase=phase, phase_since=now))


def _closed(job: JobState, migration: Migration, outcome: Outcome, reason: Reason, now: float) -> JobState:
    """The migration ends; the ledger says how."""
    tried = migration.abandoned or migration.target
    account = job.account.settled(now)
    # Chips that are paid and do nothing: the drained ones are off the meter, the starting ones are not always.
    cost = migration.lost_seconds / 3600 * (tried.cost_per_hour or 0.0)
    entry = LedgerEntry(
        id=migration.id,
        action=migration.action,
        source=migration.source.placement,
        target=tried.placement,
        predicted_samples_per_second=migration.predicted.median if migration.predicted else None,
        predicted_cost_per_million=migration.predicted_cost.median if migration.predicted_cost else None,
        baseline_samples_per_second=migration.baseline,
        baseline_cost_per_million=migration.baseline_cost,
        realised_samples_per_second=migration.realised,
        realised_cost_per_million=migration.realised_cost,
        started_at=migration.created_at,
        finished_at=now,
        outcome=outcome,
        reason=reason,
        message=migration.failure_message or migration.message,
        lost_seconds=migration.lost_seconds,
        cost=cost,
    )
    moved = outcome in (Outcome.VERIFIED, Outcome.ROLLED_BACK, Outcome.FAILED)
    if outcome is Outcome.ROLLED_BACK:
        job = _avoiding(job, tried, migration.failure_message or str(reason), now)
        account = account.charged(cost + _excess(migration, now))
    elif outcome is Outcome.VERIFIED:
        account = account.charged(cost).moved(
            baseline=migration.baseline,
            baseline_cost=migration.baseline_cost,
            realised=migration.realised,
            realised_cost=migration.realised_cost,
            now=now,
        )
    return replace(
        job,
        migration=None,
        moves=job.moves + (1 if moved and not migration.demanded else 0),
        last_move_at=now if moved or outcome is Outcome.HELD else job.last_move_at,
        avoid=tuple(a for a in job.avoid if a.until is None or a.until > now),
        account=account,
        history=((*job.history, entry)[-MAX_HISTORY:]),
    )


def _avoiding(job: JobState, ref: RevisionRef, why: str, now: float) -> JobState:
    """Remember that this placement was tried and left."""
    at = ref.placement
    return replace(job, avoid=(*job.avoid, AvoidedPlacement(at.pool, at.chips, why, now + AVOID_SECONDS)))


def _excess(migration: Migration, now: float) -> float:
    """Dollars that an undone move cost: what its samples cost above what they would have cost at the source."""
    if migration.abandoned is None or migration.realised is None or migration.abandoned.since is None:
        return 0.0
    if migration.realised_cost is None or migration.baseline_cost is None or migration.stopped_at is None:
        return 0.0
    seconds = max(0.0, migration.stopped_at - migration.abandoned.since)
    return max(0.0, migration.realised_cost - migration.baseline_cost) / 1e6 * migration.realised * seconds


def _all_running(state: RevisionState, placement: Placement) -> bool:
    return state.exists and not state.deleting and state.running >= placement.replicas
