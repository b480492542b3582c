"""Verification: did a move deliver what it promised? Realised against predicted, and against what was before."""

import math
from dataclasses import dataclass
from enum import StrEnum

from rightpool.api.conditions import Reason
from rightpool.api.profiledjob import Objective, ProfiledJobSpec
from rightpool.planning.migration import Migration
from rightpool.planning.wording import dollars, number
from rightpool.prediction.estimate import Z80
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field

# Two windows of the same job on the same chips differ by a few percent; less than this is never called worse.
NOISE_FLOOR = 0.03
# A window noisier than this proves little. Where it leaves the verdict open, another one is worth waiting for.
NOISE_CEILING = 0.10

# What a move was for judges it, whatever the objective: a deadline may cost money, a cost target time.
_FOR_TIME = frozenset({Reason.DEADLINE_MISSED})
_FOR_COST = frozenset({Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED, Reason.BUDGET_EXCEEDED})
# Certain before the move. Going back would only bring about again what it was made for.
_FOR_GOOD = {
    Reason.NOT_ALLOWED_ANY_MORE: "where it was is not allowed any more",
    Reason.MAX_COST_PER_HOUR_EXCEEDED: "where it was, targets.maxCostPerHour does not hold",
    Reason.MIN_SCALING_EFFICIENCY_MISSED: "where it was, targets.minScalingEfficiency does not hold",
}


class Verdict(StrEnum):
    """BETTER: stay. SAME: no worse beyond noise, moving back would only cost again. WORSE: undo."""

    BETTER = "Better"
    SAME = "Same"
    WORSE = "Worse"


@dataclass(frozen=True, slots=True)
class Verification:
    """samples_per_second, cost_per_million: realised. reason: Delivered, BelowPrediction or RolledBack.

    settled: whether another window could hardly say otherwise.
    """

    verdict: Verdict
    reason: Reason
    message: str
    samples_per_second: float
    cost_per_million: float | None
    settled: bool = True


def cost_per_million(samples_per_second: float, cost_per_hour: float | None) -> float | None:
    """Dollars per million samples; None where the price is unknown or nothing is processed."""
    if cost_per_hour is None or samples_per_second <= 0:
        return None
    return cost_per_hour / 3600 / samples_per_second * 1e6


def noise(profile: Profile) -> float:
    """Relative doubt of a window's median throughput: standard error of the median from the window's 80% spread."""
    reading = profile.readings[Field.SAMPLES_PER_SECOND]
    if reading.value <= 0 or reading.low <= 0 or reading.high <= 0:
        return 1.0
    sd = (math.log(reading.high) - math.log(reading.low)) / (2 * Z80)
    return max(NOISE_FLOOR, sd)


def badness_ratio(
    migration: Migration, realised: float, realised_cost: float | None, objective: Objective
) -> float | None:
    """Realised over baseline of what the objective minimises; below 1 is better. None where the baseline is unknown.

    MinimizeTime: seconds per sample. MinimizeCost: dollars per sample. Balanced: their geometric mean. A move for a
    missed target is judged by what that target limits.
    """
    if not migration.baseline or realised <= 0:
        return None
    if migration.reason in _FOR_COST:
        objective = Objective.MINIMIZE_COST
    time = migration.baseline / realised
    if objective is Objective.MINIMIZE_TIME or migration.reason in _FOR_TIME:
        return time
    if realised_cost is None or not migration.baseline_cost:
        return None
    cost = realised_cost / migration.baseline_cost
    return cost if objective is Objective.MINIMIZE_COST else math.sqrt(cost * time)


def verify(migration: Migration, profile: Profile, spec: ProfiledJobSpec) -> Verification:
    """Judge a migration by a complete Profile of its target Revision.

    Raises ValueError if the Profile is of another Revision or lacks throughput: a caller's mistake.
    """
    if profile.key.revision != migration.target.revision or not profile.complete:
        about = f"{migration.id} to r{migration.target.revision}"
        raise ValueError(f"profile of r{profile.key.revision} can't verify {about}")
    realised = profile.readings[Field.SAMPLES_PER_SECOND].value
    realised_cost = cost_per_million(realised, migration.target.cost_per_hour)
    ratio = badness_ratio(migration, realised, realised_cost, spec.targets.objective)
    said = _told(migration, realised, realised_cost)
    if ratio is None:
        return Verification(
            Verdict.SAME,
            Reason.BELOW_PREDICTION,
            f"{said}; there is no baseline to compare with",
            realised,
            realised_cost,
        )
    doubt = noise(profile)
    why = _FOR_GOOD.get(migration.reason)
    if why is not None and ratio >= 1 - doubt:
        return Verification(Verdict.SAME, Reason.BELOW_PREDICTION, f"{said}; it stays: {why}", realised, realised_cost)
    if ratio > 1 + doubt:
        message = f"{said}: {ratio - 1:.0%} worse than before, beyond the {doubt:.0%} that two windows may differ"
        return Verification(Verdict.WORSE, Reason.ROLLED_BACK, message, realised, realised_cost)
    if ratio >= 1 - doubt:
        message = f"{said}: no better than before the move; it stays, since moving back would only cost again"
        settled = doubt <= NOISE_CEILING
        return Verification(Verdict.SAME, Reason.BELOW_PREDICTION, message, realised, realised_cost, settled)
    kept = migration.predicted is None or realised >= migration.predicted.low
    reason = Reason.DELIVERED if kept else Reason.BELOW_PREDICTION
    tail = "" if kept else ", less than promised, yet better than before"
    return Verification(
        Verdict.BETTER, reason, f"{said}: {1 - ratio:.0%} better than before{tail}", realised, realised_cost
    )


def _told(migration: Migration, realised: float, realised_cost: float | None) -> str:
    text = f"measured {number(realised)} samples/s"
    if realised_cost is not None:
        text += f" at {dollars(realised_cost)} per million"
    if migration.predicted is not None:
        predicted = migration.predicted
        text += f"; predicted {number(predicted.median)} ({number(predicted.low)}–{number(predicted.high)})"
        if migration.predicted_cost is not None:
            text += f" at {dollars(migration.predicted_cost.median)}"
    if migration.baseline is not None:
        text += f"; before {number(migration.baseline)}"
        if migration.baseline_cost is not None:
            text += f" at {dollars(migration.baseline_cost)}"
    return text
