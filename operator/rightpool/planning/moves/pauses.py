"""Pauses: a job that is to be stopped is asked for a save first, and stopped when it has saved or its time is over."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.choices import BudgetAction
from rightpool.api.conditions import Reason
from rightpool.api.pause import Pause
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.saving import (
    failed_since_asked,
    never_saves,
    saved_since,
    saves_when_asked,
    waited_for_save,
)


def with_pause(job: Job, now: float) -> Job:
    """The job with its pause begun, taken a step further, or over; the very same object where nothing changes."""
    reason, pause = _wanted(job, now), job.state.pause
    if reason is None or job.state.revision is None:
        return job if pause is None else _resumed(job, pause, now)
    if pause is None:
        stopping = not _runs(job) or never_saves(job)
        return _set(job, Pause(reason, now, job.observed.checkpoint_at, stopping=stopping))
    if pause.reason is not reason:
        return _set(job, replace(pause, reason=reason))
    if pause.stopping:
        return job
    saved = saved_since(job, pause.since, pause.saved_before)
    if saved is not None:
        return _set(job, replace(pause, saved_at=saved, stopping=True))
    child = job.child
    # One that saves by itself was not asked.
    failed = child is not None and saves_when_asked(job) and failed_since_asked(child, pause.since)
    if failed:  # what it did since its last save is lost already: nothing is waited for
        return _set(job, replace(pause, unsaved=Reason.SAVE_FAILED, stopping=True))
    if not _runs(job):
        return _set(job, replace(pause, stopping=True))
    if waited_for_save(job, pause.since, now):
        return _set(job, replace(pause, unsaved=Reason.CHECKPOINT_TIMEOUT, stopping=True))
    return job


def _wanted(job: Job, now: float) -> Reason | None:
    if job.spec.suspend:
        return Reason.SUSPENDED
    targets = job.spec.targets
    if targets.budget is None or targets.budget_action is not BudgetAction.SUSPEND:
        return None
    spent = job.state.account.spent_by(now)
    return Reason.BUDGET_EXCEEDED if spent >= float(targets.budget) else None


def _resumed(job: Job, pause: Pause, now: float) -> Job:
    """The job goes on. The time that it was stopped is neither lost by a move nor taken from what a move has for its
    verdict, and no work was done in it that could be compared."""
    stopped, state = now - pause.since, replace(job.state, pause=None)
    migration, interruption, there = state.migration, state.interruption, state.account.counterfactual
    if migration is not None:
        running_at = None if migration.running_at is None else migration.running_at + stopped
        migration = replace(migration, phase_since=migration.phase_since + stopped, running_at=running_at)
    if interruption is not None:
        since = interruption.since + now - max(pause.since, interruption.since)
        ahead = interruption.counterfactual
        interruption = replace(
            interruption, since=since, counterfactual=None if ahead is None else ahead.later(stopped)
        )
    if there is not None:
        state = replace(state, account=replace(state.account, counterfactual=there.later(stopped)))
    return job.with_state(replace(state, migration=migration, interruption=interruption))


def _runs(job: Job) -> bool:
    child = job.child
    return child is not None and child.running > 0


def _set(job: Job, pause: Pause | None) -> Job:
    return job.with_state(replace(job.state, pause=pause))
