"""How much jobs differ in what no data sheet tells: with heavy tails, and in some fleets more than in others.

What is a job's own is a multivariate t with NU degrees of freedom. Its scale is that of the chip model times a spread
of the fleet. A normal distribution would make all intervals as wide as the few jobs need that are far off. The spread
is lognormal about 1 before jobs of the fleet have run anywhere; its posterior follows from what they did on several
kinds of chips.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rightpool.api.estimate import Z80
from rightpool.api.value_object import value_object
from rightpool.prediction.columns import Floats, Ints

NU: Final = 4.0
# The 90th percentile of Student's t with NU degrees of freedom over that of a normal distribution: the standard
# deviation whose 80% interval is that of the t.
TAILS_SD: Final = 1.5332 / Z80

_SPREADS: Final = np.exp(np.linspace(-1.5, 1.5, 31))
_USUAL: Final = 15  # of these, 1


@value_object
class Misfit:
    """What some jobs on the same chips are off by, at each spread that a fleet may have (first axis)."""

    squares: Floats
    """Sum of squares in units of what is expected; a column a job."""
    volume: Floats
    """Log of the determinant of what is expected."""
    dimensions: int
    """Chips less one: a job's size is its own."""

    @classmethod
    def of(cls, rest: Floats, own: Floats, doubt: Floats, noise: float) -> "Misfit":
        """rest: log rates less what is common to jobs, a row a job. own: covariance of what is a usual job's own.
        doubt: covariance of what is common. noise: variance of each rate."""
        size = len(own)
        centred = np.eye(size) - 1.0 / size
        values, vectors = np.linalg.eigh(centred @ own @ centred)
        values, vectors = np.maximum(values[1:], 1e-12), vectors[:, 1:]
        squares = (rest @ vectors) ** 2 + np.einsum("ij,ik,kj->j", vectors, doubt, vectors)
        expected = _SPREADS[:, np.newaxis] ** 2 * values + noise
        return cls((1.0 / expected) @ squares.T, np.log(expected).sum(axis=1), size - 1)

    def usual(self) -> Floats:
        """The squares at a spread of 1, a number a job."""
        squares: Floats = self.squares[_USUAL]
        return squares


def fleet_spread(misfits: Sequence[Misfit], fleets: float) -> float:
    """Root of the mean square of what a fleet's spread may be. fleets: sd of its log before anything was seen."""
    logs = -0.5 * (np.log(_SPREADS) / max(fleets, 1e-6)) ** 2
    for one in misfits:
        tails = 0.5 * (NU + one.dimensions) * np.log1p(one.squares / NU)
        logs = logs - tails.sum(axis=1) - 0.5 * one.squares.shape[1] * one.volume
    chance = np.exp(logs - logs.max())
    return float(np.sqrt((chance * _SPREADS**2).sum() / chance.sum()))


def oddity(squares: Floats, dimensions: Ints) -> Floats:
    """How much more than usual single jobs differ, as factors, given their sums of squares at the fleet's spread."""
    odd: Floats = np.sqrt((NU + squares) / (NU + dimensions))
    return odd
