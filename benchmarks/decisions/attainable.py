"""What a judge could attain that knows the noise: how many wrong moves it undoes where it undoes 2% of the right ones.

    PYTHONPATH=operator python -m benchmarks.decisions.attainable [--seed N] [--trials N]

It knows the covariance of a job's windows, from many days of the same noise, but not whether the noise goes along with
the job: half of it is taken to. It compares how likely the windows of an hour before a move and of two hours after it
are where the job does what was promised (to 5%), and where it does anything else (to 40%). Moves are those of
`benchmarks.decisions.verdicts`. The last lines say how many right moves a neighbour makes false: those whose gain over
the whole day is less than a move must save, which nobody can know before; and how far `saved` of one job is off, as a
share of the truth, where the account knows everything but what the neighbours did in that day where the job was.
"""

from __future__ import annotations

import argparse
import math
from typing import Final

import numpy as np

from benchmarks.decisions.stories import DAY, MIN_SAVINGS
from benchmarks.decisions.verdicts import READINGS, RIGHT, STEP, WRONG
from benchmarks.decisions.world import HOUR
from rightpool.planning.judge.series import MOST_WINDOWS
from rightpool.prediction.columns import Floats
from rightpool.profiles.steadiness import GOES_ALONG
from rightpool.simulation.noise import BY_POOL, NOISES

BEFORE: Final = 12
COUNT: Final = BEFORE + MOST_WINDOWS
# How far the change may be from what was promised, standard deviations of the logarithm.
KEPT: Final = 0.05
ELSE: Final = 0.40
# Series that the covariance is known by.
SERIES: Final = 400
LEAST: Final = 0.05
# Share of right moves undone.
ALLOWED: Final = 0.02


def windows(draw: np.random.Generator, noise: str, speed: float = 1.0) -> Floats:
    """Logarithms of the rates before and after a move."""
    factors = NOISES[noise](draw, COUNT * READINGS, STEP)
    if noise in BY_POOL:
        factors[BEFORE * READINGS :] = NOISES[noise](draw, MOST_WINDOWS * READINGS, STEP)
    logs: Floats = np.log(np.maximum(factors.reshape(-1, READINGS).mean(axis=1), LEAST))
    logs[BEFORE:] += math.log(speed)
    return logs


def covariance(draw: np.random.Generator, noise: str) -> Floats:
    """Of windows on either side of a move."""
    many = [NOISES[noise](draw, COUNT * READINGS, STEP).reshape(-1, READINGS).mean(axis=1) for _ in range(SERIES)]
    logs = np.log(np.maximum(many, LEAST))
    logs -= logs.mean()
    lags = np.array([np.mean(logs[:, : COUNT - lag] * logs[:, lag:]) for lag in range(COUNT)])
    at = np.arange(COUNT)
    after = at >= BEFORE
    found = lags[np.abs(at[:, np.newaxis] - at)]
    values, vectors = np.linalg.eigh(np.where(after[:, np.newaxis] == after, found, GOES_ALONG * found))
    whole: Floats = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    return whole


def likelihood(logs: Floats, covariance: Floats, sd: float) -> float:
    """Of these windows, their level unknown, with a change of so much."""
    after = (np.arange(COUNT) >= BEFORE).astype(np.float64)
    root = np.linalg.cholesky(covariance + 4.0 + sd**2 * np.outer(after, after))
    white = np.linalg.solve(root, logs)
    return float(-0.5 * white @ white - np.log(np.diag(root)).sum())


def attained(draw: np.random.Generator, noise: str, trials: int) -> float:
    """Share of wrong moves undone."""
    known = covariance(draw, noise)

    def odds(speed: float) -> Floats:
        moves = [windows(draw, noise, speed) for _ in range(trials)]
        return np.array([likelihood(logs, known, ELSE) - likelihood(logs, known, KEPT) for logs in moves])

    right, wrong = odds(RIGHT[1]), odds(WRONG[1])
    return float(np.mean(wrong > np.quantile(right, 1.0 - ALLOWED)))


def days(draw: np.random.Generator, trials: int) -> tuple[Floats, Floats]:
    """Means over a day beside neighbours, where a job was and where it went."""
    count = int(DAY * HOUR / STEP)
    means = [[np.mean(NOISES["neighbour"](draw, count, STEP)) for _ in range(2)] for _ in range(trials)]
    here, there = np.array(means).T
    return here, there


def made_false(draw: np.random.Generator, trials: int) -> float:
    """Share of right moves that a neighbour makes false over the day."""
    here, there = days(draw, trials)
    return float(np.mean(1.0 - RIGHT[0] * here / there < MIN_SAVINGS))


def off(draw: np.random.Generator, trials: int) -> float:
    """Standard deviation of `saved` of one job, as a share of the truth, where the usual day stands for the one that it
    would have had where it was."""
    here, there = days(draw, trials)
    booked, truth = (there / day - RIGHT[0] for day in (here.mean(), here))
    return float(np.std(booked - truth) / truth.mean())


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=400, help="of each kind of noise")
    options = parser.parse_args()
    for noise in NOISES:
        share = attained(np.random.default_rng(options.seed), noise, options.trials)
        print(f"{noise:12} {share:6.3f}", flush=True)
    for name, found in (("made false", made_false), ("saved, sd", off)):
        print(f"{name:12} {found(np.random.default_rng(options.seed), options.trials):6.3f}")


if __name__ == "__main__":
    main()
