"""Repair: a plan for which there are chips, from prices at which more may be wanted than there is."""

from __future__ import annotations

import numpy as np

from rightpool.planning.allocate.program import NOTHING, AllocationProgram
from rightpool.prediction.columns import Floats, Ints


def repaired(program: AllocationProgram, prices: Floats) -> Ints:
    """Who would lose most by a second choice has the first; who comes too late gets the best that is left.

    What a job has is kept for it until its turn, so that it never has to go without.
    """
    net = program.worth - prices[program.pool] * program.size
    first, gain = program.favourites(prices)
    takes = first != NOTHING
    second = net.copy()
    second[first[takes]] = -np.inf
    other = np.maximum(program.largest(second), np.where(program.keeps, -np.inf, 0.0))
    regret = np.where(takes, gain - other, -np.inf)
    regret[takes] /= program.size[first[takes]]
    free = program.chips - program.used(program.here)
    choice = program.here.copy()
    order = np.lexsort((np.arange(program.jobs), -regret)).tolist()
    # What those before leave may be what those after them wanted, hence twice.
    for turn in range(2):
        for job in order:
            if turn == 0 and first[job] == NOTHING:
                continue
            _best(
                program,
                job,
                int(first[job]) if turn == 0 else NOTHING,
                net if turn == 0 else program.worth,
                free,
                choice,
            )
    return choice


def _best(program: AllocationProgram, job: int, wanted: int, worth: Floats, free: Floats, choice: Ints) -> None:
    """The job takes what it wants where it fits, else what is worth most, of what is free and its own."""
    has = int(choice[job])
    if has != NOTHING:
        free[program.pool[has]] += program.size[has]
    low, high = int(program.first[job]), int(program.first[job + 1])
    if wanted == NOTHING or program.size[wanted] > free[program.pool[wanted]]:
        fits = program.size[low:high] <= free[program.pool[low:high]]
        found = np.where(fits, worth[low:high], -np.inf)
        at = int(found.argmax()) if high > low else 0
        wanted = NOTHING
        if high > low and np.isfinite(found[at]) and (found[at] > 0.0 or program.keeps[job]):
            wanted = low + at
    if wanted == NOTHING and program.keeps[job]:
        wanted = has
    if wanted != NOTHING:
        free[program.pool[wanted]] -= program.size[wanted]
    choice[job] = wanted
