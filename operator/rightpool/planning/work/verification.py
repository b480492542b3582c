"""Verification: did a move deliver what it promised? Realised against predicted, and against what was before."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rightpool.api.choices import Objective
from rightpool.api.conditions import Reason
from rightpool.api.ledger import measured_cost_per_million
from rightpool.api.migration import Migration
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.variation import Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.judge.difference import Difference, compare
from rightpool.planning.judge.promise import promise_of
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.judge.verdict import RULES, TO_BE_FASTER, TO_STAY, Rule, Verdict, tolerance, verdict
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.work.registry import work_of
from rightpool.profiles.profile import Profile
from rightpool.profiles.steadiness import doubt_between_places


@dataclass(frozen=True, slots=True)
class Verification:
    """What a move delivered; planning/moves/migration_texts.py says it in words."""

    verdict: Verdict
    """How the result compares with what was before, in the terms of the objective."""
    reason: Reason
    """Delivered, BelowPrediction or RolledBack."""
    throughput: float
    """Realised; 0 where the program does nothing there."""
    cost_per_million: float | None
    """Realised; None where the price is unknown."""
    ratio: float | None = None
    """Realised over baseline of what the objective minimises, as it was measured; of the cost where it is dearer. None
    where there is no baseline."""
    likely: float | None = None
    """The same by what was measured and what was promised, each by how sure it is."""
    doubt: float = 0.0
    """Standard deviation of the log of realised over baseline, by how such spans of this job on two places differ."""
    tolerance: float = 0.0
    """From what share on it would be called worse."""
    unit: WorkUnit = WorkUnit.SAMPLES
    """What throughput counts."""
    by_time: bool = False
    """Whether ratio and likely are of the time alone, at any price."""


def verify(
    migration: Migration,
    profile: Profile,
    spec: ProfiledJobSpec,
    variation: Variation | None = None,
    *,
    yardstick: Yardstick = Yardstick.OBJECTIVE,
    last: bool = False,
) -> Verification:
    """Judge a migration by a complete Profile of its target Revision, by how the job's windows differ, and by what was
    promised. yardstick: what it was made for; last: whether there is no time for another window.

    Raises ValueError if the Profile is of another Revision, or lacks throughput in the migration's unit: a caller's
    mistake.
    """
    window = spec.profiling.window.total_seconds()
    after = work_of(spec).measured(migration, profile, variation, window)
    if after is None:
        about = f"{migration.id} to r{migration.target.revision}"
        raise ValueError(f"profile of r{profile.key.revision} can't verify {about}")
    before = _before(migration, variation, window)
    doubt = doubt_between_places(variation, max(migration.baseline_windows, 1), after.windows)
    if before is None:
        cost = measured_cost_per_million(after.mean, after.price)
        return Verification(Verdict.SAME, Reason.BELOW_PREDICTION, after.mean, cost, doubt=doubt, unit=profile.unit)
    apart = None
    if variation is not None and migration.stopped_at is not None:
        apart = (variation.as_of - migration.stopped_at) / window - len(after.rates)
    money, rules = _terms(spec.targets.objective, yardstick)
    found = compare(before, after, apart, promise_of(migration), money=money, last=last)
    return _verification(migration, found, verdict(found, rules), doubt, by_time=money == 0.0)


def _before(migration: Migration, variation: Variation | None, window: float) -> RateSeries | None:
    """What the job did where it was; None where that is not known. window: seconds."""
    if not migration.baseline:
        return None
    price = migration.source.cost_per_hour
    return RateSeries(
        migration.baseline,
        max(migration.baseline_windows, 1),
        migration.baseline_rates,
        seconds=window,
        price=None if price is None else price * migration.useful,  # of the time that interruptions leave
        variation=variation,
    )


def _terms(objective: Objective, yardstick: Yardstick) -> tuple[float, tuple[Rule, ...]]:
    """How much dollars count for the verdict, as of `compare`, and what is asked. A move for a missed target is judged
    by what that target limits."""
    if yardstick is Yardstick.TIME or (objective is Objective.MINIMIZE_TIME and yardstick is not Yardstick.COST):
        return 0.0, TO_STAY if yardstick is Yardstick.NONE else TO_BE_FASTER
    money = 1.0 if objective is Objective.MINIMIZE_COST or yardstick is Yardstick.COST else 0.5
    return money, TO_STAY if yardstick is Yardstick.NONE else RULES


def _verification(
    migration: Migration, found: Difference, judged: Verdict, doubt: float, *, by_time: bool
) -> Verification:
    realised = found.after.mean
    kept = migration.predicted is None or realised >= migration.predicted.low
    reason = Reason.DELIVERED if judged is Verdict.BETTER and kept else Reason.BELOW_PREDICTION
    if judged is Verdict.IDLE:
        return Verification(judged, Reason.ROLLED_BACK, 0.0, None, unit=migration.unit)
    measured, likely = found.by_means, found.likely
    if judged is Verdict.DEARER and found.dollars is not None:
        measured, likely = measured + found.dollars - likely, found.dollars
    return Verification(
        judged,
        Reason.ROLLED_BACK if judged.undoes else reason,
        realised,
        measured_cost_per_million(realised, found.after.price),
        None if found.price is None else math.exp(measured),
        None if found.price is None else math.exp(likely),
        doubt,
        math.expm1(tolerance(found)),
        migration.unit,
        by_time,
    )
