"""The second half of a migration: the new Revision starts and is verified, or the job goes back or stays."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.books.accounting import hung, remeasured
from rightpool.planning.jobs.job import Job, throttled_now
from rightpool.planning.judge.series import FEWEST_WINDOWS, MOST_WINDOWS
from rightpool.planning.judge.silence import LONGEST_SILENCE_SECONDS, longest_silence, silence
from rightpool.planning.judge.verdict import Verdict
from rightpool.planning.moves.beginning import next_revision
from rightpool.planning.moves.by_group import goes_by_group
from rightpool.planning.moves.ending import end_migration, with_avoided, with_phase
from rightpool.planning.moves.handovers import handover_of
from rightpool.planning.moves.migration_texts import stays_text, verified_text
from rightpool.planning.moves.setback import NoStep, NothingProven, NotRunning, ProgramFailed, StoppedByQueue
from rightpool.planning.offers.targets.registry import yardstick_of
from rightpool.planning.work.idling import (
    compiles,
    idle_for_an_hour,
    idle_since,
    silent_for_an_hour,
)
from rightpool.planning.work.outlook import outlook, patience
from rightpool.planning.work.registry import work_of
from rightpool.planning.work.verification import Verification, verify
from rightpool.planning.work.work import Activity
from rightpool.prediction.step_shares import work_share
from rightpool.profiles.profile import Profile, Steadiness
from rightpool.profiles.slow_start import known_before
from rightpool.profiles.steadiness import doubt_of_ratio, pace

# Without a complete Profile after this long on the target, nothing can be proven and the job stays where it is.
VERIFICATION_LIMIT_WINDOWS = 6
VERIFICATION_LIMIT_SECONDS = 1_800.0
# Windows that are incomplete do not count; a verdict is given after this multiple of the most windows at the latest.
LONGEST_VERIFICATION = 1.5
# How long a migration waits where nothing is known to be in the way, or its queue is. It takes a place among the moves
# at once, and keeps chips to go back to.
LONGEST_WAIT_SECONDS = 86_400.0


_NEVER_RAN = frozenset({Reason.START_PREVENTED, Reason.START_DEADLINE_EXCEEDED, Reason.JOB_FAILED})


def arrive(job: Job, migration: Migration, policy: PlacementPolicySpec, now: float, room: bool) -> Job:
    """One step of a migration whose target exists. room: whether there is some where the job came from."""
    if migration.phase is Phase.STARTING:
        return _starting(job, migration, policy, now, room)
    return _proving(job, migration, now, room)


def _starting(job: Job, migration: Migration, policy: PlacementPolicySpec, now: float, room: bool) -> Job:
    """room: whether there is some where the job came from."""
    state = job.revision(migration.target.revision)
    if state.all_running(migration.target.placement.replicas):
        return _started(job, migration, now)
    if goes_by_group(job) and state.running > migration.up:  # the next group has the deadline for itself
        return with_phase(job, replace(migration, up=state.running), migration.phase, now)
    kept = job.observed.object_refusal
    if kept is not None and kept.revision == migration.target.revision and not migration.rolling_back:
        return _turned_back(job, migration, kept.reason, kept.message, now)
    waited = now - migration.phase_since
    deadline = policy.start_deadline.total_seconds()
    # It counts from when its pods may be made. When that was is not kept, so that half of it is left at least.
    if state.awaits_others and deadline < 2.0 * waited and now - (migration.stopped_at or now) <= LONGEST_WAIT_SECONDS:
        return with_phase(job, migration, migration.phase, now)
    overdue = waited > deadline
    # Who is slow, or waits in a queue, may still start; not for ever as a part of the migration.
    given_up = overdue and (job.obstacle is not None or waited > LONGEST_WAIT_SECONDS)
    queue = job.queue if job.queued else None
    refusal = job.observed.refusal
    refused = refusal.message if refusal is not None and refusal.revision == state.revision else None
    cause = job.obstacle or state.why_not_running or refused
    setback = NotRunning(deadline, cause, queue)
    if migration.rolling_back or migration.action is Action.UPDATE:
        # What keeps it from starting may last: from then on it is a job to be started, wherever there is room.
        return _not_started(job, migration, setback, now) if given_up else job
    if migration.action is Action.START:
        if not given_up:
            return job
        why = setback.text()
        # Not back to where it did not start either: it stays a job to be started, and each place is tried once.
        if state.exists and job.obstacle is not None:
            job = with_avoided(job, migration.target, Reason.START_DEADLINE_EXCEEDED, now, decision=migration.id)
        return end_migration(job, replace(migration, message=why), Outcome.FAILED, Reason.START_DEADLINE_EXCEEDED, now)
    if state.failed:
        return _turned_back(job, migration, Reason.JOB_FAILED, ProgramFailed(state.failure).text(), now)
    if overdue and not room:
        return _not_started(job, migration, replace(setback, no_room=migration.source.placement.pool), now)
    if overdue:
        prevented = queue is not None or refused is not None or state.prevented
        why = Reason.START_PREVENTED if prevented else Reason.START_DEADLINE_EXCEEDED
        return _turned_back(job, migration, why, setback.text(), now)
    return job


def _started(job: Job, migration: Migration, now: float) -> Job:
    target, here = replace(migration.target, since=now), job.state.revision
    assert here is not None
    # Its price may be another one by now, and those of the migration stay.
    job = job.with_state(replace(job.state, revision=replace(target, cost_per_hour=here.cost_per_hour)))
    migration = replace(migration, target=target, running_at=now, up=0)
    if migration.rolling_back:
        return end_migration(job, migration, Outcome.ROLLED_BACK, migration.failure or Reason.ROLLED_BACK, now)
    if not migration.promises or migration.reason is Reason.FLEET_GAINS:
        migration = replace(migration, doubt=_doubt_of_size(job, migration))
        return end_migration(job, migration, Outcome.CARRIED_OUT, migration.reason, now)
    return with_phase(job, migration, Phase.WARMING_UP, now)


def _doubt_of_size(job: Job, migration: Migration) -> float | None:
    """How surely an edit will tell what another size does; None where it changed the program, or nothing was measured
    before."""
    same = migration.source.workload_hash == migration.target.workload_hash
    resizes = migration.action is Action.RESIZE and migration.reason is Reason.FLEET_GAINS
    if not (migration.action is Action.UPDATE or resizes) or not same or not migration.baseline:
        return None
    return doubt_of_ratio(job.observed.variation, max(migration.baseline_windows, 1), FEWEST_WINDOWS)[0]


def size_to_measure(job: Job) -> LedgerEntry | None:
    """The edit that gave the job its size, where the ledger does not say yet what the job does at it."""
    revision = job.state.revision
    last = next((entry for entry in reversed(job.state.history) if entry.outcome is not Outcome.HELD), None)
    if revision is None or last is None or not last.resized or last.realised_throughput is not None:
        return None
    return last if last.outcome is Outcome.CARRIED_OUT and last.target == revision.placement else None


def with_size_measured(job: Job) -> Job:
    """What the job does at the size that its user gave it, added to the ledger once windows enough were measured. An
    edit promised nothing, so that its migration does not wait for that."""
    revision, last = job.state.revision, size_to_measure(job)
    if revision is None or last is None:
        return job
    variation = job.observed.variation
    seen = pace(variation, revision.revision, last.unit)
    if seen is None:
        return job
    start = known_before(variation, revision.revision)  # it is slow then at any size
    length = job.spec.profiling.window.total_seconds()
    windows = seen.windows - (0 if start is None else start.in_windows(length))
    if windows < FEWEST_WINDOWS:
        return job
    seen = pace(variation, revision.revision, last.unit, windows)
    if seen is None:
        return job
    measured = replace(last, realised_throughput=seen.rate, throttled=throttled_now(job))
    history = tuple(measured if one is last else one for one in job.state.history)
    return job.with_state(replace(job.state, history=history))


def _not_started(job: Job, migration: Migration, setback: NotRunning, now: float) -> Job:
    """It can't start where it was to: from now on it is a job to be started, wherever it may be. A target that was left
    for being slow is better than none; one that did not run, or where it hung, is none."""
    never_ran = migration.failure in _NEVER_RAN
    if migration.abandoned is not None and migration.failure is not None and (never_ran or migration.realised == 0.0):
        job = with_avoided(job, migration.abandoned, migration.failure, now, decision=migration.id)
    message = replace(setback, returning=migration.rolling_back).text()
    if migration.rolling_back:
        message = f"{migration.failure_message}; {message}"
    migration = replace(migration, message=message, failure_message=message)
    return end_migration(job, migration, Outcome.FAILED, Reason.START_DEADLINE_EXCEEDED, now)


def _proving(job: Job, migration: Migration, now: float, room: bool) -> Job:
    """room: whether there is some where the job came from."""
    state = job.revision(migration.target.revision)
    if state.failed:
        return _turned_back(job, migration, Reason.JOB_FAILED, ProgramFailed(state.failure).text(), now)
    if job.queued:  # its queue has stopped it: the time for the verdict begins anew when it runs again
        if now - (migration.running_at or migration.phase_since) <= LONGEST_WAIT_SECONDS:
            return job
        message = StoppedByQueue(job.queue).text()
        return end_migration(job, replace(migration, message=message), Outcome.FAILED, Reason.WAITING_FOR_QUOTA, now)
    profile, work, window = job.observed.profile, work_of(job.spec), job.spec.profiling.window.total_seconds()
    if profile is None or work.measured(migration, profile, job.observed.variation, window) is None:
        return _unmeasured(job, migration, now)
    if migration.phase is Phase.WARMING_UP:
        return with_phase(job, migration, Phase.VERIFYING, now)
    return _verified(job, migration, profile, now, room)


def _unmeasured(job: Job, migration: Migration, now: float) -> Job:
    """No window of it is complete yet. How long that is waited for depends on what the program shows."""
    profile, window = job.observed.profile, job.spec.profiling.window.total_seconds()
    limit = patience(job, max(VERIFICATION_LIMIT_SECONDS, VERIFICATION_LIMIT_WINDOWS * window))
    if pace(job.observed.variation, migration.target.revision, migration.unit) is not None:
        limit += LONGEST_VERIFICATION * MOST_WINDOWS * window  # some windows were complete: more of them will be
    longest = max(LONGEST_SILENCE_SECONDS, longest_silence(window, migration.baseline_rates) * window)
    shows = work_of(job.spec).activity(migration, profile)
    if shows is Activity.NO_STEP:
        limit = max(limit, longest)  # it may compile for long
    elif shows is Activity.FIRST_STEPS:
        limit = max(limit, 2.0 * LONGEST_SILENCE_SECONDS)
    elif shows is Activity.WORKING:
        limit += longest  # its first step may have come as late as that
    # While there are no readings it is not known what it does.
    read = profile.newest if profile is not None and profile.steadiness is Steadiness.STALE else None
    waited = now - max(migration.running_at or migration.phase_since, _resumed(job, migration), read or 0.0)
    idle: NoStep | None = None
    if shows is Activity.NO_STEP and waited > limit:
        idle = NoStep(limit)
    elif shows is Activity.FIRST_STEPS and idle_for_an_hour(job, migration, now):
        idle = NoStep(LONGEST_SILENCE_SECONDS, after_first=True)
    if idle is not None and not compiles(profile):
        # It hangs, or is not seen: then it saves before it goes.
        return _found_hanging(job, migration, idle.text(), now)
    if waited <= limit:
        return job
    other_unit = profile is not None and profile.complete and profile.unit is not migration.unit
    message = NothingProven(limit, migration.unit if other_unit else None).text()
    return end_migration(job, replace(migration, message=message), Outcome.FAILED, Reason.TELEMETRY_UNAVAILABLE, now)


def _verified(job: Job, migration: Migration, profile: Profile, now: float, room: bool) -> Job:
    """room: whether there is some where the job came from."""
    window, variation = job.spec.profiling.window.total_seconds(), job.observed.variation
    waited = now - max(migration.phase_since, _resumed(job, migration))
    longest = LONGEST_VERIFICATION * MOST_WINDOWS * window
    # With short windows an evaluation may last for longer than that.
    longest_silent = max(longest, 2.0 * LONGEST_SILENCE_SECONDS)
    there = variation is not None and variation.revision == migration.target.revision
    recent = variation.recent if variation is not None and there else ()
    quiet = silence(recent, window, migration.baseline, migration.baseline_rates)
    last = waited >= (longest_silent if quiet.mostly else longest)
    result = verify(migration, profile, job.spec, variation, yardstick=yardstick_of(migration.reason), last=last)
    if result.verdict is Verdict.OPEN:
        return job
    idle = result.verdict is Verdict.IDLE
    if idle and waited < longest_silent and not silent_for_an_hour(job, migration, now):
        return job
    message = verified_text(migration, result)
    migration = replace(
        migration,
        unit=result.unit,
        realised=result.throughput,
        doubt=result.doubt,
        throttled=throttled_now(job),
        target_work=work_share(profile, migration.target.placement.chips),
        message=message,
    )
    if idle:  # without room to return it waits for some, and is started elsewhere if that takes long
        return _found_hanging(job, migration, message, now)
    job = remeasured(job, now, refuted=quiet.hangs_again and result.verdict.undoes)
    if not result.verdict.undoes:
        return end_migration(job, migration, Outcome.VERIFIED, result.reason, now)
    stays = _stays(job, migration, result, now, room)
    if stays is None:
        return _turned_back(job, migration, result.reason, message, now, save_first=True)
    message = f"{stays_text(migration, stays)}; {message}"
    return end_migration(job, replace(migration, message=message), Outcome.FAILED, stays, now)


def _resumed(job: Job, migration: Migration) -> float:
    """Unix seconds when Kubernetes last began to run the target, as after its queue had stopped it."""
    return job.revision(migration.target.revision).started_at or 0.0


def _stays(job: Job, migration: Migration, result: Verification, now: float, room: bool) -> Reason | None:
    """Why a job that is worse off stays nevertheless; None where it goes back.

    What is lost by staying is (ratio - 1) of what is left at the old rate, in the terms of the objective, whatever it
    is: seconds against the seconds of a restart, or dollars against what chips cost meanwhile.
    """
    if migration.without_return is not None:
        return migration.without_return
    if not room:
        return Reason.NO_ROOM_TO_RETURN
    if result.likely is None or not migration.baseline:
        return None
    left = outlook(job, result.throughput, now)
    remaining = left.horizon * result.throughput / migration.baseline
    return Reason.RETURN_DOES_NOT_PAY if (result.likely - 1.0) * remaining <= left.restart else None


def _found_hanging(job: Job, migration: Migration, message: str, now: float) -> Job:
    """The program does nothing there. It goes back whatever the move was for, but not to where it may not be."""
    job, migration = hung(job, migration, idle_since(job, migration, now), now), replace(migration, realised=0.0)
    if migration.reason is not Reason.PLACEMENT_DISALLOWED:
        return _turned_back(job, migration, Reason.ROLLED_BACK, message, now, save_first=True)
    message = f"{stays_text(migration, migration.reason)}; {message}"
    return end_migration(job, replace(migration, message=message), Outcome.FAILED, migration.reason, now)


def _turned_back(
    job: Job, migration: Migration, failure: Reason, message: str, now: float, *, save_first: bool = False
) -> Job:
    """The way back: a Revision with the old placement. save_first: what the target has done since is worth saving."""
    back = replace(migration.source, revision=next_revision(job), created_at=now, since=None)
    migration = replace(
        migration,
        rolling_back=True,
        abandoned=migration.target,
        target=replace(back, workload_hash=job.workload_hash_of(back)),
        message="",
        failure=failure,
        failure_message=message,
        baseline_rates=(),
    )
    return handover_of(job).begin(job, migration, now, save=save_first)
