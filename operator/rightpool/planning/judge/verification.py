"""Verification: did a move deliver what it promised? Realised against predicted, and against what was before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from rightpool.api.choices import Objective
from rightpool.api.conditions import Reason
from rightpool.api.estimate import Z80
from rightpool.api.ledger import measured_cost_per_million
from rightpool.api.migration import Migration
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.variation import Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.judge.idling import longest_silence, mostly_silent
from rightpool.planning.judge.promise import promise_of
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.profiles.profile import Profile
from rightpool.profiles.silence import silent_for, silent_windows, working
from rightpool.profiles.slow_start import begins_with_start, known_before
from rightpool.profiles.steadiness import SPANS, Pace, doubt_between_places, doubt_of_ratio, pace, quantile_of_t

if TYPE_CHECKING:
    from rightpool.profiles.step_change import StepChange

# Less than this is never called worse or better, however quiet the job is.
NOISE_FLOOR = 0.03
# A move is undone where it is worse by so many standard deviations of what two spans differ by themselves: Student's t
# at the probability of this z, 0.5%. It is looked at with every window, so that less would undo too many right ones.
UNDONE_Z = 2.58
# The last time that it is looked at, 40%: what is likely worse is not kept for want of proof.
LIKELY_Z = 0.25
# It is called better, and is not looked at any longer, at 10%.
BETTER_Z = Z80
# No better and no worse: not looked at any longer where it is worse by more than this with less than 10%.
TOLERATED = 0.05
# Nothing is undone by fewer windows than this: one may be an evaluation.
FEWEST_WINDOWS = 3
# It is looked at so many times.
MOST_WINDOWS = 24
# What breaks its promise, and seems no worse than what was before, is looked at for an hour of windows: a neighbour may
# have left with the move, or a pause may have been in the windows before it.
SHORT_WINDOWS = SPANS[-1]
# A promise that is broken with more than this probability is refuted, and what was measured counts alone.
REFUTED = 0.20
# The same the last time: hardly more than BROKEN, which it is before anything is measured. With BROKEN itself one right
# move in a hundred more is undone, for a neighbour that came with it; with 0.15 more wrong ones are kept.
REFUTED_LAST = 0.12


class Verdict(StrEnum):
    """BETTER: stay. SAME: no worse beyond noise, moving back would only cost again. WORSE: undo."""

    BETTER = "Better"
    SAME = "Same"
    WORSE = "Worse"


@dataclass(frozen=True, slots=True)
class Verification:
    """What a move delivered; reporting/migration_texts.py says it in words."""

    verdict: Verdict
    """How the result compares with what was before, in the terms of the objective."""
    reason: Reason
    """Delivered, BelowPrediction or RolledBack."""
    throughput: float
    """Realised."""
    cost_per_million: float | None
    """Realised; None where the price is unknown."""
    ratio: float | None = None
    """Realised over baseline of what the objective minimises, as it was measured; None where there is no baseline."""
    likely: float | None = None
    """The same by what was measured and what was promised, each by how sure it is."""
    doubt: float = 0.0
    """Standard deviation of the log of realised over baseline, by how such spans of this job on two places differ."""
    tolerance: float = 0.0
    """From what share on it would be called worse."""
    settled: bool = True
    """Whether another window could hardly say otherwise."""
    dearer: bool = False
    """Whether it was to be faster, is not, and costs more: then ratio and likely are those of the cost."""
    unit: WorkUnit = WorkUnit.SAMPLES
    """What throughput counts."""
    by_time: bool = False
    """Whether ratio and likely are of the time alone, at any price."""


def regression_ratio(
    migration: Migration,
    realised: float,
    realised_cost: float | None,
    objective: Objective,
    yardstick: Yardstick = Yardstick.OBJECTIVE,
) -> float | None:
    """Realised over baseline of what the objective minimises; below 1 is better. None where the baseline is unknown.

    MinimizeTime: seconds per unit of work. MinimizeCost: dollars per unit. Balanced: their geometric mean. A move for a
    missed target is judged by what that target limits.
    """
    if not migration.baseline or realised <= 0:
        return None
    time = migration.baseline / realised
    if _for_time(objective, yardstick):
        return time
    if realised_cost is None or not migration.baseline_cost:
        return None
    cost = realised_cost / migration.baseline_cost
    by_cost = objective is Objective.MINIMIZE_COST or yardstick is Yardstick.COST
    return cost if by_cost else math.sqrt(cost * time)


def _for_time(objective: Objective, yardstick: Yardstick) -> bool:
    """Whether a move was made to be faster, at any price."""
    by_time = objective is Objective.MINIMIZE_TIME and yardstick is not Yardstick.COST
    return by_time or yardstick is Yardstick.TIME


def _cost_ratio(migration: Migration, realised_cost: float | None) -> float | None:
    """Dollars for a unit of work, realised over baseline; None where one of them is unknown. Of what cost nothing
    before, any price is infinitely more."""
    if realised_cost is None or migration.baseline_cost is None:
        return None
    if migration.baseline_cost > 0.0:
        return realised_cost / migration.baseline_cost
    return math.inf if realised_cost > 0.0 else 1.0


def verifiable(migration: Migration, profile: Profile) -> bool:
    """Whether the Profile says what the move delivered: complete, of the target, and in the unit of the promise."""
    if profile.key.revision != migration.target.revision or not profile.complete:
        return False
    return migration.unit is profile.unit or (migration.baseline is None and migration.predicted is None)


def windows_until_settled(variation: Variation | None, before: int, saving: float) -> int:
    """How many windows of a job that varies like this it takes until a move that delivers is not looked at any longer.

    before: windows of the baseline. saving: share of what the objective minimises that the move saves.
    """
    gain = -math.log1p(-min(max(saving, 0.0), 1.0 - 1e-9))
    for windows in range(1, MOST_WINDOWS):
        sd, freedom = doubt_of_ratio(variation, before, windows)
        if max(NOISE_FLOOR, quantile_of_t(BETTER_Z, freedom) * sd) <= gain + math.log1p(TOLERATED):
            return windows
    return MOST_WINDOWS


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
    promised: a few windows of a job that varies much say less than that.

    A promise does not prove itself: it can only make it take longer until a move that breaks it is kept. yardstick:
    what it was made for; last: whether there is no time for another window.

    Raises ValueError if the Profile is of another Revision, or lacks throughput in the migration's unit: a caller's
    mistake.
    """
    throughput = profile.throughput
    if not verifiable(migration, profile) or throughput is None:
        about = f"{migration.id} to r{migration.target.revision}"
        raise ValueError(f"profile of r{profile.key.revision} can't verify {about}")
    seen = pace(variation, migration.target.revision, profile.unit)
    there = variation is not None and variation.revision == migration.target.revision
    recent = variation.recent if variation is not None and there else ()
    tells = not mostly_silent(migration, recent, spec.profiling.window.total_seconds())
    last = last or (seen is not None and seen.windows >= MOST_WINDOWS and tells)
    # What the job does at first wherever it starts says nothing of the place.
    length = spec.profiling.window.total_seconds()
    part = () if variation is None else _part_of_start(migration, variation, length)
    start = known_before(variation, migration.target.revision)
    slow = 0 if start is None else start.in_windows(length)
    starts = start is not None and (seen is None or seen.windows <= slow)
    before = max(migration.baseline_windows, 1)
    if part:  # what was before was of a slow start, too, in which later windows may be faster
        seen, starts = Pace(sum(part) / len(part), len(part)), len(part) < before
    elif slow and seen is not None and not starts:
        seen = pace(variation, migration.target.revision, profile.unit, seen.windows - slow)
    realised = throughput.value if seen is None else seen.rate
    windows = 1 if seen is None else seen.windows
    realised_cost = measured_cost_per_million(realised, migration.target.cost_per_hour)
    longest, usual_rate = longest_silence(length, migration.baseline_rates), migration.baseline or math.inf
    hangs = silent_for(recent, usual_rate) >= longest
    if (hangs or realised <= 0.0) and migration.baseline:
        return Verification(Verdict.WORSE, Reason.ROLLED_BACK, 0.0, None, settled=last or hangs, unit=profile.unit)
    # Nothing is settled while a program is silent, nor before it has worked for some windows.
    pauses = _in_pause(recent, longest, usual_rate) and not last
    ratio = regression_ratio(migration, realised, realised_cost, spec.targets.objective, yardstick)
    usual, pairs = doubt_of_ratio(variation, before, windows)
    doubt = doubt_between_places(variation, before, windows)
    if ratio is None or not migration.baseline:
        return Verification(
            Verdict.SAME, Reason.BELOW_PREDICTION, realised, realised_cost, doubt=doubt, unit=profile.unit
        )
    by_means = math.log(realised / migration.baseline)
    measured, sd, freedom = by_means, usual, pairs
    step = None if seen is None or part else _step(migration, spec, variation, windows)
    if step is not None:
        measured, sd, freedom = step.log, step.sd, step.freedom
    promise, believed, weight, short = promise_of(migration), measured, 1.0, False
    if promise is not None:
        broken = promise.broken(measured, sd)
        if broken <= (REFUTED_LAST if last else REFUTED):
            weight = promise.weight(sd)
        short = broken > REFUTED and measured < promise.log and windows < SHORT_WINDOWS
        believed = weight * measured + (1.0 - weight) * promise.log
    # The ratio falls with the rate, by cost as by time.
    likely = ratio * math.exp(by_means - believed)
    change = math.log(likely) if likely > 0.0 else -math.inf  # what costs nothing now
    measured_change = math.log(ratio) + by_means - measured if ratio > 0.0 else -math.inf
    # A few windows that are alike do not say that the job has no neighbours: what was seen of it before counts too.
    limit = LIKELY_Z if last else UNDONE_Z
    differs = max(quantile_of_t(limit, freedom) * sd, quantile_of_t(limit, pairs) * usual)
    undone = max(NOISE_FLOOR, differs * math.sqrt(weight))
    noise = quantile_of_t(BETTER_Z, freedom) * sd
    better = max(NOISE_FLOOR, noise * math.sqrt(weight))

    def found(verdict: Verdict, reason: Reason, *, settled: bool = True) -> Verification:
        tolerance = math.expm1(undone)
        settled = settled and (last or not starts or verdict is Verdict.BETTER) and not pauses
        return Verification(
            verdict,
            reason,
            realised,
            realised_cost,
            ratio,
            likely,
            doubt,
            tolerance,
            settled,
            unit=profile.unit,
            by_time=_for_time(spec.targets.objective, yardstick),
        )

    def goes_on(rate: float) -> bool:
        """Whether the newest window is slower than this, too. What is over by then is no reason to go back: the program
        may have failed, and loaded again. Where a part of a start is all that compares, nothing newer comes."""
        newest = throughput.value if variation is None or seen is None else (part or variation.recent)[-1]
        return newest < rate or len(part) == before

    even = ratio * realised  # the rate at which it would be no worse
    if yardstick is Yardstick.NONE and change >= -better:
        # What is much slower in its first window may hang since its first steps.
        settled = last or change <= undone or windows >= FEWEST_WINDOWS
        return found(Verdict.SAME, Reason.BELOW_PREDICTION, settled=settled)
    if change > undone:
        settled = last or (windows >= FEWEST_WINDOWS and goes_on(even))
        return found(Verdict.WORSE, Reason.ROLLED_BACK, settled=settled)
    most = measured_change + max(NOISE_FLOOR, noise)
    if change >= -better:
        cost = _cost_ratio(migration, realised_cost) if _for_time(spec.targets.objective, yardstick) else None
        if cost is not None and cost * likely / ratio > math.exp(undone):
            # The same for more money is a loss, once it is unlikely to be faster by more than is tolerated.
            least = measured_change - max(NOISE_FLOOR, noise)
            surely = least >= -math.log1p(TOLERATED)
            settled = last or (windows >= FEWEST_WINDOWS and surely and goes_on(even * (1.0 + TOLERATED)))
            loss = found(Verdict.WORSE, Reason.ROLLED_BACK, settled=settled)
            return replace(loss, ratio=cost, likely=cost * likely / ratio, dearer=True)
        # What seems dearer and no faster is looked at for as long as it may be: it is not the same.
        dear = cost is not None and cost * likely / ratio > 1.0 + TOLERATED
        settled = last or (most <= math.log1p(TOLERATED) and not short and not dear)
        return found(Verdict.SAME, Reason.BELOW_PREDICTION, settled=settled)
    kept = migration.predicted is None or realised >= migration.predicted.low
    reason = Reason.DELIVERED if kept else Reason.BELOW_PREDICTION
    return found(Verdict.BETTER, reason, settled=last or (most <= 0.0 and not short))


def _part_of_start(migration: Migration, variation: Variation, window: float) -> tuple[float, ...]:
    """The windows of the target that are as old as those of the baseline were; none unless these were, even in part, of
    a slow start. window: seconds."""
    slow, began, since = variation.slow_start, migration.source.since, migration.target.since
    if slow is None or began is None or since is None or migration.stopped_at is None:
        return ()
    before = max(migration.baseline_windows, 1)
    first = max(round((migration.stopped_at - began) / window) - before, 0)
    seen = variation.revision == migration.target.revision and begins_with_start(variation, since, window)
    return variation.recent[first : first + before] if seen and first < slow.in_windows(window) else ()


def _in_pause(rates: Sequence[float], longest: int, usual: float) -> bool:
    """Whether a program is silent, or was but for a few of these windows, and for no longer than it may."""
    few = silent_for(rates, usual) > 0 or len(working(rates, usual)) < FEWEST_WINDOWS
    return few and 0 < silent_windows(rates, usual) < longest


def _step(migration: Migration, spec: ProfiledJobSpec, variation: Variation | None, windows: int) -> StepChange | None:
    """The change by the windows on either side of the move; None where those before are not known one by one."""
    if variation is None or not migration.baseline_rates or migration.stopped_at is None:
        return None
    # Commands that read accounts do without NumPy.
    from rightpool.profiles.step_change import step_change

    before, after = migration.baseline_rates, variation.recent[-windows:]
    window = spec.profiling.window.total_seconds()
    apart = (variation.as_of - migration.stopped_at) / window - len(after)
    usual = migration.baseline or math.inf
    if silent_windows(after, usual) < longest_silence(window, before):
        # How fast it is while it works. More silence than that is the place's doing.
        worked = working(before), working(after, usual)
        if min(map(len, worked)) >= FEWEST_WINDOWS:
            before, after = worked
    return step_change(before, after, max(apart, 0.0))
