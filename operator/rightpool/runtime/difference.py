"""Whether a new status says anything new.

Measured numbers never stand still. A status that followed them would be written for every job in every cycle, and wake
everything that watches it. So numbers that are there to be read by people are rewritten when they have moved, and what
the state machine lives on always.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

TOLERANCE: Final = 0.05  # relative: below it a reader would not care
SHARE_TOLERANCE: Final = 0.03  # absolute, for shares between 0 and 1
MONEY_TOLERANCE: Final = 0.25  # of spent and saved, which only ever grow
CENT: Final = 0.01

_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*(?:e[-+]?\d+)?%?")
_SHARES: Final = frozenset(
    {
        "chipBusy",
        "computeActive",
        "matrixActive",
        "memoryBandwidth",
        "exposedCommunication",
        "inputWait",
        "scalingEfficiency",
        "savings",
    }
)
# What they are now follows from `asOf` and what an hour costs and saves.
_MONEY: Final = frozenset({"spent", "saved"})
# Said of the cost in other words.
_FOLLOWS: Final = frozenset({"columns"})
_TIMES: Final = frozenset({"measuredAt", "asOf", "window"})


class Difference(IntEnum):
    """NONE: nothing that a reader would care about. MONEY: what was spent or saved has grown as was to be expected.
    COSMETIC: numbers or words moved. STATE: something happened."""

    NONE = 0
    MONEY = 1
    COSMETIC = 2
    STATE = 3


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    """Between two statuses in wire form."""
    worst = Difference.NONE
    for key in {*old, *new}:
        before, after = old.get(key), new.get(key)
        if before == after or key in _FOLLOWS:
            continue
        if key == "conditions":
            found = _conditions(before or (), after or ())
        elif (
            key in ("profile", "cost", "recommendation") and isinstance(before, Mapping) and isinstance(after, Mapping)
        ):
            found = _readings(before, after)
        else:
            found = Difference.STATE
        worst = max(worst, found)
        if worst is Difference.STATE:
            break
    return worst


def _conditions(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Difference:
    before = {condition["type"]: condition for condition in old}
    if len(new) != len(old) or any(condition["type"] not in before for condition in new):
        return Difference.STATE
    worst = Difference.NONE
    for condition in new:
        other = before[condition["type"]]
        if any(condition.get(key) != other.get(key) for key in ("status", "reason", "observedGeneration")):
            return Difference.STATE
        if not alike(str(other.get("message", "")), str(condition.get("message", ""))):
            worst = Difference.COSMETIC
    return worst


def _readings(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    worst = Difference.NONE
    for key in {*old, *new} - _TIMES:
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            worst = max(worst, _readings(before, after))
            continue
        one, two = _float(before), _float(after)
        if one is None or two is None:
            if key == "message" and alike(str(before or ""), str(after or "")):
                continue
            # A field that comes or goes, or a word such as the bottleneck: a new statement, and no state either.
            worst = Difference.COSMETIC if key == "message" or before is None or after is None else Difference.STATE
        elif key in _SHARES:
            if abs(one - two) > SHARE_TOLERANCE:
                worst = max(worst, Difference.COSMETIC)
        elif key in _MONEY:
            if abs(one - two) > max(MONEY_TOLERANCE * max(abs(one), abs(two)), CENT):
                worst = max(worst, Difference.MONEY)
        elif abs(one - two) > TOLERANCE * max(abs(one), abs(two)):
            worst = max(worst, Difference.COSMETIC)
        if worst is Difference.STATE:
            return worst
    return worst


def alike(old: str, new: str, tolerance: float = TOLERANCE) -> bool:
    """The same sentence with about the same numbers. Shares are compared by percentage points, as in fields."""
    if old == new:
        return True
    if _NUMBER.sub("#", old) != _NUMBER.sub("#", new):
        return False
    for before, after in zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True):
        one, two = _float(before.replace(",", "").rstrip("%")), _float(after.replace(",", "").rstrip("%"))
        if one is None or two is None or before.endswith("%") != after.endswith("%"):
            if before != after:
                return False
        elif abs(one - two) > (100.0 * SHARE_TOLERANCE if before.endswith("%") else tolerance * max(one, two)):
            return False
    return True


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except ValueError:
        return None
