"""The trade-off of verdicts: how often a right move is undone against how often, and how soon, a wrong one is.

    PYTHONPATH=operator python -m benchmarks.decisions.verdicts [--seed N] [--trials N]

Windows of five minutes of a job under noise go through the operator's own statistics and verdict; no fleet is run. A
job is moved after so many windows, to the same chips on another pool. A right move is to a price that is 15% lower. A
wrong one is to a price that is 25% lower, where the job does 40% less than was promised: a sample is 25% dearer.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.estimate import Estimate
from rightpool.api.migration import MAX_BASELINE_RATES, Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.variation import Variation
from rightpool.api.workload import JobWorkload, Workload
from rightpool.planning.migration import verification
from rightpool.planning.migration.verification import MOST_WINDOWS, Verdict, verify
from rightpool.prediction.transfer import SAME_CHIP_SD
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey
from rightpool.profiles.steadiness import SPANS, counted, pace
from rightpool.simulation.noise import BY_POOL, NOISES

WINDOW: Final = 300.0
STEP: Final = 10.0
READINGS: Final = int(WINDOW / STEP)
# Readings between the last window before a move and the first one after it: half a window, and a restart.
AWAY: Final = 20
# Price and speed, by which the new pool differs.
RIGHT: Final = (0.85, 1.0)
WRONG: Final = (0.75, 0.6)
WAITS: Final = (1, 6, 12, 18)
# While it is looked at, and the last time.
LIMITS: Final = ((2.58, 0.5), (2.58, 0.25), (1.64, 0.25))
SPEC: Final = ProfiledJobSpec(workload=Workload(job=JobWorkload(template={"spec": {"containers": [{"name": "main"}]}})))
HERE: Final = Revision(1, Placement("here", 4, 1), cost_per_hour=12.0)
THERE: Final = Revision(2, Placement("there", 4, 1), cost_per_hour=12.0)


def trial(draw: np.random.Generator, noise: str, wait: int, change: tuple[float, float]) -> tuple[bool, int]:
    """Whether the move was undone, and windows until the verdict."""
    price, speed = change
    before_move, after_move = wait * READINGS, AWAY + MOST_WINDOWS * READINGS
    factors = NOISES[noise](draw, before_move + after_move, STEP)
    if noise in BY_POOL:
        factors[before_move:] = NOISES[noise](draw, after_move, STEP)
    sides = factors[:before_move], speed * factors[before_move + AWAY :]
    before, after = (1000.0 * side.reshape(-1, READINGS).mean(axis=1) for side in sides)
    return judged(before.tolist(), after.tolist(), price, AWAY * STEP)


def judged(
    rates_before: Sequence[float], rates_after: Sequence[float], price: float, away: float = 0.0
) -> tuple[bool, int]:
    """Whether a move to this share of the price is undone, and windows until the verdict. rates: of the windows before
    the move and after it, samples a second; away: seconds between these."""
    variation: Variation | None = None
    at = 0.0
    for rate in rates_before:
        at += WINDOW
        variation = counted(variation, 1, rate, at, WINDOW)
    before = pace(variation, 1, most=MOST_WINDOWS)
    if before is None:
        return False, 0
    target = replace(THERE, cost_per_hour=12.0 * price)
    move = Migration("d-1", Action.MOVE, Phase.VERIFYING, HERE, target, 0.0, 0.0, Reason.CHEAPER_POOL_MEETS_TARGETS)
    promised = Estimate(before.rate, SAME_CHIP_SD)
    assert variation is not None
    move = replace(
        move,
        predicted=promised,
        baseline=before.rate,
        baseline_windows=before.windows,
        baseline_rates=variation.recent[-MAX_BASELINE_RATES:],
        stopped_at=at,
    )
    at += away
    for number, rate in enumerate(rates_after, 1):
        at += WINDOW
        variation = counted(variation, 2, rate, at, WINDOW)
        reading = Reading(rate, rate, rate, Quality.MEASURED)
        key = RevisionKey("team", "job", 2)
        readings = {Field.SAMPLES_PER_SECOND: reading}
        profile = Profile(key, 4, Steadiness.STEADY, WINDOW, 1.0, at, 1, 1, readings)
        result = verify(move, profile, SPEC, variation)
        if result.settled:
            return result.verdict is Verdict.WORSE, number
    return False, MOST_WINDOWS


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200, help="of each kind of noise")
    options = parser.parse_args()
    print(
        f"{'z':>5} {'last':>5} {'moved after':>12} {'right undone':>13} {'worst noise':>20} {'wrong undone':>13} "
        f"{'worst noise':>20} {'windows':>8}"
    )
    chosen = verification.UNDONE_Z, verification.LIKELY_Z
    for limits in LIMITS:
        verification.UNDONE_Z, verification.LIKELY_Z = limits
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
    verification.UNDONE_Z, verification.LIKELY_Z = chosen


if __name__ == "__main__":
    main()
