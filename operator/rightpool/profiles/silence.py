"""Silence: windows in which a program does nothing, as where it evaluates or saves for half an hour.

What it does between them says how fast a place is. Until such windows are over nothing tells them from a program that
hangs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# A window with less than this share of the largest one is silent.
_NOTHING: Final = 0.02


def silent_for(rates: Sequence[float]) -> int:
    """How many of the newest windows are silent."""
    least = _NOTHING * max(rates, default=0.0)
    return next((count for count, rate in enumerate(reversed(rates)) if rate > least), len(rates))


def silent_windows(rates: Sequence[float]) -> int:
    """How many windows are silent."""
    least = _NOTHING * max(rates, default=0.0)
    return sum(rate <= least for rate in rates)


def working(rates: Sequence[float]) -> tuple[float, ...]:
    """The windows without those that are silent, and without their neighbours, which may be so in part."""
    least = _NOTHING * max(rates, default=0.0)
    silent = [rate <= least for rate in rates]
    return tuple(rate for number, rate in enumerate(rates) if not any(silent[max(number - 1, 0) : number + 2]))
