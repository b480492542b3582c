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

from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.variation import Variation
from rightpool.planning.books.accounting import accounted, finished
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.arrival import arrive, with_size_measured
from rightpool.planning.moves.beginning import Why, begin, with_decision
from rightpool.planning.moves.disruptions import failed_by_disruption, started_again, with_disruption
from rightpool.planning.moves.edits import with_edit_judged, with_image
from rightpool.planning.moves.ending import end_migration
from rightpool.planning.moves.following import followed, with_note
from rightpool.planning.moves.handovers import handover_of
from rightpool.planning.moves.overruled import with_users_word
from rightpool.planning.moves.pauses import with_pause
from rightpool.planning.moves.release import with_way_home
from rightpool.planning.moves.rescues import with_rescue
from rightpool.planning.moves.resizing import with_size
from rightpool.planning.moves.server_edits import with_server_edit_judged
from rightpool.planning.moves.setback import FailedWhenSaving
from rightpool.planning.moves.trace import abandoned, with_trace
from rightpool.planning.moves.trying import with_trial, without_trial
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.readiness import COMPLETED
from rightpool.planning.offers.trial_consent import NO_TRIAL, Trying
from rightpool.planning.work.registry import work_of
from rightpool.profiles.steadiness import worth_keeping

if TYPE_CHECKING:
    from rightpool.planning.offers.assessment import Assessment

FAILED = "Failed"


def advance(
    job: Job,
    assessment: Assessment | None,
    policy: PlacementPolicySpec,
    now: float,
    why: Why,
    trying: Trying = NO_TRIAL,
) -> Job:
    """The job's next persisted state; the very same object where nothing changes.

    assessment: None where the job was not assessed in this cycle (then nothing new is begun). why: says why a
    migration begins. trying: what the plan says of trials of its program.
    """
    if job.deleting or job.state.finished or job.invalid or contradiction(job):
        return job
    # First what is paid and done up to now, then what follows from the step itself.
    booked = accounted(job, assessment, policy, now)
    after = _advanced(booked, assessment, policy, now, why, trying)
    after = with_image(booked if after is booked else accounted(after, assessment, policy, now))
    seen, stored = after.observed.variation, job.state.variation
    if seen is not None and (after is not job or worth_keeping(stored, seen) or _tells_a_verdict(job, seen)):
        after = after.with_state(altered(after.state, variation=seen))
    return after


def _tells_a_verdict(job: Job, seen: Variation) -> bool:
    """Whether a window was counted that a move or an edit is to be judged by: an operator that is started anew goes on
    from it."""
    migration, stored = job.state.migration, job.state.variation
    judges = job.state.edit_to_judge is not None
    if migration is not None:
        judges = migration.phase is Phase.VERIFYING and not migration.rolling_back
    return judges and (stored is None or stored.as_of < seen.as_of)


def _advanced(
    job: Job, assessment: Assessment | None, policy: PlacementPolicySpec, now: float, why: Why, trying: Trying
) -> Job:
    theirs = job.spec.workload_ref is not None
    if theirs:
        assessed, job = job.state.revision, with_note(followed(with_users_word(job, now), now))
        if job.state.revision is not assessed:
            assessment = None  # it is of where the object was
    if job.spec.only_watched:
        return _own_end(job, now) or with_edit_judged(_running(job, now))
    job = with_disruption(job)
    ended = _own_end(job, now) if theirs else _ended(job, now)
    if ended is not None:
        return ended
    job = with_trial(with_trace(with_rescue(job, now), now), trying, policy, now)
    sized = with_size(job, now)
    if sized is not job:
        return sized
    migration = job.state.migration
    if migration is not None:
        return _step(job, migration, assessment, policy, now)
    job = with_server_edit_judged(with_edit_judged(with_size_measured(_running(with_pause(job, now), now))))
    if job.releasing:
        return with_way_home(job, now)
    if assessment is None or job.stops:
        return job
    if job.state.trial is not None and assessment.intent is Intent.SAVE:
        return job  # what it shows is waited for
    return with_decision(_allowed(job, assessment), assessment, now, why)


def _own_end(job: Job, now: float) -> Job | None:
    """The end of an object that somebody else has made: it is not made anew. None where it has not ended."""
    child = job.child
    if child is None or not (child.succeeded or child.failed):
        return None
    return _finished(job, COMPLETED if child.succeeded else FAILED, now)


def _ended(job: Job, now: float) -> Job | None:
    """The job's own end, which wins over everything, or a new start where only a disruption has ended it; None where it
    has not ended."""
    if job.state.revision is None:
        return None
    migration, handover = job.state.migration, handover_of(job)
    state = job.revision(job.state.revision.revision)
    if work_of(job.spec).has_ended(state):
        return _finished(job, COMPLETED, now)
    # On a target that is still to be verified, or left again, failing is the move's failure: undone, not the job's own.
    on_trial = (
        migration is not None
        and migration.promises
        and migration.phase
        in (handover.phases if migration.rolling_back else (Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING))
    )
    leaving = migration is not None and migration.phase in handover.phases
    if not state.failed or (leaving and state.deleting):
        return None  # why a child has failed that is being ended was judged before; its pods no longer tell
    if failed_by_disruption(job, state) and not job.on_trial:  # a trial has one start
        return None if leaving else started_again(job, now)
    return None if on_trial else _finished(job, FAILED, now)


def _finished(job: Job, how: str, now: float) -> Job:
    if job.state.migration is not None:
        migration, reason = job.state.migration, Reason.JOB_COMPLETED if how == COMPLETED else Reason.JOB_FAILED
        if how == FAILED and handover_of(job).saves(migration):
            migration = replace(migration, message=f"{migration.message}; {FailedWhenSaving().text()}")
        job = end_migration(job, migration, Outcome.SUPERSEDED, reason, now)
    job = finished(without_trial(job, now), now)
    return job.with_state(replace(job.state, finished=how, rescue=None, trace=abandoned(job.state.trace, now)))


def _running(job: Job, now: float) -> Job:
    """When the Revision's pods first all ran."""
    revision = job.state.revision
    if revision is None or revision.since is not None:
        return job
    if not job.revision(revision.revision).all_running(revision.placement.replicas):
        return job
    return job.with_state(replace(job.state, revision=replace(revision, since=now)))


def _allowed(job: Job, assessment: Assessment) -> Job:
    """Remember that the spec as it is now allows where the job is, so that a later edit is seen to be one. What was
    avoided until the spec changes may be tried again."""
    revision = job.state.revision
    if revision is None or revision.generation == job.generation or assessment.current is None:
        return job
    if assessment.intent in (Intent.UPDATE, Intent.LEAVE):
        return job
    state = altered(job.state, revision=altered(revision, generation=job.generation))
    if job.edited:
        state = replace(state, avoid=tuple(avoided for avoided in state.avoid if avoided.until is not None))
    return job.with_state(state)


def _step(
    job: Job, migration: Migration, assessment: Assessment | None, policy: PlacementPolicySpec, now: float
) -> Job:
    edited = job.workload_hash_of(migration.target) != migration.target.workload_hash
    if migration.phase is Phase.PLANNED:
        return begin(job, migration, assessment, edited, now)
    handover = handover_of(job)
    if migration.phase in handover.phases:
        taken = assessment is not None and assessment.withdrawn and migration.reason is not Reason.RELEASED
        return handover.step(job, migration, edited, taken, now)
    awaits_verdict = migration.promises and not migration.rolling_back
    if edited or (job.spec.suspend and not awaits_verdict):
        # The target exists already: the job is there now, and the user's wish is the next decision.
        outcome = Outcome.ROLLED_BACK if migration.rolling_back else Outcome.SUPERSEDED
        return end_migration(job, migration, outcome, Reason.SUPERSEDED, now)
    if awaits_verdict:
        paused = with_pause(job, now)
        if paused is not job or paused.state.pause is not None:
            return paused  # nothing is judged while the job is stopped
    room = assessment is None or assessment.way_back is not False
    return arrive(job, migration, policy, now, room)
