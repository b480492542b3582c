"""The trade-off of verdicts: how often a right move is undone against how often, and how soon, a wrong one is.

    PYTHONPATH=operator python -m benchmarks.decisions.verdicts [--seed N] [--trials N] [--by-noise [NAME ...]]

Windows of five minutes of a job under noise go through the operator's own statistics and verdict; no fleet is run. A
job is moved after so many windows, to the same chips on another pool. A right move is to a price that is 15% lower. A
wrong one is to a price that is 25% lower, where the job does 40% less than was promised: a sample is 25% dearer. Up to
five minutes after the last window the save is asked for; 90 s later the first window after the move begins.

With --by-noise it is printed for each kind of noise what becomes of moves after an hour where what the job did right
before the save counts as one window more, and where it does not; also of moves for speed, to a price that is 40%
higher for 40% more speed, which the right ones deliver and the wrong ones do not at all.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rightpool.api.migration import MAX_BASELINE_RATES
from rightpool.api.variation import Variation
from rightpool.planning.jobs.revision_window import LEAST_PART, LONGEST_PART
from rightpool.planning.judge import verdict as verdicts
from rightpool.planning.judge.difference import compare
from rightpool.planning.judge.promise import Promise
from rightpool.planning.judge.series import MOST_WINDOWS, RateSeries
from rightpool.planning.judge.verdict import Verdict
from rightpool.prediction.transfer import SAME_CHIP_SD
from rightpool.profiles.steadiness import SPANS, counted, pace
from rightpool.simulation.noise import BY_POOL, NOISES

WINDOW: Final = 300.0
STEP: Final = 10.0
READINGS: Final = int(WINDOW / STEP)
# Readings from the request for a save to the first window after a move: a save, and a restart.
AWAY: Final = 9
# Seconds from the end of the pods to that.
RESTART: Final = 70.0
# Price and speed, by which the new pool differs.
RIGHT: Final = (0.85, 1.0)
WRONG: Final = (0.75, 0.6)
# Of moves for speed, and what they promise.
FASTER: Final = (1.4, 1.4)
NO_FASTER: Final = (1.4, 1.0)
PROMISED: Final = (1.4, 0.10)
WAITS: Final = (1, 6, 12, 18)
# While it is looked at, and the last time.
LIMITS: Final = ((2.58, 0.5), (2.58, 0.25), (1.64, 0.25))
PRICE: Final = 12.0
"""Dollars an hour, before."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is measured around a move, samples a second."""

    before: tuple[float, ...]
    """Windows before it."""
    last: float | None
    """The newest part of a window, right before the save was asked for; None where that is too short."""
    after: tuple[float, ...]
    """Windows after it, at a pool that is as fast."""
    apart: float
    """Seconds from the end of the last window before to the first one after."""


def around(draw: np.random.Generator, noise: str, wait: int) -> Around:
    """A move after so many windows. The save is asked for at any time until the next one."""
    asked = wait * READINGS + int(draw.integers(READINGS))
    factors = NOISES[noise](draw, asked + AWAY + MOST_WINDOWS * READINGS, STEP)
    if noise in BY_POOL:
        factors[asked:] = NOISES[noise](draw, len(factors) - asked, STEP)
    rates = 1000.0 * factors
    before, since, after = np.split(rates, (wait * READINGS, asked))
    windows = (side.reshape(-1, READINGS).mean(axis=1) for side in (before, after[AWAY:]))
    part = since[-round(LONGEST_PART * READINGS) :]
    last = float(part.mean()) if len(part) >= LEAST_PART * READINGS else None
    early, late = (tuple(map(float, means)) for means in windows)
    return Around(early, last, late, (len(since) + AWAY) * STEP)


def trial(draw: np.random.Generator, noise: str, wait: int, change: tuple[float, float]) -> tuple[bool, int]:
    """Whether the move was undone, and windows until the verdict."""
    price, speed = change
    made = around(draw, noise, wait)
    return judged(made.before, [speed * rate for rate in made.after], price, made.apart, last=made.last)


def judged(
    rates_before: Sequence[float],
    rates_after: Sequence[float],
    price: float,
    away: float = 0.0,
    *,
    last: float | None = None,
    for_speed: bool = False,
) -> tuple[bool, int]:
    """Whether a move to this share of the price is undone, and windows until the verdict. rates: of the windows before
    the move and after it, samples a second; away: seconds between these; last: the rate right before the save was
    asked for, None if not known; for_speed: whether PROMISED was."""
    variation: Variation | None = None
    at = 0.0
    for rate in rates_before:
        at += WINDOW
        variation = counted(variation, 1, rate, at, WINDOW)
    newest = pace(variation, 1, most=MOST_WINDOWS)
    if newest is None:
        return False, 0
    assert variation is not None
    known = variation.recent[-newest.windows :] if last is None else (*variation.recent[-newest.windows :], last)
    mean = sum(known) / len(known)
    before = RateSeries(mean, len(known), known[-MAX_BASELINE_RATES:], seconds=WINDOW, price=PRICE)
    faster, sd = PROMISED if for_speed else (1.0, SAME_CHIP_SD)
    promise, apart = Promise(math.log(faster), sd), min(RESTART, away) / WINDOW
    for number, rate in enumerate(rates_after, 1):
        variation = counted(variation, 2, rate, at + away + number * WINDOW, WINDOW)
        recent = variation.recent
        after = RateSeries(sum(recent) / len(recent), len(recent), recent, recent, WINDOW, price * PRICE, variation)
        found = compare(replace(before, variation=variation), after, apart, promise, money=0.0 if for_speed else 1.0)
        verdict = verdicts.verdict(found, verdicts.TO_BE_FASTER if for_speed else verdicts.RULES)
        if verdict is not Verdict.OPEN:
            return verdict.undoes, number
    return False, MOST_WINDOWS


def by_noise(noises: Sequence[str], seed: int, trials: int) -> None:
    """Print what becomes of moves after an hour, without and with what the job did right before the save."""
    cases = (
        ("right", RIGHT, False),
        ("wrong", WRONG, False),
        ("faster", FASTER, True),
        ("no faster", NO_FASTER, True),
    )
    print(f"{'noise':12} {'move':10} {'undone, without':>16} {'with':>6} {'windows, without':>17} {'with':>6}")
    for noise in noises:
        draw = np.random.default_rng([seed, SPANS[-1]])
        moves = [around(draw, noise, SPANS[-1]) for _ in range(trials)]
        for name, (price, speed), for_speed in cases:
            found = np.array(
                [
                    [
                        judged(
                            made.before,
                            [speed * rate for rate in made.after],
                            price,
                            made.apart,
                            last=last,
                            for_speed=for_speed,
                        )
                        for last in (None, made.last)
                    ]
                    for made in moves
                ],
                dtype=np.float64,
            )
            (without, longer), (now, windows) = found.mean(axis=0)
            print(f"{noise:12} {name:10} {without:16.3f} {now:6.3f} {longer:17.1f} {windows:6.1f}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200, help="of each kind of noise")
    parser.add_argument(
        "--by-noise", nargs="*", choices=list(NOISES), metavar="NAME", help="these; all if none is named"
    )
    options = parser.parse_args()
    if options.by_noise is not None:
        by_noise(options.by_noise or list(NOISES), options.seed, options.trials)
        return
    print(
        f"{'z':>5} {'last':>5} {'moved after':>12} {'right undone':>13} {'worst noise':>20} {'wrong undone':>13} "
        f"{'worst noise':>20} {'windows':>8}"
    )
    chosen = verdicts.UNDONE_Z, verdicts.LIKELY_Z
    for limits in LIMITS:
        verdicts.UNDONE_Z, verdicts.LIKELY_Z = limits
        for wait in WAITS:
            right: dict[str, float] = {}
            wrong: dict[str, float] = {}
            taken = []
            for noise in NOISES:
                draw = np.random.default_rng([options.seed, wait])
                right[noise] = float(np.mean([trial(draw, noise, wait, RIGHT)[0] for _ in range(options.trials)]))
                found = [trial(draw, noise, wait, WRONG) for _ in range(options.trials)]
                wrong[noise] = float(np.mean([undone for undone, _ in found]))
                taken.append(np.mean([windows for _, windows in found]))
            most, least = max(right, key=lambda name: right[name]), min(wrong, key=lambda name: wrong[name])
            mark = "  in force" if limits == chosen and wait == SPANS[-1] else ""
            print(
                f"{limits[0]:5.2f} {limits[1]:5.2f} {wait:12d} {np.mean(list(right.values())):13.3f} "
                f"{right[most]:8.3f} {most:>11} {np.mean(list(wrong.values())):13.3f} {wrong[least]:8.3f} {least:>11} "
                f"{np.mean(taken):8.1f}{mark}",
                flush=True,
            )
    verdicts.UNDONE_Z, verdicts.LIKELY_Z = chosen


if __name__ == "__main__":
    main()
