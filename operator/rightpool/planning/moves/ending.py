"""How a phase of a migration ends, and the migration itself: its entry in the ledger, and what is avoided then."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.avoided import MAX_AVOIDED, AvoidedPlacement
from rightpool.api.conditions import Reason
from rightpool.api.ledger import MAX_HISTORY, MAX_MESSAGES, LedgerEntry, Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.books.accounting import closed
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.targets.registry import target_of
from rightpool.planning.work.registry import work_of
from rightpool.planning.work.unsaved import appended

# A pool that did not keep its promise is not tried again for a day: long enough to be repaired, short enough to matter.
AVOID_SECONDS = 86_400.0


def with_phase(job: Job, migration: Migration, phase: Phase, now: float) -> Job:
    """The migration goes on to this phase."""
    return job.with_state(replace(job.state, migration=replace(migration, phase=phase, phase_since=now)))


def end_migration(job: Job, migration: Migration, outcome: Outcome, reason: Reason, now: float) -> Job:
    """The migration ends; the ledger says how."""
    tried = migration.abandoned or migration.target
    job, lost, cost = closed(job, migration, outcome, now)
    entry = LedgerEntry(
        id=migration.id,
        action=migration.action,
        source=migration.source.placement,
        target=tried.placement,
        source_cost_per_hour=migration.source.cost_per_hour,
        target_cost_per_hour=tried.cost_per_hour,
        unit=migration.unit,
        predicted_throughput=migration.predicted.median if migration.predicted else None,
        baseline_throughput=migration.baseline,
        healthy_baseline_throughput=migration.healthy_baseline,
        realised_throughput=migration.realised,
        started_at=migration.created_at,
        finished_at=now,
        outcome=outcome,
        reason=reason,
        message=migration.failure_message or migration.message,
        doubt=migration.doubt,
        throttled=migration.throttled,
        source_chip=migration.source.chip,
        target_chip=tried.chip,
        source_work=migration.source_work,
        target_work=migration.target_work,
        lost_seconds=lost,
        cost=cost,
    )
    repairs = target_of(migration.reason) is not None
    by_fleet = outcome is Outcome.CARRIED_OUT and reason is Reason.FLEET_GAINS
    moved = outcome in (Outcome.VERIFIED, Outcome.ROLLED_BACK, Outcome.FAILED)
    if outcome is Outcome.ROLLED_BACK:
        job = with_avoided(job, tried, reason, now, decision=migration.id, seconds=avoid_seconds(job, migration))
    state = job.state
    return job.with_state(
        replace(
            state,
            migration=None,
            moves=state.moves + (1 if moved and not (migration.demanded or repairs) else 0),
            last_move_at=now if moved or outcome is Outcome.HELD or by_fleet else state.last_move_at,
            avoid=tuple(a for a in state.avoid if a.until is None or a.until > now),
            history=appended(job.state.history, entry)[-MAX_HISTORY:],
        )
    )


def avoid_seconds(job: Job, migration: Migration) -> float:
    """For how long the target is not tried again: a day. A server that its user sent away may not stay where it is, and
    answers on there while it tries: the cooldown, and twice as long after each try."""
    if not migration.demanded or work_of(job.spec).one_writer:
        return AVOID_SECONDS
    pool, tries = migration.target.placement.pool, 0
    for entry in job.state.history:
        if entry.outcome in (Outcome.VERIFIED, Outcome.CARRIED_OUT):
            tries = 0
        tries += entry.outcome in (Outcome.ROLLED_BACK, Outcome.FAILED) and entry.target.pool == pool
    first = max(job.spec.adaptation.cooldown, job.spec.profiling.window).total_seconds()
    return float(min(first * 2.0**tries, max(first, AVOID_SECONDS)))


def with_avoided(
    job: Job,
    ref: Revision,
    reason: Reason,
    now: float,
    *,
    decision: str = "",
    message: str = "",
    seconds: float = AVOID_SECONDS,
) -> Job:
    """Remember that this placement was tried and left. decision: the id of the entry that the ledger will have of it;
    without one, message says why. seconds: until it may be tried again."""
    at = ref.placement
    avoided = AvoidedPlacement(at.pool, at.chips, reason, message, now + seconds, decision)
    # Of one place only what was found last; older entries lose their messages, as those of the ledger do.
    others = [entry for entry in job.state.avoid if (entry.pool, entry.chips) != (at.pool, at.chips)]
    silent = max(len(others) - MAX_MESSAGES + 1, 0)
    brief = [replace(entry, message="") for entry in others[:silent]]
    return job.with_state(replace(job.state, avoid=(*brief, *others[silent:], avoided)[-MAX_AVOIDED:]))
