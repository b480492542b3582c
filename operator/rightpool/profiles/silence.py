"""Silence: windows in which a program does nothing, as where it evaluates or saves for half an hour.

What it does between them says how fast a place is. Until such windows are over nothing tells them from a program that
hangs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

# A window with less than this share of the largest one is silent.
_NOTHING: Final = 0.02


def silent_for(rates: Sequence[float]) -> int:
    """How many of the newest windows are silent."""
    return next((count for count, silent in enumerate(reversed(_silent(rates))) if not silent), len(rates))


def silent_windows(rates: Sequence[float]) -> int:
    """How many windows are silent."""
    return sum(_silent(rates))


def working(rates: Sequence[float]) -> tuple[float, ...]:
    """The windows without those that are silent, and without their neighbours, which may be so in part."""
    silent = _silent(rates)
    return tuple(rate for number, rate in enumerate(rates) if not any(silent[max(number - 1, 0) : number + 2]))


def doubt_of_pauses(rates: Sequence[float]) -> float:
    """Standard deviation of the log of a longer mean against that of these windows, by how often they pause: of as many
    pauses as were seen their number is known to its root. 0 where there was none, or nothing but."""
    silent = _silent(rates)
    pauses = sum(now and not before for before, now in pairwise([False, *silent]))
    works = len(silent) - sum(silent)
    return sum(silent) / works / math.sqrt(pauses) if pauses and works else 0.0


def _silent(rates: Sequence[float]) -> list[bool]:
    least = _NOTHING * max(rates, default=0.0)
    return [rate <= least for rate in rates]
