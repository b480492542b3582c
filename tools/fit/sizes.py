"""Fits what links and bytes do not tell of sizes, on published throughput, by the operator's own predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
from scipy.optimize import minimize

from benchmarks.scored import Scored
from benchmarks.size_cases import SizeCase, blind, two_sizes
from rightpool.prediction.size_scales import SizeScales
from rightpool.prediction.spread import NU, TAILS_SD
from rightpool.prediction.step_model import StepModelPredictor
from tools.fit.scaling import Scaling

START = SizeScales(slope=0.05, seen=0.05)
# Of predictions; more of them no longer move the second digit.
EVALUATIONS = 300
# Scales are within this factor of where they start: some published rates are erratic, and a fit that follows them would
# take what a job itself has shown at another size for noise.
WITHIN = 2.0


def fitted_sizes(scalings: Sequence[Scaling]) -> SizeScales:
    """The scales under which what was measured is the likeliest, to two digits.

    Jobs have heavy tails, so this is the likelihood of a t with the 80% intervals of the predictions. Each case counts
    as much as any other, however many pairs it has.
    """
    start = np.log(astuple(START))
    cases = [case for case in size_cases(scalings) if case.truths]

    def loss(logs: np.ndarray) -> float:
        if np.abs(logs - start).max() > np.log(WITHIN):
            return np.inf
        predictor = StepModelPredictor(sizes=SizeScales(*np.exp(logs).tolist()))
        return sum(_unlikely(case.scored(predictor)) for case in cases)

    corners = np.vstack((start, start + 0.5 * np.eye(len(start))))
    options = {"maxfev": EVALUATIONS, "initial_simplex": corners, "xatol": 0.01, "fatol": 1e-4}
    best = minimize(loss, start, method="Nelder-Mead", options=options)
    return SizeScales(*(float(f"{value:.2g}") for value in np.exp(best.x)))


def size_cases(scalings: Sequence[Scaling]) -> list[SizeCase]:
    """What is asked: within a node and across, from two sizes that were seen, and from one chip."""
    return [two_sizes(scalings, False), two_sizes(scalings, True), blind(scalings), blind(scalings, (2, 4))]


def _unlikely(scored: Sequence[Scored]) -> float:
    """Mean of minus the log density, constants left out."""
    off = np.array([one.log - one.truth for one in scored])
    sd = np.array([one.sd for one in scored]) / TAILS_SD
    return float(np.mean(np.log(sd) + 0.5 * (NU + 1.0) * np.log1p((off / sd) ** 2 / NU)))
