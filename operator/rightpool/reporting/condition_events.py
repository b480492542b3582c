"""What of the conditions of a pool, or of the policy, is worth an Event: what turns bad, and what is good again.

Made from the conditions that are stored and those that replace them, so that the object is the memory: a new process
repeats nothing, and neither does another operator that writes the same object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rightpool.api.conditions import Condition, PoolConditionType, Reason, find_condition
from rightpool.reporting.events import Event, condition_text

# What the figures rest on is not a fault; the condition Calibrated reports a void measurement.
_SILENT: Final = frozenset({PoolConditionType.FIGURES_VERIFIED.value})
# Unknown where somebody has to act.
_UNREADABLE: Final = frozenset({Reason.CALIBRATION_UNREADABLE.value})
# How an autoscaler leaves a pool without work, and how a node of it begins.
_EMPTY: Final = Reason.NO_NODES.value
_BEGINNING: Final = Reason.NODES_NOT_READY.value


def condition_events(
    regarding: Mapping[str, str], before: Iterable[Condition], after: Iterable[Condition], *, scaled: bool
) -> Iterator[Event]:
    """Events for the step from the stored conditions to the next. scaled: an autoscaler may bring nodes.

    Another message is no Event, another reason of what is bad is one. That a new object is well is none.
    """
    stored = tuple(before)
    for condition in after:
        if condition.type in _SILENT:
            continue
        old = find_condition(stored, condition.type)
        if _bad(condition):
            if old is not None and _bad(old) and old.reason == condition.reason:
                continue
            expected = scaled and _expected(old, condition)
            if not expected or (old is not None and _bad(old) and old.reason not in (_EMPTY, _BEGINNING)):
                yield _event(regarding, condition, warning=not expected)
        elif condition.status == "True" and old is not None and _bad(old) and not (scaled and old.reason == _EMPTY):
            yield _event(regarding, condition, warning=False)


def _bad(condition: Condition) -> bool:
    return condition.status == "False" or condition.reason in _UNREADABLE


def _expected(old: Condition | None, condition: Condition) -> bool:
    """Of a pool that an autoscaler fills and empties: that it has no nodes, and that the first one is not ready yet."""
    if condition.reason == _BEGINNING:
        return old is None or old.reason == _EMPTY
    return condition.reason == _EMPTY


def _event(regarding: Mapping[str, str], condition: Condition, *, warning: bool) -> Event:
    subject = f"{condition.type}={condition.reason}"
    return Event(regarding, condition.reason, "Observe", condition_text(condition), warning, subject)
