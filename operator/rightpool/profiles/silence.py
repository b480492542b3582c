"""Silence: windows in which a program does nothing, as where it evaluates or saves for half an hour.

What it does between them says how fast a place is. Until such windows are over nothing tells them from a program that
hangs.

usual: units a second that the job did elsewhere, where that is known. One window in which it did far more, as where a
counter jumps, makes no others silent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

NOTHING: Final = 0.02
"""A window with less than this share of the largest one is silent."""


def silent_for(rates: Sequence[float], usual: float = math.inf) -> int:
    """How many of the newest windows are silent."""
    return next((count for count, silent in enumerate(reversed(_silent(rates, usual))) if not silent), len(rates))


def silent_windows(rates: Sequence[float], usual: float = math.inf) -> int:
    """How many windows are silent."""
    return sum(_silent(rates, usual))


def working(rates: Sequence[float], usual: float = math.inf) -> tuple[float, ...]:
    """The windows without those that are silent, and without their neighbours, which may be so in part."""
    silent = _silent(rates, usual)
    return tuple(rate for number, rate in enumerate(rates) if not any(silent[max(number - 1, 0) : number + 2]))


def doubt_of_pauses(rates: Sequence[float]) -> float:
    """Standard deviation of the log of a longer mean against that of these windows, by how often they pause: programs
    pause at intervals, so that their number is known to one. 0 where there was none, or nothing but."""
    silent = _silent(rates)
    if True not in silent:
        return 0.0
    pauses = sum(now and not before for before, now in pairwise([False, *silent]))
    works = len(silent) - sum(silent)
    return sum(silent) / works / pauses if pauses and works else 0.0


def _silent(rates: Sequence[float], usual: float = math.inf) -> list[bool]:
    least = NOTHING * min(max(rates, default=0.0), usual)
    return [rate <= least for rate in rates]
