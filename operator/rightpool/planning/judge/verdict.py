"""Verdict: whether to stay at a place or to go back, by a Difference. Rules are asked in order, until one answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from rightpool.api.estimate import Z80
from rightpool.api.variation import Variation
from rightpool.planning.judge.difference import Difference
from rightpool.planning.judge.series import FEWEST_WINDOWS, MOST_WINDOWS
from rightpool.profiles.steadiness import doubt_of_ratio, quantile_of_t

# Less than this is never called worse or better, however quiet the program is.
NOISE_FLOOR: Final = 0.03
# It is worse by so many standard deviations of what two spans differ by themselves: Student's t at the probability of
# this z, 0.5%. It is looked at with every window, so that less would undo too many right ones.
UNDONE_Z = 2.58
# The last time that it is looked at, 40%: what is likely worse is not kept for want of proof.
LIKELY_Z = 0.25
# It is called better, and is not looked at any longer, at 10%.
BETTER_Z: Final = Z80
# No better and no worse: not looked at any longer where it is worse by more than this with less than 10%.
TOLERATED: Final = 0.05


class Verdict(StrEnum):
    """How one place compares with another."""

    BETTER = "Better"
    SAME = "Same"  # no worse beyond noise: going back would only cost again
    OPEN = "Open"  # another window may say otherwise
    WORSE = "Worse"
    DEARER = "Dearer"  # it was to be faster, is not, and costs more
    IDLE = "Idle"  # the program does nothing there

    @property
    def undoes(self) -> bool:
        """Whether to go back."""
        return self in (Verdict.WORSE, Verdict.DEARER, Verdict.IDLE)


Rule = Callable[[Difference], Verdict | None]
"""None: the next one is asked."""


def tolerance(difference: Difference) -> float:
    """From what logarithm on it is called worse. A few windows that are alike do not say that the program has no
    neighbours: what was seen of it before counts too."""
    z = LIKELY_Z if difference.last else UNDONE_Z
    by_itself = quantile_of_t(z, difference.freedom) * difference.sd
    usual = quantile_of_t(z, difference.usual_freedom) * difference.usual_sd
    return max(NOISE_FLOOR, max(by_itself, usual) * math.sqrt(difference.weight))


def _noise(difference: Difference, weight: float = 1.0) -> float:
    return max(NOISE_FLOOR, quantile_of_t(BETTER_Z, difference.freedom) * difference.sd * math.sqrt(weight))


def _is_better(difference: Difference) -> bool:
    return difference.likely < -_noise(difference, difference.weight)


def _at_most(difference: Difference) -> float:
    """What was measured is hardly more than this, whatever was promised: a promise does not prove itself."""
    return difference.measured + _noise(difference)


def _goes_on(difference: Difference, rate: float) -> bool:
    """Whether windows enough were seen, and the newest one is slower than this, too. What is over by then is no reason
    to go back: the program may have failed, and loaded again. Where no newer window counts, none is waited for."""
    after = difference.after
    return after.windows >= FEWEST_WINDOWS and (after.newest < rate or (after.closed and not after.starting))


def does_nothing(difference: Difference) -> Verdict | None:
    """It hangs, or has done nothing when the time is over."""
    if difference.silence.hangs:
        return Verdict.IDLE
    if difference.after.mean > 0.0:
        return None
    return Verdict.IDLE if difference.last else Verdict.OPEN


def unpriced(difference: Difference) -> Verdict | None:
    """Dollars count, and a price is unknown."""
    return Verdict.SAME if difference.price is None else None


def paused(difference: Difference) -> Verdict | None:
    """Nothing is settled while a program is silent, nor before it has worked for some windows."""
    return Verdict.OPEN if difference.silence.paused and not difference.last else None


def better(difference: Difference) -> Verdict | None:
    """It is likely better, and surely no worse as it was measured."""
    if not _is_better(difference):
        return None
    sure = _at_most(difference) <= 0.0
    return Verdict.BETTER if difference.last or sure else Verdict.OPEN


def starting(difference: Difference) -> Verdict | None:
    """What a program does at first wherever it starts says nothing against the place."""
    return Verdict.OPEN if difference.after.starting and not difference.last else None


def worse(difference: Difference) -> Verdict | None:
    """It is worse than what two spans differ by themselves."""
    if difference.likely <= tolerance(difference):
        return None
    return Verdict.WORSE if difference.last or _goes_on(difference, difference.even) else Verdict.OPEN


def dearer(difference: Difference) -> Verdict | None:
    """The same for more money is a loss, once it is unlikely to be faster by more than is tolerated."""
    if difference.dollars is None:
        return None
    if difference.dollars > tolerance(difference):
        surely = difference.measured - _noise(difference) >= -math.log1p(TOLERATED)
        goes_on = _goes_on(difference, difference.even * (1.0 + TOLERATED))
        return Verdict.DEARER if difference.last or (surely and goes_on) else Verdict.OPEN
    # What seems dearer and no faster is looked at for as long as it may be: it is not the same.
    return Verdict.OPEN if difference.dollars > math.log1p(TOLERATED) and not difference.last else None


def same(difference: Difference) -> Verdict | None:
    """It is surely not worse by more than is tolerated."""
    sure = _at_most(difference) <= math.log1p(TOLERATED)
    return Verdict.SAME if difference.last or sure else Verdict.OPEN


def anyway(difference: Difference) -> Verdict | None:
    """It stays, however slow it is. What is much slower in its first window may hang since its first steps."""
    seen = difference.after.windows >= FEWEST_WINDOWS or difference.likely <= tolerance(difference)
    return Verdict.SAME if difference.last or seen else Verdict.OPEN


RULES: Final[tuple[Rule, ...]] = (does_nothing, unpriced, paused, better, starting, worse, same)
"""For less of what counts."""
TO_BE_FASTER: Final[tuple[Rule, ...]] = (does_nothing, paused, better, starting, worse, dearer, same)
"""For less time, whatever it costs."""
TO_STAY: Final[tuple[Rule, ...]] = (does_nothing, unpriced, paused, better, starting, anyway)
"""Going back would only bring about again what it was made for."""


def verdict(difference: Difference, rules: tuple[Rule, ...] = RULES) -> Verdict:
    """What the first rule says that answers."""
    return next((found for rule in rules if (found := rule(difference)) is not None), Verdict.OPEN)


def windows_until_settled(variation: Variation | None, before: int, saving: float) -> int:
    """How many windows of a job that varies like this it takes until a move that delivers is not looked at any longer.

    before: windows of the baseline. saving: share of what the objective minimises that the move saves.
    """
    gain = -math.log1p(-min(max(saving, 0.0), 1.0 - 1e-9))
    for windows in range(1, MOST_WINDOWS):
        sd, freedom = doubt_of_ratio(variation, before, windows)
        if max(NOISE_FLOOR, quantile_of_t(BETTER_Z, freedom) * sd) <= gain + math.log1p(TOLERATED):
            return windows
    return MOST_WINDOWS
