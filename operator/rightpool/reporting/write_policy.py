"""When a status is written.

| what has changed | written |
|---|---|
| state: all but what is named below, status and reason of the conditions Placed, Verified, Completed and Failed among it | at once |
| verdicts: status and reason of all other conditions, the bottleneck, the recommendation's words; and text about a fact, such as what the scheduler says of a pod | from the allowance |
| measured numbers, and numbers that messages are made of: when one has moved by more than its tolerance | five minutes after the last write |
| `cost.spent` and `cost.saved`: when one has doubled; `progress.done`: by a quarter | an hour after the last write |
| `summary`, `cost.goodput`, times of measurement, messages of verdicts by themselves | with the next write |

The allowance of a job is ten writes, and another one every minute; a write of state fills it. So what follows from an
event is written step by step, and a verdict that flaps every minute. Over all jobs a cycle makes 500 writes that
only inform, and fewer where the API server is slow: ten thousand at a start would otherwise all be in memory, and what
happens to a job meanwhile would wait behind them, as would the next readings.

This decides on statuses that were made. Whether making one can be worth it is asked before, by `job_step`, of the
verdicts alone (`verdicts.py`): of a crowd whose numbers alone may differ it makes 200 in a cycle. What it says
while measurements are missing after a restart is in `recovery`; and `runtime/act/refusals.py` waits where the
API server did not take it.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from rightpool.api.status import OutlookStatus, ProfileStatus, Recommendation, ServerStatus
from rightpool.api.units import Share
from rightpool.reporting.verdicts import FACTS, verdicts

ALLOWANCE: Final = 10.0
REFILL_SECONDS: Final = 60.0
NUMBERS_SECONDS: Final = 300.0
INFORMING_PER_CYCLE: Final = 500
NEXT_CYCLE: Final = 0.1  # any time that is over by then

RELATIVE_TOLERANCE: Final = 0.05  # below it a reader would not care
SHARE_TOLERANCE: Final = 0.03  # absolute, for shares between 0 and 1
MONEY_FACTOR: Final = 2.0
PROGRESS_FACTOR: Final = 1.25
MONEY_SECONDS: Final = 3600.0
CENT: Final = 0.01

_NUMBERS: Final = ("profile", "cost", "outlook", "recommendation", "server")
_INFORMING: Final = frozenset({"conditions", "summary", "progress", *_NUMBERS})
_SHARES: Final = frozenset[str]().union(
    *(part.names_of(Share) for part in (ProfileStatus, OutlookStatus, Recommendation, ServerStatus))
)
_MONEY: Final = ("spent", "saved")
# Said with the next write: they follow from the clock, or from the numbers and words beside them.
_SILENT: Final = frozenset(
    {"measuredAt", "finishAt", "window", "asOf", "message", "sd", "basis", "shared", *_MONEY}
    | {"unpricedSeconds", "chipSeconds", "goodput", "counterfactual"}
)

Body = Mapping[str, Any]
"""A status in wire form."""

ShownValues = Mapping[str, float | str]
"""Numbers and words that the messages of a status are made of, and that the status has in no field of their own; empty
where nothing is measured to compare with."""


class _Change(IntEnum):
    """What differs between two parts of a status, the most urgent last."""

    NONE = 0
    NUMBER = 1  # a number has moved by more than its tolerance
    WORD = 2  # a word is another one, or a field came or went


@dataclass(slots=True)
class _Written:
    """What the policy remembers of one job."""

    allowance: float
    """Writes of verdicts that are left, as of `at`."""

    at: float
    """Unix seconds of the last write; where none is known of, of the first look."""

    shown: ShownValues
    """Of the stored status."""


@dataclass(slots=True)
class WritePolicy:
    """One for the life of a process; used by the loop's thread alone. Jobs are named by uid.

    After a restart nothing is remembered. What a job's messages are made of then is taken for what the stored ones were
    made of, so that no status is written for the restart alone.
    """

    _written: dict[str, _Written] = field(default_factory=dict)
    _left: int = INFORMING_PER_CYCLE

    def begin(self) -> None:
        """A new cycle."""
        self._left = INFORMING_PER_CYCLE

    @property
    def exhausted(self) -> bool:
        """Whether nothing more is written in this cycle that only informs."""
        return self._left <= 0

    def exhaust(self) -> None:
        """Write nothing more in this cycle that only informs."""
        self._left = 0

    def informed(self) -> None:
        """A write that only informs was made by who does not ask whether to."""
        self._left -= 1

    def numbers_wait(self, uid: str, now: float) -> float:
        """Seconds until a status is written in which numbers alone have moved."""
        known = self._written.setdefault(uid, _Written(ALLOWANCE, now, {}))
        return max(0.0, known.at + NUMBERS_SECONDS - now)

    def wait(self, uid: str, stored: Body, made: Body, shown: ShownValues, now: float) -> float | None:
        """Seconds until the status that was made is written, 0 for now; None where it says nothing new.

        What is written now counts as written.
        """
        known = self._written.setdefault(uid, _Written(ALLOWANCE, now, shown))
        known.shown = known.shown or shown
        if _state(stored) != _state(made):
            self._written[uid] = _Written(ALLOWANCE, now, shown)
            return 0.0
        wait = self._inform(known, stored, made, shown, now)
        if wait is None or wait > 0.0:
            return wait
        if self.exhausted:
            return NEXT_CYCLE
        self._left -= 1
        self._written[uid] = _Written(max(self._allowance(known, now) - 1.0, 0.0), now, shown)
        return 0.0

    def _inform(self, known: _Written, stored: Body, made: Body, shown: ShownValues, now: float) -> float | None:
        """The same of what is no state, as far as the job alone is concerned."""
        age, change = now - known.at, _change(stored, made)
        if shown:
            change = max(change, _moved(known.shown, shown))
        if change is _Change.WORD:
            return max(0.0, (1.0 - self._allowance(known, now)) * REFILL_SECONDS)
        if change is _Change.NUMBER:
            return max(0.0, NUMBERS_SECONDS - age)
        if _amount_doubled(stored.get("cost") or {}, made.get("cost") or {}) or _progressed(stored, made):
            return max(0.0, MONEY_SECONDS - age)
        return None

    @staticmethod
    def _allowance(known: _Written, now: float) -> float:
        return min(ALLOWANCE, known.allowance + max(now - known.at, 0.0) / REFILL_SECONDS)

    def forget(self, uids: Collection[str]) -> None:
        """Jobs that do not exist any more."""
        for uid in uids:
            self._written.pop(uid, None)


def _state(body: Body) -> dict[str, Any]:
    """What is written at once where it changes."""
    state = {key: value for key, value in body.items() if key not in _INFORMING}
    state["conditions"] = {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in body.get("conditions") or ()
        if condition["type"] in FACTS
    }
    return state


def _change(stored: Body, made: Body) -> _Change:
    """Of verdicts and measured numbers."""
    if verdicts(stored) != verdicts(made):
        return _Change.WORD
    return max(_moved(stored.get(part) or {}, made.get(part) or {}) for part in _NUMBERS)


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> _Change:
    worst = _Change.NONE
    for key in (before.keys() | after.keys()) - _SILENT:
        one, two = before.get(key), after.get(key)
        if one == two:
            continue
        if key == "placement":
            return _Change.WORD
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            worst = max(worst, _moved(one, two))
            continue
        old, new = _number(one), _number(two)
        if old is None or new is None:
            return _Change.WORD
        tolerance = SHARE_TOLERANCE if key in _SHARES else RELATIVE_TOLERANCE * max(abs(old), abs(new))
        if abs(old - new) > tolerance:
            worst = max(worst, _Change.NUMBER)
    return worst


def _amount_doubled(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether what was spent or saved has doubled."""
    for key in _MONEY:
        old, new = _number(before.get(key)) or 0.0, _number(after.get(key)) or 0.0
        if abs(new - old) > max((MONEY_FACTOR - 1.0) * abs(old), CENT):
            return True
    return False


def _progressed(stored: Body, made: Body) -> bool:
    """Whether so much was done that it would be a loss if it were forgotten."""
    old, new = ((body.get("progress") or {}).get("done") or 0 for body in (stored, made))
    return new > PROGRESS_FACTOR * old


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except ValueError:
        return None
