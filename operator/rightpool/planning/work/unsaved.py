"""Moves that were given up because no save came: the last entries of a ledger, of which a repeated one is kept once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import MAX_MESSAGES, LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.saving import saved_since, saves_when_asked, waited_for_save


def unsaved(history: Sequence[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """The last entries that were given up because no save came, with nothing else after or between them."""
    return tuple(takewhile(_lacked_save, reversed(history)))[::-1]


def late_save(job: Job, now: float) -> float | None:
    """Unix seconds of the save that came after it was given up, so shortly ago that little is to be done again: no
    longer than a save is waited for. None where there is none, or saves come by themselves."""
    history = job.state.history
    last = history[-1] if history else None
    if last is None or last.outcome is not Outcome.HELD or last.reason != Reason.CHECKPOINT_TIMEOUT:
        return None
    saved = saved_since(job, last.finished_at, before=last.finished_at)
    if saved is None or not saves_when_asked(job) or waited_for_save(job, saved, now):
        return None
    return saved


def appended(history: Sequence[LedgerEntry], entry: LedgerEntry) -> tuple[LedgerEntry, ...]:
    """The ledger with one more entry; older ones lose their messages.

    One of the last holds takes the place of an earlier one that tried the same, and counts its attempts: a program that
    never saves must not push out of the ledger what moves have shown.
    """
    run = unsaved((*history, entry))[:-1] if entry.outcome is Outcome.HELD else ()
    same = next((held for held in run if _tried(held) == _tried(entry)), None)
    if same is not None:
        history = tuple(kept for kept in history if kept is not same)
        entry = replace(entry, attempts=same.attempts + entry.attempts)
    silent = max(len(history) - MAX_MESSAGES + 1, 0)
    brief = tuple(replace(old, message="") if old.message else old for old in history[:silent])
    return (*brief, *history[silent:], entry)


def _lacked_save(entry: LedgerEntry) -> bool:
    """On the way back from a move, a program that fails in its save does so again when it is asked for the next one."""
    if entry.outcome is Outcome.HELD:
        return entry.reason in (Reason.CHECKPOINT_TIMEOUT, Reason.SAVE_FAILED)
    return entry.outcome is Outcome.FAILED and entry.reason == Reason.SAVE_FAILED


def _tried(entry: LedgerEntry) -> tuple[Outcome, str, Action, Placement, Placement]:
    return entry.outcome, entry.reason, entry.action, entry.source, entry.target
