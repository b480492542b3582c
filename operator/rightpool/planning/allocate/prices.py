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
    favourites = program.favourites(np.zeros(len(program.chips)))
    if program.fits(favourites.choice):
        return Priced(np.zeros(len(program.chips)), program.value(favourites.choice), favourites.choice)
    best, bound, step, stalled = prices, np.inf, 1.0, 0
    choice = program.here
    value = program.value(choice)
    current = prices
    for number in range(_ROUNDS):
        wanted, gain = program.favourites(current)
        use = program.used(wanted)
        dual = float(gain.sum() + current @ program.chips)
        if dual < bound - 1e-9 * abs(bound) or number == 0:
            bound, best, stalled = dual, current, 0
            made = repaired(program, current) if number % _PATIENCE == 0 else None
            if made is not None and program.value(made) > value:
                choice, value = made, program.value(made)
        else:
            stalled += 1
            if stalled >= _PATIENCE:
                step, stalled, current = step / 2.0, 0, best
                continue
        excess = use - program.chips
        excess = np.where((current > 0.0) | (excess > 0.0), excess, 0.0)
        squared = float(excess @ excess)
        if squared == 0.0 or step < _SMALLEST_STEP or bound - value <= CLOSE * abs(value):
            break
        current = np.maximum(current + step * max(dual - value, 0.0) / squared * excess, 0.0)
    made = repaired(program, best)
    if program.value(made) > value:
        choice = made
    return Priced(best, bound, choice)
