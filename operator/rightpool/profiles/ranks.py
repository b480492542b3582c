"""Judging by rank: whether one rank holds up the others.

A rank that waits in a collective keeps its chip busy: NCCL's kernels spin. So the straggler is not the chip that does
little; it is the one that never waits for others. Ranks that wait for data take turns in being late, and are none.
"""

from __future__ import annotations

from typing import Final

from rightpool.profiles.bottleneck import Bottleneck, Case, Diagnosis
from rightpool.profiles.findings import RankComputesMore, RankIdles, RankNeverWaits, RankStarves
from rightpool.profiles.sample import Field, Quality

# One rank is busier than another by a relative and by an absolute amount; the latter excludes chips of low load.
_LEAST_TO_MOST: Final = 0.75
_GAP: Final = 0.15
_BUSY_TO_MEAN: Final = 0.8
# Compute units have to show this part of the waiting that a trace says: a trace that says more distorts.
_SHOWN: Final = 0.5
# Waiting for others that is due to one rank: the mean above that of the rank that waits least.
SKEW: Final = 0.15
MOSTLY_SKEW: Final = 0.5
# Compute units of a chip that works all the time are active for at most this share.
_SATURATED: Final = 0.9
# From this share of the step on, waiting for data is why ranks are late.
WAITS_FOR_INPUT: Final = 0.2
# Below this share of the step a rank does not wait for data.
_WELL_FED: Final = 0.1


def straggler(case: Case) -> Diagnosis | None:
    """One rank that the others wait for, and why."""
    if case.profile.chips < 2:
        return None
    if waits_for_input(case):
        return _one_rank_waits(case)
    return _by_trace(case) or _by_compute_units(case) or _by_busy_time(case)


def input_wait_share(case: Case) -> float:
    """Share of the step in which chips do nothing because they, or ranks that they wait for, have no data."""
    return min(max(case.values.get(Field.INPUT_WAIT) or 0.0, 0.0), _slack(case))


def saving_share(case: Case) -> float:
    """The same because they, or a rank that they wait for, save."""
    return min(max(case.values.get(Field.SAVING) or 0.0, 0.0), _slack(case) - input_wait_share(case))


def _slack(case: Case) -> float:
    """Share of the step in which the chip does not work; 0 where that is not measured.

    At most this much of what is measured on the host counts, which may be ahead of the chip. Of one chip it is what is
    not busy. Several are busy while they wait in a collective, and busy time from utilization samples says too much;
    compute units tell.
    """
    busy = case.profile.readings.get(Field.CHIP_BUSY)
    if busy is None:
        return 0.0
    slack = 1.0 - min(busy.value, 1.0)
    active = case.values.get(Field.COMPUTE_ACTIVE)
    if active is not None and (case.profile.chips > 1 or busy.quality is Quality.DERIVED):
        slack = max(slack, 1.0 - min(active / _SATURATED, 1.0))
    return max(0.0, slack)


def waits_for_input(case: Case) -> bool:
    """Whether waiting for data limits the job."""
    return input_wait_share(case) >= case.threshold(WAITS_FOR_INPUT, Bottleneck.INPUT_BOUND, Bottleneck.STRAGGLER)


def _one_rank_waits(case: Case) -> Diagnosis | None:
    """The loader of a single rank is slow; where all ranks starve it is the job's."""
    mean, least = case.values.get(Field.INPUT_WAIT), case.values.get(Field.LEAST_INPUT_WAIT)
    if mean is None or least is None or least >= _WELL_FED or least > (1.0 - MOSTLY_SKEW) * mean:
        return None
    return Diagnosis(Bottleneck.STRAGGLER, RankStarves(mean, least))


def _by_trace(case: Case) -> Diagnosis | None:
    mean, least = case.values.get(Field.EXPOSED_COMMUNICATION), case.values.get(Field.LEAST_EXPOSED)
    if mean is None or least is None:
        return None
    skew = mean - least
    if skew < case.threshold(SKEW, Bottleneck.STRAGGLER) or least > (1.0 - MOSTLY_SKEW) * mean:
        return None
    if not _believed(case, skew / max(1.0 - least, skew)):
        return None
    return Diagnosis(Bottleneck.STRAGGLER, RankNeverWaits(mean, least))


def _believed(case: Case, waits: float) -> bool:
    """Whether traces may accuse a rank. They cover a few steps, which they slow: the chips' own counters go before, and
    without these one trace alone is not enough.

    waits: share of the time that the one works in which the others do not, on average. Their compute units then do so
    much less than its own.
    """
    most, mean = case.values.get(Field.MOST_COMPUTE_ACTIVE), case.values.get(Field.COMPUTE_ACTIVE)
    if most is None or mean is None:
        return case.profile.readings[Field.EXPOSED_COMMUNICATION].quality is Quality.MEASURED
    return most - mean >= case.threshold(_SHOWN, Bottleneck.STRAGGLER) * waits * most


def _by_compute_units(case: Case) -> Diagnosis | None:
    most, least = case.values.get(Field.MOST_COMPUTE_ACTIVE), case.values.get(Field.LEAST_COMPUTE_ACTIVE)
    if most is None or least is None:
        return None
    gap, relative = case.threshold(_GAP, Bottleneck.STRAGGLER), case.weighted(_LEAST_TO_MOST, Bottleneck.STRAGGLER)
    if most - least < gap or least > relative * most:
        return None
    return Diagnosis(Bottleneck.STRAGGLER, RankComputesMore(case.profile.chips, most, least))


def _by_busy_time(case: Case) -> Diagnosis | None:
    """A chip that idles where the others are busy is late for them: it waits for its host, not in a collective. One
    that saves for all is not late."""
    mean, slowest = case.values.get(Field.CHIP_BUSY), case.values.get(Field.SLOWEST_CHIP_BUSY)
    if mean is None or slowest is None:
        return None
    gap = mean - slowest - saving_share(case)
    if gap <= case.threshold(1.0 - _BUSY_TO_MEAN, Bottleneck.STRAGGLER) * mean:
        return None
    if gap < case.threshold(_GAP, Bottleneck.STRAGGLER):
        return None
    return Diagnosis(Bottleneck.STRAGGLER, RankIdles(case.profile.chips, slowest, mean))
