"""The model by which a job of Sia's predicts the seconds of its steps, fitted to what it has seen (Pollux, OSDI'21)."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, minimize

from rightpool.api.placement import Placement
from rightpool.prediction.columns import Floats, Ints

_TINY = 1e-8
_START = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)


class Seen(NamedTuple):
    """Under which a job has seen its steps."""

    nodes: int
    """That it was on."""
    chips: int
    """Of all nodes."""
    atomic: int
    """Samples of a chip."""


class OwnModel:
    """What a job knows of one kind of chips."""

    __slots__ = ("parameters", "seen")

    def __init__(self) -> None:
        self.seen: dict[Seen, tuple[float, float]] = {}
        self.parameters: tuple[float, ...] = ()

    def learn(self, seen: Seen, step: float, sync: float) -> None:
        """It has seen this."""
        self.seen[seen] = step, sync
        self.parameters = _fitted(tuple(self.seen.items()))

    def goodput(
        self, place: Placement, atomic: Ints, accumulations: Ints, square: float, variance: float, smallest: int
    ) -> Floats:
        """Progress a second, with each of these batches."""
        fixed, each, between, between_more, inside, inside_more, gamma = self.parameters
        compute = fixed + each * atomic
        more = max(place.chips - 2, _TINY)
        if place.replicas > 1:
            sync = between + between_more * more
        else:
            sync = inside + inside_more * more if place.chips > 1 else _TINY + _TINY * more
        seconds = accumulations * compute + np.exp(np.log(compute**gamma + np.float64(sync) ** gamma) / gamma)
        total = place.chips * atomic * (accumulations + 1)
        scale = total / smallest
        noise = variance / scale + square
        useful = np.where(noise > 0, (variance + square) / noise, 1.0)
        found: Floats = total / seconds * useful / scale
        return found


@lru_cache(maxsize=100_000)
def _fitted(seen: tuple[tuple[Seen, tuple[float, float]], ...]) -> tuple[float, ...]:
    nodes, chips, atomic = np.array([key for key, _ in seen], dtype=np.float64).T
    steps = np.array([value for _, value in seen])
    seconds, compute = steps[:, 0], steps[:, 0] - steps[:, 1]
    start, low, high = list(_START), [_TINY] * 6 + [1.0], [np.inf] * 6 + [10.0]
    if len(np.unique(atomic)) == 1:
        start[0] = high[0] = low[0] = float(np.mean(compute)) / 2
    fixed: set[int] = set()
    if not (nodes > 1).any():
        fixed |= {2, 3}
    if not ((nodes == 1) & (chips > 1)).any():
        fixed |= {4, 5}
    if not (chips > 2).any():
        fixed |= {3, 5}
    for number in fixed:
        start[number] = high[number] = low[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = minimize(
            _error,
            start,
            args=(nodes, chips, atomic, np.log(compute), np.log(seconds)),
            jac=True,
            bounds=Bounds(low, high, keep_feasible=True),
            tol=1e-5,
        )
    parameters = found.x.copy()
    if not (nodes > 1).any():
        parameters[2] = max(parameters[2], parameters[4] * 1.1)
        parameters[3] = max(parameters[3], parameters[5] * 1.1)
    return tuple(parameters.tolist())


def _error(
    parameters: Floats, nodes: Floats, chips: Floats, atomic: Floats, log_compute: Floats, log_seconds: Floats
) -> tuple[float, Floats]:
    """How far the model is off, and its slope."""
    fixed, each, between, between_more, inside, inside_more, gamma = parameters
    more = np.maximum(chips - 2.0, _TINY)
    multi, single = nodes > 1, (nodes <= 1) & (chips > 1)
    compute = fixed + each * atomic
    sync = np.where(
        multi,
        between + between_more * more,
        np.where(single, inside + inside_more * more, _TINY + _TINY * more),
    )
    powered, synced = compute**gamma, sync**gamma
    both = powered + synced
    log_step = np.log(both) / gamma
    off, off_step = np.log(compute) - log_compute, log_step - log_seconds
    count = len(atomic)
    rms, rms_step = np.sqrt(np.mean(off * off)), np.sqrt(np.mean(off_step * off_step))
    error = rms + rms_step + 1e-3 * (gamma - 1) ** 2
    error += 1e-2 * ((between_more / between) ** 2 + (inside_more / inside) ** 2)
    weight = off / (count * rms) if rms > 0 else off * 0
    weight_step = off_step / (count * rms_step) if rms_step > 0 else off_step * 0
    by_compute = weight / compute + weight_step * powered / compute / both
    by_sync = weight_step * synced / sync / both
    logs = (powered * np.log(compute) + synced * np.log(sync)) / (both * gamma)
    by_gamma = np.sum(weight_step * (-log_step / gamma + logs))
    slope = [
        by_compute.sum(),
        (by_compute * atomic).sum(),
        (by_sync * multi).sum() - 2e-2 * between_more**2 / between**3,
        (by_sync * multi * more).sum() + 2e-2 * between_more / between**2,
        (by_sync * single).sum() - 2e-2 * inside_more**2 / inside**3,
        (by_sync * single * more).sum() + 2e-2 * inside_more / inside**2,
        by_gamma + 2e-3 * (gamma - 1),
    ]
    return float(error), np.array(slope)
