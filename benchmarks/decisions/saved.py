"""How far `saved` is from the truth, a day after a move to the same chips at a price that is 15% lower.

    PYTHONPATH=operator python -m benchmarks.decisions.saved [--seed N] [--trials N]

Windows of five minutes of a job under noise go through the operator's own statistics and the account's rate without
moves; no fleet is run. The prediction is right. A move that the operator's verdict undoes saves nothing: what is left
are those that were measured well. `sd` is how far one job is off, as a share of the truth; `held` is the share of jobs
whose truth is within the account's 80% interval. Noises that drift are left out: what the account takes out for them is
told by a whole job.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Final

import numpy as np

from benchmarks.decisions.measures import row
from benchmarks.decisions.verdicts import PRICE, READINGS, RIGHT, STEP, WINDOW, judged
from benchmarks.decisions.world import HOUR
from rightpool.api.counterfactual import Counterfactual
from rightpool.api.estimate import Z80
from rightpool.api.placement import Placement
from rightpool.api.variation import Variation
from rightpool.planning.books.counterfactual import AFTER_SECONDS, BEFORE_SECONDS, Level, speed
from rightpool.planning.judge.series import MOST_WINDOWS
from rightpool.prediction.transfer import SAME_CHIP_SD
from rightpool.profiles.steadiness import counted
from rightpool.simulation.noise import BY_POOL, NOISES

DRIFTING: Final = frozenset({"drift", "sequence"})
DAY: Final = round(24 * HOUR / WINDOW)
HERE: Final = Placement("here", 4, 1)
BEFORE: Final = round(BEFORE_SECONDS / WINDOW)
AFTER: Final = round(AFTER_SECONDS / WINDOW)


def trial(draw: np.random.Generator, noise: str) -> tuple[float, float, bool] | None:
    """Dollars an hour that the account has as saved after a day, those that were, and whether these are within its
    interval; None where the move is undone."""
    rate = 1000.0
    home = NOISES[noise](draw, DAY * READINGS, STEP)
    there = NOISES[noise](draw, DAY * READINGS, STEP) if noise in BY_POOL else home
    left = BEFORE * READINGS
    before, after = (rate * side.reshape(-1, READINGS).mean(axis=1) for side in (home[:left], there[left:]))
    undone, _ = judged(before.tolist(), after[:MOST_WINDOWS].tolist(), RIGHT[0])
    if undone:
        return None
    variation: Variation | None = None
    for number, (revision, mean) in enumerate([(1, mean) for mean in before] + [(2, mean) for mean in after], 1):
        variation = counted(variation, revision, float(mean), number * WINDOW, WINDOW)
    promised = Counterfactual(HERE, PRICE, predicted=1.0, predicted_doubt=SAME_CHIP_SD)
    origin = replace(promised, windows=BEFORE, baseline=float(before.mean()))
    found = speed(origin, Level(float(after[:AFTER].mean()), 0.0, AFTER), variation)
    assert found is not None
    paid = RIGHT[0] * PRICE
    saved, truth = PRICE / found.ratio - paid, PRICE * float(there[left:].mean() / home[left:].mean()) - paid
    return saved, truth, abs(saved - truth) <= Z80 * found.doubt * PRICE / found.ratio


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200, help="of each kind of noise")
    options = parser.parse_args()
    print(f"{'noise':12} {'saved':>8} {'low':>8} {'high':>8} {'sd':>8} {'undone':>8} {'held':>8}")
    for noise in (name for name in NOISES if name not in DRIFTING):
        draw = np.random.default_rng(options.seed)
        trials = [trial(draw, noise) for _ in range(options.trials)]
        counts = [booked for booked in trials if booked is not None]
        line = row(noise, "saved", [(saved, truth) for saved, truth, _ in counts])
        saved, truth, held = np.array(counts).T
        sd = float(np.std(saved - truth) / truth.mean())
        undone = 1.0 - len(counts) / len(trials)
        print(
            f"{noise:12} {line.value:8.3f} {line.low:8.3f} {line.high:8.3f} {sd:8.2f} {undone:8.3f} {held.mean():8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
