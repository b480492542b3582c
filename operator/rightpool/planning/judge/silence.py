"""Silence: whether a program that does nothing for a while pauses, as where it evaluates, or hangs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rightpool.api.value_object import value_object
from rightpool.api.variation import MAX_RECENT
from rightpool.planning.judge.series import FEWEST_WINDOWS
from rightpool.profiles.silence import silent_for, silent_windows, working
from rightpool.profiles.steadiness import SPANS

LONGEST_SILENCE_SECONDS: Final = 3600.0
"""A program that does nothing may evaluate. After so many seconds, and an hour of windows, it hangs."""


@value_object
class Silence:
    """In how many of the newest windows at a place a program did nothing."""

    windows: int
    """All of them, silent or not."""
    silent: int
    """The silent ones."""
    newest: int
    """Silent ones since it last did anything."""
    working: int
    """Those in which it worked all the time."""
    longest: int
    """So many in which it may do nothing."""
    usual: bool
    """Whether most windows before were silent: its work is counted now and then."""

    @property
    def hangs(self) -> bool:
        """Whether it does nothing, for longer than it may."""
        return self.newest >= self.longest

    @property
    def hangs_again(self) -> bool:
        """Whether it was silent for longer in all than it may be: it hangs again and again."""
        return self.silent >= self.longest

    @property
    def mostly(self) -> bool:
        """Whether the windows tell little of how fast it works: most are silent, and not so many that it hangs, nor was
        it like that before. Of short windows few are kept of before an evaluation."""
        return not self.usual and 2 * self.silent > self.windows and not self.hangs_again

    @property
    def paused(self) -> bool:
        """Whether it is silent, or was but for a few of these windows, and for no longer than it may be."""
        few = self.newest > 0 or self.working < FEWEST_WINDOWS
        return few and 0 < self.silent < self.longest


def silence(
    recent: Sequence[float], window: float, usual: float | None = None, before: Sequence[float] = ()
) -> Silence:
    """The silence in these windows, of so many seconds. usual: units a second before; before: the windows of then."""
    most = usual or math.inf
    return Silence(
        windows=len(recent),
        silent=silent_windows(recent, most),
        newest=silent_for(recent, most),
        working=len(working(recent, most)),
        longest=longest_silence(window, before),
        usual=_counts_seldom(before),
    )


def longest_silence(window: float, before: Sequence[float] = ()) -> int:
    """Windows of so many seconds in which a program may do nothing, as many as are kept at most. before: windows before
    the move."""
    if _counts_seldom(before):
        return MAX_RECENT
    return min(max(SPANS[-1], math.ceil(LONGEST_SILENCE_SECONDS / window)), MAX_RECENT)


def _counts_seldom(rates: Sequence[float]) -> bool:
    """Whether most windows are silent: work is counted now and then, and hours without a count are usual."""
    return 2 * silent_windows(rates) > len(rates)
