"""The first half of a migration: it waits to begin, the program saves its state, and the old Revision ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rightpool.api.action import Action
from rightpool.api.choices import CheckpointMode
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import MAX_BASELINE_RATES, Migration, Phase
from rightpool.planning.books.accounting import departed
from rightpool.planning.books.counterfactual import Level, measured_level
from rightpool.planning.jobs.job import Job, throttled_now
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.judge.idling import hangs
from rightpool.planning.judge.unsaved import late_save
from rightpool.planning.judge.verification import MOST_WINDOWS
from rightpool.planning.moves.beginning import awaits_check
from rightpool.planning.moves.ending import end_migration, with_avoided, with_phase
from rightpool.planning.moves.pauses import CLOCK_SKEW_SECONDS
from rightpool.planning.moves.setback import EndUnknown, NeverStarted
from rightpool.planning.moves.words import Words
from rightpool.prediction.step_shares import work_share
from rightpool.profiles.silence import silent_for
from rightpool.profiles.slow_start import windows_after_start
from rightpool.profiles.steadiness import pace

if TYPE_CHECKING:
    from rightpool.planning.offers.assessment import Assessment

# Kubernetes says within seconds how a child has ended whose pods have.
FINISHING_SECONDS = 600.0

DEPARTURE = frozenset({Phase.PLANNED, Phase.CHECKPOINTING, Phase.DRAINING})


def depart(
    job: Job, migration: Migration, assessment: Assessment | None, edited: bool, now: float, words: Words
) -> Job:
    """One step of a migration in a phase of `DEPARTURE`. edited: whether the workload is another than was planned."""
    if migration.phase is Phase.PLANNED:
        return _planned(job, migration, assessment, edited, now)
    if migration.phase is Phase.CHECKPOINTING:
        return _checkpointing(job, migration, edited, now, words)
    return _draining(job, migration, edited, now)


def _planned(job: Job, migration: Migration, assessment: Assessment | None, edited: bool, now: float) -> Job:
    if edited or job.spec.suspend:
        return end_migration(job, migration, Outcome.SUPERSEDED, Reason.SUPERSEDED, now)
    if assessment is not None and assessment.withdrawn:
        # Time has passed since the decision was written (an approval may take days), and others were served meanwhile.
        return end_migration(job, migration, Outcome.HELD, Reason.SUPERSEDED, now)
    if migration.action is Action.UPDATE:
        if not job.observed.template_checked:
            return job
        refusal = job.observed.refusal
        if refusal is not None and refusal.revision == migration.target.revision:
            migration = replace(migration, message=refusal.message)
            return end_migration(job, migration, Outcome.HELD, refusal.reason, now)
    if awaits_check(job, migration.target.vendor):
        return job
    refused = next((one for one in job.observed.refused_variants if one.vendor == migration.target.vendor), None)
    if refused is not None:
        migration = replace(migration, message=refused.message)
        return end_migration(job, migration, Outcome.HELD, Reason.INVALID_VARIANT, now)
    if job.awaits_approval or (assessment is not None and assessment.waits_for is not None):
        return job
    # With the save that came too late for the last attempt it leaves: asked for another one, it would be ended in that.
    migration = replace(
        migration,
        saved_before=job.observed.checkpoint_at,
        saved_at=late_save(job, now),
        last_rate=job.observed.last_rate,
    )
    return with_phase(job, migration, Phase.CHECKPOINTING, now)


def _checkpointing(job: Job, migration: Migration, edited: bool, now: float, words: Words) -> Job:
    if (edited or job.spec.suspend) and not migration.rolling_back:
        return end_migration(job, migration, Outcome.SUPERSEDED, Reason.SUPERSEDED, now)
    leaving = job.revision(migration.moving.revision)
    if leaving.finishing:  # to start it anew elsewhere would do its last part twice
        return job if now - migration.phase_since <= FINISHING_SECONDS else _unfinished(job, migration, now, words)
    if migration.action is Action.START:
        if leaving.all_running(migration.moving.placement.replicas):
            return end_migration(job, migration, Outcome.SUPERSEDED, Reason.RUNNING, now)
        if leaving.exists and migration.moving.since is None:  # else nothing was tried, or it ran there
            why = words.setback(NeverStarted(leaving.why_not_running))
            job = with_avoided(job, migration.moving, Reason.START_DEADLINE_EXCEEDED, now, message=why)
    failed = _failed_since_asked(leaving, migration)
    nothing_to_save = leaving.running == 0 and (leaving.active == 0 or migration.moving.since is None)
    asked = job.spec.checkpoint.mode is CheckpointMode.SIGNAL
    # Who demands the move does not wait for the next save of a program that fails by itself.
    waits = failed and (asked or not migration.demanded)
    if (nothing_to_save and not waits) or job.spec.checkpoint.mode is CheckpointMode.NONE:
        return _leaving(job, migration, now)
    if migration.saved_at is not None:
        return _leaving(job, migration, now)
    saved = job.observed.checkpoint_at
    # Where no save was known when one was asked for, an old one may only have been heard of since.
    before = (
        migration.saved_before if migration.saved_before is not None else migration.phase_since - CLOCK_SKEW_SECONDS
    )
    if saved is not None and saved > before:
        return _leaving(job, replace(migration, saved_at=saved), now)
    if failed and asked:
        # What it did since its last save is lost where it is, too: who demands the move need not wait. Any other would
        # be judged by a program that fails, and may meet what the failed save has left.
        leaves = leaving.failed or (migration.demanded and not migration.rolling_back)
        if leaves or not _ends(leaving):
            return _unsaved(job, migration, Reason.SAVE_FAILED, now, words, leaves=leaves)
    if now - migration.phase_since <= job.spec.checkpoint.timeout.total_seconds():
        return job
    # The user replaced the workload; waiting for ever for the old one to save would ignore that. A job that has lost
    # some of its nodes for long does not go on where it is. Nor does one that hangs where it was moved to.
    leaves = hangs(job, migration, now) if migration.rolling_back else not migration.promises
    return _unsaved(job, migration, Reason.CHECKPOINT_TIMEOUT, now, words, leaves=leaves)


def _unfinished(job: Job, migration: Migration, now: float, words: Words) -> Job:
    """Its pods have ended, and nobody says how. What the user demands goes on; else it may have completed."""
    if not migration.promises and not migration.rolling_back:
        return _leaving(job, migration, now)
    message = words.setback(EndUnknown(migration.moving.revision))
    if not migration.rolling_back:
        return end_migration(job, replace(migration, message=message), Outcome.HELD, Reason.FINISHING, now)
    migration = replace(migration, failure_message=f"{migration.failure_message}; {message}")
    return end_migration(job, migration, Outcome.FAILED, Reason.FINISHING, now)


def _failed_since_asked(leaving: RevisionState, migration: Migration) -> bool:
    """Whether the program has failed after it was asked to save. It may have been started again since."""
    return migration.moving.since is not None and leaving.failed_since(migration.phase_since - CLOCK_SKEW_SECONDS)


def _ends(leaving: RevisionState) -> bool:
    """Whether its child will have failed in a moment: it is not started again."""
    crash = leaving.crash
    return crash is not None and crash.allowed is not None and crash.count > crash.allowed


def _unsaved(job: Job, migration: Migration, why: Reason, now: float, words: Words, *, leaves: bool) -> Job:
    """No save came: the migration goes on without it, or is given up. The ledger will say so in both cases."""
    text = words.unsaved(job, migration, why, now, leaves=leaves)
    if migration.rolling_back:
        migration = replace(migration, failure_message=f"{migration.failure_message}; {text}")
    else:
        migration = replace(migration, message=f"{migration.message}; {text}" if leaves else text)
    if leaves:
        return _leaving(job, replace(migration, unsaved=why), now)
    return end_migration(job, migration, Outcome.FAILED if migration.rolling_back else Outcome.HELD, why, now)


def _leaving(job: Job, migration: Migration, now: float) -> Job:
    """The old Revision is ended. What it did until now is what the move will be judged by: a decision may have waited
    for days. What the promise was derived from is not needed any more."""
    if migration.predicted is not None:
        migration = replace(migration, predicted=replace(migration.predicted, basis=()))
    healthy, before = migration.healthy_baseline, migration.baseline
    seen, rates = _seen(job, migration, now)
    if seen is not None and migration.action is not Action.START and not migration.rolling_back:
        repaired = healthy is not None and not throttled_now(job)
        if seen.unit is not migration.unit:  # what was promised is of another unit
            migration = replace(migration, predicted=None)
        elif migration.predicted is not None and before:
            # What is promised is a ratio, and the job itself may have changed meanwhile.
            ratio = seen.rate / (healthy if repaired and healthy else before)
            migration = replace(migration, predicted=migration.predicted.times(ratio))
        migration = replace(
            migration,
            unit=seen.unit,
            baseline=seen.rate,
            source_work=work_share(job.observed.profile, migration.source.placement.chips),
            healthy_baseline=None if repaired or healthy is None or not before else healthy * seen.rate / before,
            baseline_windows=seen.windows,
            baseline_rates=rates,
        )
    return with_phase(job, replace(migration, last_rate=None), Phase.DRAINING, now)


def _seen(job: Job, migration: Migration, now: float) -> tuple[Level | None, tuple[float, ...]]:
    """The rate of the Revision that is left, as it is now, and that of its newest windows where they are known one by
    one; None where that does not compare with what will be."""
    variation, slowed = job.observed.variation, throttled_now(job)
    unit = migration.unit if variation is None else variation.unit
    if not job.spec.compares(unit, migration.source.placement.chips, migration.target.placement.chips):
        return None, ()
    if not slowed and (migration.healthy_baseline is not None or _repaired_lately(job, now)):
        level = measured_level(job, now)
        return (level if level is not None and level.unit is unit else None), ()
    # Of an edit nothing was evaluated, nor of a fault that came later: nothing tells what healthy chips would do.
    if slowed and (migration.action is Action.UPDATE or migration.healthy_baseline is None):
        return None, ()
    # What was before a fault that throttles its chips is not what it leaves.
    # Nor is a slow start, which the first windows there are not compared with.
    window = job.spec.profiling.window.total_seconds()
    most = MOST_WINDOWS if variation is None else windows_after_start(variation, migration.moving.since, window)
    recent = pace(variation, migration.moving.revision, unit, 1 if slowed else most)
    if variation is None or recent is None:
        return None, ()
    rates = variation.recent[-recent.windows :]
    # What it did right before the save was asked for counts as one window more: it may be all that tells that the job
    # has slowed down by itself. A window that has ended since has that time in it, and in a pause it tells nothing.
    if migration.last_rate is not None and variation.as_of <= migration.phase_since:
        known = (*rates, migration.last_rate)
        rates = rates if silent_for(known) else known
    return Level(sum(rates) / len(rates), now, len(rates), unit), rates[-MAX_BASELINE_RATES:]


def _repaired_lately(job: Job, now: float) -> bool:
    """Whether a fault throttled the job's chips in windows that its pace is taken over."""
    track, window = job.observed.track, job.spec.profiling.window.total_seconds()
    return track is not None and now - track.throttled_at < (MOST_WINDOWS + 1) * window


def _draining(job: Job, migration: Migration, edited: bool, now: float) -> Job:
    state = job.revision(migration.moving.revision)
    if state.exists or state.active > 0:
        return job
    # Only here the job's place changes: from now on the target is what is there.
    target = replace(migration.target, workload_hash=job.workload_hash_of(migration.target), created_at=now)
    migration = replace(migration, target=target, stopped_at=now, running_at=None)
    job = departed(job, migration, now)
    assert job.state.migration is not None
    migration = job.state.migration
    # What was observed is of the Revision that has gone: its count is no work of the one that is to come.
    job = replace(job, observed=job.observed._replace(track=None)).with_state(replace(job.state, revision=target))
    if edited:
        # What starts there is another program than the one that was measured: nothing can be proven by it.
        outcome = Outcome.ROLLED_BACK if migration.rolling_back else Outcome.SUPERSEDED
        return end_migration(job, migration, outcome, Reason.SUPERSEDED, now)
    return with_phase(job, migration, Phase.STARTING, now)
