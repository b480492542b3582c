"""Prices: what a chip of each pool is worth beyond its list price, so that what jobs would take is what there is.

By subgradients: a pool of which more is wanted than there is becomes dearer. What all jobs gain at any prices, with
what the chips cost them, is an upper bound on what any plan is worth; the lowest bound found tells how far a plan may
be from the best.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from rightpool.planning.allocate.program import AllocationProgram
from rightpool.planning.allocate.repair import repaired
from rightpool.prediction.columns import Floats, Ints

_ROUNDS: Final = 150
_REPAIRED: Final = (0, 10, 40, 90)  # rounds after which a plan is made of the prices
_PATIENCE: Final = 5
_SMALLEST_STEP: Final = 1e-2
CLOSE: Final = 1e-4
"""A plan this close to the bound, as a share of its worth, is taken for the best."""


class Priced(NamedTuple):
    """Prices, and the plan that they give."""

    prices: Floats
    """Dollars a chip-hour of each pool."""
    bound: float
    """No plan is worth more, dollars an hour."""
    choice: Ints
    """The best plan found."""


def priced(program: AllocationProgram, prices: Floats) -> Priced:
    """From these prices on, those of the last plan where there was one."""
    free = np.zeros(len(program.chips))
    choice = program.favourites(free).choice
    if program.fits(choice):
        return Priced(free, program.value(choice), choice)
    choice = program.here
    best, bound, current, step, stalled = prices, np.inf, prices, 1.0, 0
    for number in range(_ROUNDS):
        wanted, gain = program.favourites(current)
        dual = float(gain.sum() + current @ program.chips)
        if dual < bound:
            stalled = stalled + 1 if dual > bound * (1.0 - CLOSE / 10.0) else 0
            bound, best = dual, current
        else:
            stalled += 1
        if number in _REPAIRED:
            choice = _better(program, choice, repaired(program, best))
        if stalled >= _PATIENCE:
            step, stalled = step / 2.0, 0
            if current is not best:
                current = best
                continue
        value = program.value(choice)
        excess = program.used(wanted) - program.chips
        excess = np.where((current > 0.0) | (excess > 0.0), excess, 0.0)
        squared = float(excess @ excess)
        if squared == 0.0 or step < _SMALLEST_STEP or bound - value <= CLOSE * abs(value):
            break
        current = np.maximum(current + step * max(dual - value, 0.0) / squared * excess, 0.0)
    return Priced(best, bound, _better(program, choice, repaired(program, best)))


def _better(program: AllocationProgram, one: Ints, other: Ints) -> Ints:
    return other if program.value(other) > program.value(one) else one
