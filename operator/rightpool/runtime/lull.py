"""A condition that goes back and forth: it is told once in each direction, and then not again until a lull.

Measurements at the edge between two verdicts, or that come late on a busy machine, would otherwise be a write and an
Event every minute, about a job to which nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from rightpool.api.conditions import Condition, ConditionType, Reason

LULL_SECONDS: Final = 300.0

# What follows from measurements. Where a job is, and what becomes of it, is told whenever it changes.
_JUDGED: Final = frozenset(
    {
        ConditionType.PROFILED,
        ConditionType.EFFICIENT,
        ConditionType.COST_EFFICIENT,
        ConditionType.TARGETS_MET,
        ConditionType.MIGRATING,
    }
)
# No matter of this job's measurements.
_FACTS: Final = frozenset({Reason.TELEMETRY_UNAVAILABLE, Reason.NOT_RUNNING, Reason.OVER_BUDGET})

_Verdict = tuple[str, str]  # status and reason


@dataclass(frozen=True, slots=True)
class _Flip:
    """left: the verdict before. again: whether that one had itself been left within the lull."""

    left: _Verdict
    at: float
    again: bool


@dataclass(slots=True)
class Lull:
    """What each job was told last, by uid and condition."""

    _flips: dict[str, dict[str, _Flip]] = field(default_factory=dict)

    def holds(self, uid: str, before: Iterable[Condition], after: Iterable[Condition], now: float) -> bool:
        """Whether all that has changed has been told to and fro within the lull."""
        flips = list(_changed(before, after))
        told = self._flips.get(uid, {})
        return bool(flips) and all(
            kind in _JUDGED
            and old[1] not in _FACTS
            and new[1] not in _FACTS
            and (last := told.get(kind)) is not None
            and last.again
            and last.left == new
            and now - last.at < LULL_SECONDS
            for kind, old, new in flips
        )

    def told(self, uid: str, before: Iterable[Condition], after: Iterable[Condition], now: float) -> None:
        """These conditions are written."""
        for kind, old, new in _changed(before, after):
            if kind not in _JUDGED:
                continue
            flips = self._flips.setdefault(uid, {})
            last = flips.get(kind)
            again = last is not None and last.left == new and now - last.at < LULL_SECONDS
            flips[kind] = _Flip(old, now, again)

    def forget(self, now: float) -> None:
        """What has held still for long enough."""
        self._flips = {
            uid: flips
            for uid, flips in self._flips.items()
            if any(now - flip.at < LULL_SECONDS for flip in flips.values())
        }


def _changed(before: Iterable[Condition], after: Iterable[Condition]) -> Iterator[tuple[str, _Verdict, _Verdict]]:
    known = {condition.type: (condition.status, str(condition.reason)) for condition in before}
    for condition in after:
        old, new = known.pop(condition.type, ("", "")), (condition.status, str(condition.reason))
        if old != new:
            yield condition.type, old, new
    for kind, old in known.items():
        yield kind, old, ("", "")
