"""Holds because no save came: the last entries of a ledger, of which a repeated one is kept once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.placement import Placement


def unsaved(history: Sequence[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """The last entries that were held because no save came, with nothing else after or between them."""
    return tuple(takewhile(_held, reversed(history)))[::-1]


def appended(history: Sequence[LedgerEntry], entry: LedgerEntry) -> tuple[LedgerEntry, ...]:
    """The ledger with one more entry. One of the last holds takes the place of an earlier one that tried the same, and
    counts its attempts: a program that never saves must not push out of the ledger what moves have shown."""
    run = unsaved((*history, entry))[:-1]
    same = next((held for held in run if _tried(held) == _tried(entry)), None)
    if same is None:
        return (*history, entry)
    return (*(kept for kept in history if kept is not same), replace(entry, attempts=same.attempts + entry.attempts))


def _held(entry: LedgerEntry) -> bool:
    return entry.outcome is Outcome.HELD and entry.reason == Reason.CHECKPOINT_TIMEOUT


def _tried(entry: LedgerEntry) -> tuple[Action, Placement, Placement]:
    return entry.action, entry.source, entry.target
