"""Noise: how the rate of a job varies by itself, as factors around 1, one for each reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from rightpool.api.units import HOUR
from rightpool.prediction.columns import Floats

NoiseProcess = Callable[[np.random.Generator, int, float], Floats]
"""Factors of `count` readings that are `step` seconds apart."""

MINUTE: Final = 60.0
SPREAD: Final = 0.20
LEAST: Final = 0.05


def quiet(draw: np.random.Generator, count: int, step: float) -> Floats:
    """Half a percent a reading."""
    return 1.0 + 0.005 * draw.standard_normal(count)


def white(draw: np.random.Generator, count: int, step: float) -> Floats:
    """20% a reading, each by itself."""
    return np.maximum(1.0 + SPREAD * draw.standard_normal(count), LEAST)


def blocks(minutes: float) -> NoiseProcess:
    """+20% or -20% for so many minutes, each block by itself."""

    def process(draw: np.random.Generator, count: int, step: float) -> Floats:
        length = max(int(minutes * MINUTE / step), 1)
        levels = 1.0 + SPREAD * draw.choice((-1.0, 1.0), count // length + 2)
        offset = int(draw.integers(length))
        return np.repeat(levels, length)[offset : offset + count] * quiet(draw, count, step)

    return process


def autoregressive(minutes: float) -> NoiseProcess:
    """AR(1) of the logarithm with this correlation time."""
    sd = 0.15

    def process(draw: np.random.Generator, count: int, step: float) -> Floats:
        kept = np.exp(-step / (minutes * MINUTE))
        pushed = draw.standard_normal(count) * sd * np.sqrt(1.0 - kept**2)
        level, series = sd * float(draw.standard_normal()), np.empty(count)
        for at, push in enumerate(pushed.tolist()):
            level = kept * level + push
            series[at] = level
        factors: Floats = np.exp(series - sd**2 / 2.0)
        return factors

    return process


def drifting(draw: np.random.Generator, count: int, step: float) -> Floats:
    """4% an hour, up or down, all the time."""
    sign = float(draw.choice((-1.0, 1.0)))
    factors: Floats = np.exp(sign * 0.04 * np.arange(count) * step / HOUR) * quiet(draw, count, step)
    return factors


def evaluation(draw: np.random.Generator, count: int, step: float) -> Floats:
    """Nothing is processed for 5 to 20% of each period of 10 to 60 minutes."""
    period = max(int(draw.uniform(10.0, 60.0) * MINUTE / step), 4)
    pause = max(round(draw.uniform(0.05, 0.20) * period), 1)
    at = (np.arange(count) + int(draw.integers(period))) % period
    return np.where(at < pause, 0.0, quiet(draw, count, step))


def long_evaluation(draw: np.random.Generator, count: int, step: float) -> Floats:
    """Nothing is processed for 20 to 30 minutes each 3 to 6 hours."""
    period = int(draw.uniform(3.0, 6.0) * HOUR / step)
    pause = round(draw.uniform(20.0, 30.0) * MINUTE / step)
    at = (np.arange(count) + int(draw.integers(period))) % period
    return np.where(at < pause, 0.0, quiet(draw, count, step))


def sequence(draw: np.random.Generator, count: int, step: float) -> Floats:
    """The sequence length grows in six steps at any time of the day: half of the samples a second in the end."""
    day = int(24 * HOUR / step)
    steps = np.sort(draw.integers(0, day, 6))
    taken = np.searchsorted(steps, np.arange(count) % day, side="right")
    factors: Floats = 0.5 ** (taken / 6.0) * quiet(draw, count, step)
    return factors


def neighbour(draw: np.random.Generator, count: int, step: float) -> Floats:
    """Another workload on the same nodes takes 25% for an hour or so, and comes back after two or so."""
    factors = np.ones(count)
    at, there = 0, bool(draw.random() < 1.0 / 3.0)
    while at < count:
        length = max(int(draw.exponential(HOUR if there else 2.0 * HOUR) / step), 1)
        if there:
            factors[at : at + length] = 0.75
        at, there = at + length, not there
    return factors * quiet(draw, count, step)


NOISES: Final[Mapping[str, NoiseProcess]] = {
    "quiet": quiet,
    "white": white,
    "blocks-5m": blocks(5.0),
    "blocks-10m": blocks(10.0),
    "blocks-30m": blocks(30.0),
    "ar-10m": autoregressive(10.0),
    "ar-60m": autoregressive(60.0),
    "drift": drifting,
    "evaluation": evaluation,
    "long-eval": long_evaluation,
    "sequence": sequence,
    "neighbour": neighbour,
}
"""By name."""

BY_POOL: Final = frozenset({"neighbour"})
"""What hits a job on one pool and not on another; all other noise is the job's own and goes where it goes."""
