"""The ledger of a job that does not save: what was tried stays in it, each once, and no attempt is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import hypothesis.strategies as st
from hypothesis import given

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.planning.work.unsaved import appended, unsaved

HERE: Final = Placement("a100", 8, 1)
GOOD: Final = Outcome.VERIFIED


def entry(number: int, pool: str, outcome: Outcome = Outcome.HELD, action: Action = Action.MOVE) -> LedgerEntry:
    reason = Reason.CHECKPOINT_TIMEOUT if outcome is Outcome.HELD else Reason.DELIVERED
    return LedgerEntry(f"d-{number}", action, HERE, Placement(pool, 8, 1), 0.0, float(number), outcome, reason)


def ledger(*entries: LedgerEntry) -> tuple[LedgerEntry, ...]:
    history: tuple[LedgerEntry, ...] = ()
    for each in entries:
        history = appended(history, each)
    return history


def counted(history: tuple[LedgerEntry, ...]) -> list[tuple[str, str, int]]:
    return [(each.id, each.target.pool, each.attempts) for each in history]


def test_the_newest_say_why() -> None:
    moves = [replace(entry(number, "l4", GOOD), message=f"because of {number}") for number in range(5)]
    assert [each.message for each in ledger(*moves)] == ["", "", "", "because of 3", "because of 4"]


def test_the_same_is_kept_once() -> None:
    history = ledger(entry(1, "l4", GOOD), entry(2, "a10g"), entry(3, "a10g"), entry(4, "a10g"))
    assert counted(history) == [("d-1", "l4", 1), ("d-4", "a10g", 3)]


def test_another_target_or_action_is_another_entry() -> None:
    history = ledger(entry(1, "a10g"), entry(2, "l4"), entry(3, "a10g"), entry(4, "l4", action=Action.RESIZE))
    assert counted(history) == [("d-2", "l4", 1), ("d-3", "a10g", 2), ("d-4", "l4", 1)]
    assert sum(each.attempts for each in unsaved(history)) == 4


def test_what_came_between_begins_anew() -> None:
    history = ledger(entry(1, "a10g"), entry(2, "l4", GOOD), entry(3, "a10g"))
    assert counted(history) == [("d-1", "a10g", 1), ("d-2", "l4", 1), ("d-3", "a10g", 1)]
    assert unsaved(history) == history[-1:]


TRIED = st.tuples(st.sampled_from(["l4", "a10g", "t4"]), st.sampled_from([Outcome.HELD, Outcome.HELD, GOOD]))


@given(st.lists(TRIED, max_size=12))
def test_every_decision_is_an_attempt_of_one_entry(tried: list[tuple[str, Outcome]]) -> None:
    history = ledger(*(entry(number, *each) for number, each in enumerate(tried)))
    assert sum(each.attempts for each in history) == len(tried)
    assert [each.finished_at for each in history] == sorted(each.finished_at for each in history)
    run = [each.target for each in unsaved(history)]
    assert len(run) == len(set(run))
