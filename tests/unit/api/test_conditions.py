"""How a condition changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition, set_conditions
from rightpool.api.wording import MESSAGE

T0 = 1_772_366_400.0
T1 = T0 + 300.0
RUNNING = Condition(ConditionType.PLACED, "True", Reason.RUNNING, "8 chips on a10g", 3)


def test_a_new_condition_gets_the_time() -> None:
    conditions = set_conditions([], [RUNNING], T0)
    assert conditions == (replace(RUNNING, last_transition_time=T0),)


def test_nothing_changed_is_the_same() -> None:
    conditions = set_conditions([], [RUNNING], T0)
    assert set_conditions(conditions, [RUNNING], T1) == conditions


def test_another_message_keeps_the_time() -> None:
    conditions = set_conditions([], [RUNNING], T0)
    changed = set_conditions(conditions, [replace(RUNNING, message="16 chips on a10g")], T1)
    assert changed == (replace(RUNNING, message="16 chips on a10g", last_transition_time=T0),)
    assert conditions == (replace(RUNNING, last_transition_time=T0),), "the argument is left as it was"


def test_a_changed_status_updates_the_transition_time() -> None:
    conditions = set_conditions([], [RUNNING], T0)
    flipped = replace(RUNNING, status="Unknown", reason=Reason.STARTING)
    assert set_conditions(conditions, [flipped], T1) == (replace(flipped, last_transition_time=T1),)


def test_other_conditions_stay_where_they_are() -> None:
    profiled = Condition(ConditionType.PROFILED, "False", Reason.WARMING_UP)
    conditions = set_conditions([], [RUNNING, profiled], T0)
    changed = set_conditions(conditions, [replace(RUNNING, status="False", reason=Reason.SUSPENDED)], T1)
    assert [condition.type for condition in changed] == ["Placed", "Profiled"]
    assert changed[1] is conditions[1]


def test_time_has_whole_seconds_as_in_every_other_kind() -> None:
    conditions = set_conditions([], [RUNNING], T0 + 0.999999)
    assert conditions[0].last_transition_time == T0


def test_a_message_that_is_too_long_is_cut() -> None:
    long = replace(RUNNING, message="x" * 40_000)
    conditions = set_conditions([], [long], T0)
    assert len(conditions[0].message) == MESSAGE
    assert set_conditions(conditions, [long], T1) == conditions


def test_find_condition() -> None:
    conditions = set_conditions([], [RUNNING], T0)
    assert find_condition(conditions, ConditionType.PLACED) is conditions[0]
    assert find_condition(conditions, ConditionType.FAILED) is None


@given(st.lists(st.tuples(st.sampled_from(list(ConditionType)), st.sampled_from(["True", "False", "Unknown"]))))
def test_there_is_one_condition_of_a_type_and_its_time_is_that_of_the_last_flip(
    changes: list[tuple[ConditionType, str]],
) -> None:
    conditions: tuple[Condition, ...] = ()
    since: dict[str, float] = {}
    status: dict[str, str] = {}
    for minute, (kind, value) in enumerate(changes):
        now = T0 + 60.0 * minute
        made = Condition(kind, value, Reason.RUNNING, str(minute))  # type: ignore[arg-type]
        conditions = set_conditions(conditions, [made], now)
        if status.get(kind) != value:
            status[kind], since[kind] = value, now
    assert {condition.type: condition.last_transition_time for condition in conditions} == since
    assert len(conditions) == len(since)


@pytest.mark.parametrize("word", [*ConditionType, *Reason])
def test_types_and_reasons_are_camel_case_words(word: str) -> None:
    assert word[0].isupper()
    assert word.isalpha()
