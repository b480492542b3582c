"""Events of pools: one where a condition turns, none for what is as it was."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.conditions import Condition, PoolConditionType, Reason
from rightpool.reporting.condition_events import condition_events

POOL = {"apiVersion": "rightpool.dev/v1alpha1", "kind": "AcceleratorPool", "name": "a100", "uid": "u"}
Statement = tuple[str, bool]


def statements(before: Sequence[Condition], after: Sequence[Condition], *, scaled: bool = False) -> list[Statement]:
    return [(event.reason, event.warning) for event in condition_events(POOL, before, after, scaled=scaled)]


def ready(status: str, reason: Reason, message: str = "") -> Condition:
    return Condition.from_dict({"type": "Ready", "status": status, "reason": reason.value, "message": message})


FINE = ready("True", Reason.NODES_READY, "2 nodes with 16 chips")
EMPTY = ready("False", Reason.NO_NODES)
BEGINNING = ready("False", Reason.NODES_NOT_READY, "2 nodes match and none can take pods")
CONTRADICTORY = ready("False", Reason.PRICE_CONTRADICTORY, "remove the spot price")


def test_a_turn_to_the_worse_is_a_warning_with_reason_and_message() -> None:
    [event] = condition_events(POOL, [FINE], [CONTRADICTORY], scaled=False)
    assert (event.reason, event.warning) == ("PriceContradictory", True)
    assert event.note == "remove the spot price"
    assert event.regarding == POOL


def test_what_is_mended_is_said_and_that_a_new_pool_is_well_is_not() -> None:
    assert statements([CONTRADICTORY], [FINE]) == [("NodesReady", False)]
    assert statements([], [FINE]) == []
    assert statements([], [CONTRADICTORY]) == [("PriceContradictory", True)]


def test_another_reason_is_another_statement_and_another_message_is_none() -> None:
    assert statements([EMPTY], [CONTRADICTORY]) == [("PriceContradictory", True)]
    fewer = ready("False", Reason.NODES_NOT_READY, "1 nodes match and none can take pods")
    assert statements([BEGINNING], [fewer]) == []
    assert statements([FINE], [ready("True", Reason.NODES_READY, "3 nodes with 24 chips")]) == []


def test_a_pool_that_an_autoscaler_empties_and_fills_has_no_events_of_that() -> None:
    assert statements([FINE], [EMPTY], scaled=True) == []
    assert statements([EMPTY], [BEGINNING], scaled=True) == []
    assert statements([EMPTY], [FINE], scaled=True) == []
    assert statements([FINE], [BEGINNING], scaled=True) == [("NodesNotReady", True)]
    assert statements([CONTRADICTORY], [EMPTY], scaled=True) == [("NoNodes", False)], "the price is corrected"
    assert statements([BEGINNING], [EMPTY], scaled=True) == []
    assert statements([FINE], [EMPTY]) == [("NoNodes", True)]


def test_the_breaker_says_why_it_opens_and_that_it_closes() -> None:
    closed = Condition("Trusted", "True", Reason.BREAKER_CLOSED.value)
    suspected = Condition("Trusted", "False", Reason.POOL_SUSPECTED.value, "2 of the last 3 moves had to be undone")
    opened = Condition("Trusted", "False", Reason.CIRCUIT_BREAKER_OPEN.value, "4 of the last 5")
    assert statements([closed], [suspected]) == [("PoolSuspected", True)]
    assert statements([suspected], [opened]) == [("CircuitBreakerOpen", True)]
    assert statements([opened], [closed]) == [("BreakerClosed", False)]


def test_a_calibration_that_nobody_can_read_is_a_warning_and_one_that_nobody_made_is_none() -> None:
    unmade = Condition("Calibrated", "Unknown", Reason.NOT_MEASURED.value)
    unreadable = Condition("Calibrated", "Unknown", Reason.CALIBRATION_UNREADABLE.value, "run it again")
    measured = Condition("Calibrated", "True", Reason.MEASURED.value)
    assert statements([], [unmade]) == statements([measured], [unmade]) == statements([unmade], [measured]) == []
    assert statements([measured], [unreadable]) == [("CalibrationUnreadable", True)]
    assert statements([unreadable], [measured]) == [("Measured", False)]


@pytest.mark.parametrize("reason", [Reason.ONE_SOURCE, Reason.CHIP_DECLARED])
def test_what_figures_rest_on_is_no_fault(reason: Reason) -> None:
    assert statements([], [Condition("FiguresVerified", "False", reason.value)]) == []


CONDITIONS = st.builds(
    Condition,
    st.sampled_from([kind.value for kind in PoolConditionType]),
    st.sampled_from(["True", "False", "Unknown"]),
    st.sampled_from([reason.value for reason in (Reason.NODES_READY, Reason.NO_NODES, Reason.CALIBRATION_UNREADABLE)]),
    st.sampled_from(["", "why"]),
)
LISTS = st.lists(CONDITIONS, max_size=5, unique_by=lambda condition: condition.type)


@given(LISTS, LISTS, st.booleans())
def test_at_most_one_event_a_condition_and_none_without_a_turn(
    before: list[Condition], after: list[Condition], scaled: bool
) -> None:
    events = list(condition_events(POOL, before, after, scaled=scaled))
    kinds = [event.subject.partition("=")[0] for event in events]
    assert len(kinds) == len(set(kinds))
    assert statements(after, after, scaled=scaled) == []
    turned = {c.type for c in after} - {
        c.type for c in after for o in before if (o.type, o.status, o.reason) == (c.type, c.status, c.reason)
    }
    assert set(kinds) <= turned
    news = [condition for condition in after if condition.status == "True" and condition.reason == "NodesReady"]
    assert statements([], news, scaled=scaled) == []
