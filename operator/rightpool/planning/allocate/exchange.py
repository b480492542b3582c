"""Exchange: an integer program over what the prices leave open, solved by HiGHS.

An option that falls short of its job's best at the prices by more than the plan falls short of the bound is part of no
better plan. What is left open is little, and solved exactly.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from rightpool.planning.allocate.market import NOTHING
from rightpool.planning.allocate.prices import CLOSE, Priced
from rightpool.planning.allocate.program import AllocationProgram
from rightpool.prediction.columns import Floats, Ints

MOST_OPTIONS: Final = 3000
"""Those that fall short least, where more are open."""
# Of the search. There is no limit of time: a plan must not depend on how busy the machine is.
_NODES: Final = 200


def exchanged(program: AllocationProgram, found: Priced) -> Ints:
    """The plan, or a better one."""
    value = program.value(found.choice)
    gap = found.bound - value
    if gap <= CLOSE * abs(value):
        return found.choice
    net = program.worth - found.prices[program.pool] * program.size
    _, gain = program.favourites(found.prices)
    columns = _open(program, found.choice, gain[program.job] - net, gap + 1e-9 * abs(value))
    count = np.bincount(program.job[columns], minlength=program.jobs) + (~program.keeps & (gain <= gap))
    jobs = np.flatnonzero(count > 1)
    columns = columns[count[program.job[columns]] > 1]
    # Who has one option left has it already.
    fixed = found.choice.copy()
    fixed[jobs] = NOTHING
    made = _solved(program, jobs, columns, program.chips - program.used(fixed)) if len(jobs) else None
    if made is None:
        return found.choice
    fixed[program.job[made]] = made
    better = program.fits(fixed) and bool((fixed[program.keeps] != NOTHING).all())
    return fixed if better and program.value(fixed) > value else found.choice


def _open(program: AllocationProgram, choice: Ints, short: Floats, gap: float) -> Ints:
    """The options that a better plan may have, those of the plan included. short: of each option, what it falls short
    of its job's best at the prices."""
    open_ = short <= gap
    if np.count_nonzero(open_) > MOST_OPTIONS:
        closest = np.lexsort((np.arange(len(short)), short))[:MOST_OPTIONS]
        open_ = np.zeros(len(short), dtype=np.bool_)
        open_[closest] = True
    open_[choice[choice != NOTHING]] = True
    return np.flatnonzero(open_)


def _solved(program: AllocationProgram, jobs: Ints, columns: Ints, free: Floats) -> Ints | None:
    """The options chosen; None where no solution was found, or nothing is installed that finds one."""
    # It takes half a second and 35 MB, and most plans do without.
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csc_matrix
    except ImportError:
        return None
    count, pools = len(columns), np.unique(program.pool[columns])
    row = np.searchsorted(jobs, program.job[columns])
    at = len(jobs) + np.searchsorted(pools, program.pool[columns])
    matrix = csc_matrix(
        (
            np.concatenate([np.ones(count), program.size[columns]]),
            (np.concatenate([row, at]), np.tile(np.arange(count), 2)),
        ),
        shape=(len(jobs) + len(pools), count),
    )
    least = np.concatenate([program.keeps[jobs].astype(np.float64), np.full(len(pools), -np.inf)])
    most = np.concatenate([np.ones(len(jobs)), free[pools]])
    worth = program.worth[columns]
    with _without_stdout():
        solution = milp(
            -worth / max(float(np.abs(worth).max()), 1e-12),
            constraints=LinearConstraint(matrix, least, most),
            integrality=np.ones(count),
            bounds=Bounds(0.0, 1.0),
            options={"mip_rel_gap": CLOSE, "node_limit": _NODES},
        )
    if solution.x is None:
        return None
    made: Ints = columns[np.asarray(solution.x) > 0.5]
    return made


@contextmanager
def _without_stdout() -> Iterator[None]:
    """HiGHS up to 1.12 prints a line wherever it repairs a solution, whatever its options say
    (ERGO-Code/HiGHS issue 2783), in the midst of what a command prints for programs to read."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # C keeps what it prints until then
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
