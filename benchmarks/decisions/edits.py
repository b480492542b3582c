"""Verdicts on edits: how often an edit that changes nothing is called slower or faster, and a slower one is found.

    PYTHONPATH=operator python -m benchmarks.decisions.edits [--seed N] [--trials N] [--noise NAME]

Windows of five minutes of a job under noise go through the operator's own statistics and verdict, at the windows at
which it looks. Before the edit there are so many windows, of which the newest eight are remembered; noise goes on while
the job restarts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import numpy as np

from benchmarks.decisions.verdicts import AWAY, READINGS, STEP, WINDOW
from rightpool.api.program_edit import MAX_RATES
from rightpool.api.variation import MAX_RECENT, Variation
from rightpool.planning.judge.two_runs import OF_TWO_RUNS
from rightpool.planning.judge.verdict import Verdict, verdict
from rightpool.planning.moves.edits import LOOKS, looked_at, since_edit
from rightpool.profiles.steadiness import counted
from rightpool.simulation.noise import NOISES

HISTORIES: Final = (3, 6, 8, 20)
"""Windows before the edit: all less than two hours."""
SLOWER: Final = (1.0, 0.85, 0.8)
"""Rates after it, against before."""


def trial(draw: np.random.Generator, noise: str, history: int, speed: float) -> Verdict:
    """What is said in the end of an edit after so many windows that makes the job so fast."""
    factors = NOISES[noise](draw, (history + MAX_RECENT) * READINGS + AWAY, STEP)
    early, late = factors[: history * READINGS], speed * factors[history * READINGS + AWAY :]
    windows = (1000.0 * side.reshape(-1, READINGS).mean(axis=1) for side in (early, late))
    return judged(*(means.tolist() for means in windows))


def judged(before: Sequence[float], after: Sequence[float]) -> Verdict:
    """Of windows before and after, units a second."""
    variation: Variation | None = None
    for number, rate in enumerate(before, 1):
        variation = counted(variation, 1, rate, number * WINDOW, WINDOW)
    known, found = tuple(before[-MAX_RATES:]), Verdict.OPEN
    if not any(known):
        return found
    for number, rate in enumerate(after, len(before) + 1):
        variation = counted(variation, 2, rate, AWAY * STEP + number * WINDOW, WINDOW)
        count = len(variation.recent)
        if found is Verdict.OPEN and count in LOOKS and looked_at(len(known), count) == count:
            found = verdict(since_edit(known, variation.recent, variation, WINDOW), OF_TWO_RUNS)
    return found


def main() -> None:
    """Print shares by noise and history."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--noise", choices=NOISES, help="this kind alone")
    options = parser.parse_args()
    print(f"{'noise':12} {'windows':>7} {'equal: slower':>18} {'faster':>7} {'-15%: slower':>13} {'-20%: slower':>13}")
    for noise in [options.noise] if options.noise else NOISES:
        for history in HISTORIES:
            shares = []
            for speed in SLOWER:
                draw = np.random.default_rng([options.seed, history])
                verdicts = [trial(draw, noise, history, speed) for _ in range(options.trials)]
                slower = sum(one in (Verdict.WORSE, Verdict.IDLE) for one in verdicts)
                shares += [slower / options.trials, verdicts.count(Verdict.BETTER) / options.trials]
            same, faster, slow, _, slower_yet, _ = shares
            print(f"{noise:12} {history:7} {same:18.3f} {faster:7.3f} {slow:13.3f} {slower_yet:13.3f}", flush=True)


if __name__ == "__main__":
    main()
