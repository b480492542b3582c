"""Repair: a plan for which there are chips, from prices at which more may be wanted than there is."""

from __future__ import annotations

import numpy as np

from rightpool.planning.allocate.market import NOTHING
from rightpool.planning.allocate.program import AllocationProgram
from rightpool.prediction.columns import Floats, Ints


def repaired(program: AllocationProgram, prices: Floats) -> Ints:
    """Who would lose most by a second choice has the first; who comes too late gets the best that is left.

    What a job has is kept for it until its turn, so that it never has to go without.
    """
    net = program.worth - prices[program.pool] * program.size
    first, gain = program.favourites(prices)
    takes = np.flatnonzero(first != NOTHING)
    # Who stays in its pool with fewer chips takes none.
    regret = (gain - program.second(net, first))[takes] / np.maximum(program.size[first[takes]], 1.0)
    order = takes[np.lexsort((takes, -regret))]
    free = (program.chips - program.used(program.here)).tolist()
    choice = program.here.tolist()
    pool, size = program.pool, program.size
    lost: list[int] = []
    wanted = first[order]
    has = program.here[order]
    rows = zip(order.tolist(), wanted.tolist(), pool[wanted].tolist(), size[wanted].tolist(), has.tolist(), strict=True)
    own = list(zip(pool[has].tolist(), size[has].tolist(), strict=True))
    for (job, option, there, chips, before), (left, given) in zip(rows, own, strict=True):
        if before != NOTHING:
            free[left] += given
        if chips <= free[there]:
            free[there] -= chips
            choice[job] = option
        else:
            lost.append(job)
            if before != NOTHING:
                free[left] -= given
    made, left_over = np.array(choice, dtype=np.int64), np.array(free)
    others = np.flatnonzero(first == NOTHING)
    for job in [*lost, *others.tolist()]:
        _best(program, job, left_over, made)
    return made


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
