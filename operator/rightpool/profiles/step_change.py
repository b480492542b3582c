"""A step change: by how much the rate of a job changed at one moment, told from the windows before and after it.

Where the job's noise lasts, the windows next to the moment say more of it than those an hour away: a program that was
slow right before a move is slow right after it. Where noise comes and goes from window to window, they all say the
same. Noise is taken to last for about one of LASTING; for each of them the change is the generalized least squares
estimate (Aitken, 1935), and they count by how likely they make the windows (the marginal likelihood with an unknown
level on either side and an unknown variance). How much the windows vary is told by themselves, beside a weak prior.

Half of the noise is taken to go with the program, and half to stay with the place: see `steadiness.GOES_ALONG`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rightpool.profiles.steadiness import GOES_ALONG, PRIOR_PAIRS, PRIOR_SD

LASTING: Final = (0.0, 2.0, 6.0, 18.0, 54.0)
"""Correlation times of noise, in windows; 0 is white."""
# A window with less than this share of the mean of its side has a pause, as for an evaluation: how often these come is
# told by longer spans, and not by noise of this kind.
_PAUSED: Final = 0.5
# A level is no less than this share of the mean of its side.
_LEAST: Final = 1e-3


@dataclass(frozen=True, slots=True)
class StepChange:
    """How the rate after a moment compares with the rate before it."""

    log: float
    """Logarithm of the ratio."""
    sd: float
    """Standard deviation of that."""
    freedom: float
    """Degrees of freedom of that."""


def step_change(before: Sequence[float], after: Sequence[float], apart: float) -> StepChange | None:
    """The change between two runs of windows, oldest first, of which the second began `apart` windows after the first
    ended. None where nothing was processed on one side, or where there are pauses."""
    early, late = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if any(not np.any(side) or side.min() < _PAUSED * side.mean() for side in (early, late)):
        return None
    by_means = math.log(late.mean()) - math.log(early.mean())
    # Noise is relative to the level of its side.
    rates = np.concatenate((early / early.mean(), late / late.mean()))
    at = np.concatenate((np.arange(-len(early), 0.0), np.arange(len(late)) + apart))
    levels = np.stack((at < 0.0, at >= 0.0), axis=1).astype(np.float64)
    freedom = len(rates) - 2.0 + PRIOR_PAIRS
    found = np.array([_estimate(rates, levels, _correlation(lasting, at), freedom) for lasting in LASTING])
    change, variance, likelihood = found.T
    weight = np.exp(likelihood - likelihood.max())
    weight /= weight.sum()
    mean = float(weight @ change)
    return StepChange(by_means + mean, math.sqrt(weight @ (variance + (change - mean) ** 2)), freedom)


def _estimate(
    rates: NDArray[np.float64], levels: NDArray[np.float64], correlation: NDArray[np.float64], freedom: float
) -> tuple[float, float, float]:
    """The logarithm of the ratio of the two levels, its variance, and the logarithm of the marginal likelihood."""
    root = np.linalg.cholesky(correlation)
    white = np.linalg.solve(root, np.column_stack((levels, rates)))
    columns, seen = white[:, :2], white[:, 2]
    between = np.linalg.inv(columns.T @ columns)
    early, late = level = np.maximum(between @ (columns.T @ seen), _LEAST)
    square = float(np.sum((seen - columns @ level) ** 2)) + PRIOR_PAIRS * PRIOR_SD**2
    variance = between[0, 0] / early**2 + between[1, 1] / late**2 - 2.0 * between[0, 1] / (early * late)
    likelihood = (
        0.5 * math.log(np.linalg.det(between)) - float(np.log(np.diag(root)).sum()) - 0.5 * freedom * math.log(square)
    )
    return math.log(late / early), square / freedom * float(variance), likelihood


def _correlation(lasting: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of windows at these places, of which those at 0 and later are after the change."""
    apart = np.abs(at[:, np.newaxis] - at)
    found = np.exp(-apart / lasting) if lasting else (apart < 0.5).astype(np.float64)
    after = at >= 0.0
    same: NDArray[np.float64] = np.where(after[:, np.newaxis] == after, found, GOES_ALONG * found)
    return same
