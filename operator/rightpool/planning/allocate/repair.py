"""Repair: a plan for which there are chips, from prices at which more may be wanted than there is.

Where a pool is wanted too much, those leave it that lose least by their next choice, and ask for that; who would lose
more by leaving than those there puts them out in turn. So it goes on until all fit (deferred acceptance; Gale and
Shapley, 1962, with what is lost per chip for rank). A second choice that is full by now is none: pools of the same
chips cost the same, and many jobs are as well off in one as in another.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rightpool.planning.allocate.market import NOTHING
from rightpool.planning.allocate.program import AllocationProgram
from rightpool.prediction.columns import Bools, Floats, Ints

_ROUNDS: Final = 200


def repaired(program: AllocationProgram, prices: Floats) -> Ints:
    """Where jobs that have a place do not all find one, all start from what they have."""
    net = program.worth - prices[program.pool] * program.size
    first, gain = program.favourites(prices)
    choice = _accepted(program, net)
    if choice is None:
        choice = program.here.copy()
    left = program.chips - program.used(choice)
    lost = gain - np.where(choice == NOTHING, 0.0, net[choice])
    others = np.flatnonzero((choice != first) | (first == NOTHING))
    for job in others[np.lexsort((others, -lost[others]))].tolist():
        _best(program, job, left, choice)
    return choice


def _accepted(program: AllocationProgram, net: Floats) -> Ints | None:
    """What each job is left with; None where somebody who has to have a place has none, or it takes too long. net:
    what each option is worth beyond the price of its chips."""
    open_ = net.copy()
    for _ in range(_ROUNDS):
        choice, gain = program.best_of(open_)
        if np.isneginf(gain).any():
            return None
        crowded = program.used(choice) > program.chips
        if not crowded.any():
            return choice
        lost = gain - program.second(open_, choice)
        here = np.flatnonzero(choice != NOTHING)
        here = here[crowded[program.pool[choice[here]]]]
        open_[choice[here[_leave(program, choice[here], lost[here])]]] = -np.inf
    return None


def _leave(program: AllocationProgram, options: Ints, lost: Floats) -> Bools:
    """Which of these options their pools are too small for, when those come first whose jobs lose most per chip by
    another. lost: dollars an hour."""
    pool, size = program.pool[options], program.size[options]
    order = np.lexsort((options, -lost / np.maximum(size, 1.0), pool))
    taken = np.cumsum(size[order])
    first = np.searchsorted(pool[order], pool[order], "left")
    taken -= taken[first] - size[order][first]
    leave = np.zeros(len(options), dtype=np.bool_)
    leave[order] = taken > program.chips[pool[order]]
    return leave


def _best(program: AllocationProgram, job: int, free: Floats, choice: Ints) -> None:
    """The job takes what is worth most, of what is free and its own."""
    has = int(choice[job])
    low, high = int(program.first[job]), int(program.first[job + 1])
    if low == high:
        return
    if has != NOTHING:
        free[program.pool[has]] += program.size[has]
    fits = program.size[low:high] <= free[program.pool[low:high]]
    found = np.where(fits, program.worth[low:high], -np.inf)
    at = low + int(found.argmax())
    if found[at - low] > 0.0 or has != NOTHING:
        free[program.pool[at]] -= program.size[at]
        choice[job] = at
