"""What another chip does to the chip's part of a step: the chip model between all pools of a fleet, in tables.

Where counters of a job are known, they say what it demands: SM activity is demand for arithmetic units, DRAM activity
for bandwidth, and what neither explains of the time is latency, which no chip shortens. On three slices of one chip
that has 4% median error where peak FLOP/s has 16% (`python -m benchmarks.prediction --counters`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.chip_model import STATIC_RULE, UNPUBLISHED_POWER_SD, ChipModel, Comparison
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.precision import CLASSES, WEIGHTS, peak, peaks, weights

# Between pools of one chip: hosts, drivers, cooling.
SAME_CHIP_SD: Final = 0.05
# A vendor's stack that the job has not run on.
OTHER_VENDOR_SD: Final = 0.25
# Of the sd of a job's own exponents, what counters leave; of that of its level, what measured waiting leaves.
COUNTED: Final = 0.45
AWAITED: Final = 0.7

# Demand, fitted on slices of one chip. Work on the chip takes ((S/R)^P + (M/B)^P)^(1/P), with S the activity of SMs, R
# and B the factors on arithmetic and bandwidth, and M = DEMAND·D/√(1 - (D/COPY)²), with D the activity of DRAM: the
# nearer memory is to what a copy reaches, the more of the SMs' activity is waiting for it. SMs that are active for less
# than FULL of the busy time wait for LATENCY times what is missing.
FULL: Final = 0.86
LATENCY: Final = 1.4
DEMAND: Final = 1.4
POWER: Final = 2.0
COPY: Final = 0.89  # DRAM activity of a device copy on an H200
_NEAREST: Final = 0.99  # to COPY: above it nothing but memory counts

# Matrix and memory activity without SM activity: how far they move weight between the exponents.
WEIGHT_SHIFT: Final = 0.30


@value_object
class Transfer:
    """Tables by class of precision (the last is an unknown one), where a job is, and where it would be; in pools."""

    log: Floats
    """Log of how much faster the same work is; NaN where figures are missing."""
    arithmetic: Floats
    """Log of the ratio of peak FLOP/s."""
    bandwidth: Floats
    """Log of the ratio of memory bandwidths."""
    drift: Floats
    """Exponents of arithmetic and bandwidth, less those of the static rule; by class."""
    beyond: Floats
    """The part of `log` that specifications do not tell: what was learned of the chips."""
    variances: Floats
    """Of `log`, by what is known of the job (first axis): nothing, how long it waits, its counters too."""

    @classmethod
    def among(cls, chips: Sequence[Accelerator], model: ChipModel) -> Transfer:
        """Between pools of these chips."""
        known = model.including(chips)
        parts = [_of_class(chips, known, kind) for kind in range(len(CLASSES))]
        columns = [np.array(column) for column in zip(*parts, strict=True)]
        log, arithmetic, drift, beyond, variances = columns  # variances: class, knowledge, from, to
        share = weights(~np.isnan(log))
        mixed = np.nansum(share * log, axis=0)
        apart = np.nansum(share * (log - mixed) ** 2, axis=0)
        counts = share > 0.01
        widest = np.max(np.where(counts[:, np.newaxis], variances, 0.0), axis=0)
        lonely = np.nansum(share[:, np.newaxis] * variances, axis=0)
        widest = np.where(widest > 0.0, widest, lonely) + apart
        none = np.isnan(share).all(axis=0)
        mixed = np.where(none, np.nan, mixed)
        memory = np.array([chip.memory_bandwidth if chip.memory_bandwidth > 0 else np.nan for chip in chips])
        return cls(
            log=np.concatenate((log, mixed[np.newaxis])),
            arithmetic=np.concatenate((arithmetic, np.nansum(share * arithmetic, axis=0)[np.newaxis])),
            bandwidth=_ratios(np.log(memory)),
            drift=np.concatenate((drift, np.average(drift, axis=0, weights=WEIGHTS)[np.newaxis])),
            beyond=np.concatenate((beyond, np.nansum(share * beyond, axis=0)[np.newaxis])),
            variances=np.moveaxis(np.concatenate((variances, widest[np.newaxis])), 1, 0),
        )

    def by_counters(self, kind: Ints, source: Ints, target: Ints, sm_active: Floats, memory_active: Floats) -> Floats:
        """Log of how much faster the work on the chip is, by what counters say that it demands."""
        arithmetic, bandwidth = self.arithmetic[kind, source, target], self.bandwidth[source, target]
        share, drift = _share_of_arithmetic(sm_active, memory_active), self.drift[kind].T
        here = np.zeros(len(kind))
        faster: Floats = _risen(share, arithmetic, bandwidth, drift) - _risen(share, here, here, drift)
        return faster + self.beyond[kind, source, target]


def eased(sm_active: Floats, memory_active: Floats, arithmetic: Floats) -> Floats:
    """Log of how much faster work with these activities is where arithmetic alone is faster by this logarithm."""
    return _eased(_share_of_arithmetic(sm_active, memory_active), arithmetic, 0.0)


def _share_of_arithmetic(sm_active: Floats, memory_active: Floats) -> Floats:
    room = np.sqrt(1.0 - np.minimum(memory_active / COPY, _NEAREST) ** 2)
    first, second = sm_active**POWER, (DEMAND * memory_active / room) ** POWER
    share: Floats = first / np.maximum(first + second, 1e-12)
    return share


def _eased(share: Floats, arithmetic: Floats, bandwidth: Floats | float) -> Floats:
    time = share * np.exp(-POWER * arithmetic) + (1.0 - share) * np.exp(-POWER * bandwidth)
    faster: Floats = -np.log(time) / POWER
    return faster


def _risen(share: Floats, arithmetic: Floats, bandwidth: Floats, drift: Floats) -> Floats:
    """Demand that a drift is added to later. Where demand no longer cares for more of one of the two, a drift below 0
    would make a chip slower that has more: beyond that point this rises by as much. Both can't be beyond it."""
    share = np.clip(share, 1e-6, 1.0 - 1e-6)
    odds = np.log(share / (1.0 - share))
    with np.errstate(divide="ignore"):
        turns = np.where(drift < 0.0, np.log((1.0 + drift) / np.maximum(-drift, 0.0)), np.inf) / POWER
    flops = np.minimum(arithmetic, bandwidth + odds / POWER + turns[0])
    memory = np.minimum(bandwidth, arithmetic - odds / POWER + turns[1])
    faster: Floats = _eased(share, flops, memory) + drift[0] * (flops - arithmetic) + drift[1] * (memory - bandwidth)
    return faster


def latency(busy: Floats, sm_active: Floats, exposed: Floats) -> Floats:
    """The share of the step for which a busy chip waits for itself: launches, dependencies, small kernels.

    busy: without the communication that is exposed, in which the units have nothing to do.
    """
    idle = FULL * (1.0 - exposed) - sm_active
    return np.minimum(np.clip(idle, 0.0, 1.0) * LATENCY, np.maximum(busy - 0.02, 0.0))


def _of_class(chips: Sequence[Accelerator], model: ChipModel, kind: int) -> tuple[Floats, ...]:
    rows = model.design(chips, kind)
    begin = model.index[f"flops/{CLASSES[kind]}"]
    # Exponents of arithmetic and bandwidth are not negative, whatever was learned.
    learned = model.mean[:2] + model.mean[begin : begin + 2]
    lift = np.maximum(-learned, 0.0)
    lines = rows @ model.mean + rows[:, :2] @ lift
    specified = rows[:, :3] @ np.array(STATIC_RULE)
    same = _same([chip.key for chip in chips])
    other_vendor = ~_same([chip.vendor.name for chip in chips])
    unpublished = np.array([0.0 if chip.power_watts else STATIC_RULE[2] * UNPUBLISHED_POWER_SD for chip in chips])
    with np.errstate(invalid="ignore"):
        log, plain = _ratios(lines), _ratios(specified)
        common = rows @ model.covariance @ rows.T
        found = []
        for counted, awaited in ((1.0, 1.0), (1.0, AWAITED), (COUNTED, AWAITED * COUNTED)):
            whole = common + model.of_a_job(chips, kind, counted, awaited)
            own = np.diag(whole)
            variance = own[:, np.newaxis] + own[np.newaxis, :] - 2.0 * whole
            variance = variance + unpublished[:, np.newaxis] ** 2 + unpublished[np.newaxis, :] ** 2
            variance = np.maximum(variance, 0.0) + np.where(other_vendor, OTHER_VENDOR_SD**2, 0.0)
            found.append(np.where(same, SAME_CHIP_SD**2, variance + SAME_CHIP_SD**2))
    arithmetic = np.where(same, 0.0, _ratios(np.log(peaks(chips, kind))))
    valid = same | ~np.isnan(log)
    log, beyond = np.where(same, 0.0, log), np.where(same, 0.0, log - plain)
    empty = np.where(valid, 0.0, np.nan)
    drift = learned + lift - STATIC_RULE[:2]
    return log + empty, arithmetic + empty, drift, beyond + empty, np.array(found)


def nominal_rate(accelerator: Accelerator, with_power: bool) -> float | None:
    """Work per chip in arbitrary units, to rank chips before a job has run anywhere. None where specs are missing.

    with_power: whether every chip that is job_speeds has its power published; rates with and without do not compare.
    """
    flops = next((rate for kind in range(len(CLASSES)) if (rate := peak(accelerator, kind)) is not None), None)
    if flops is None or accelerator.memory_bandwidth <= 0:
        return None
    log = STATIC_RULE[0] * math.log(flops) + STATIC_RULE[1] * math.log(accelerator.memory_bandwidth)
    if not with_power:
        return math.exp(log / (1.0 - STATIC_RULE[2]))
    return None if not accelerator.power_watts else math.exp(log + STATIC_RULE[2] * math.log(accelerator.power_watts))


def job_speeds(model: ChipModel, comparison: Comparison, chips: Sequence[Accelerator]) -> tuple[Floats, Floats]:
    """What a job that ran on several chips does on these: log rates, up to its size, and their covariance.

    The exponents that follow are kept from being negative: more arithmetic or bandwidth never slows a job down.
    """
    everywhere = [*comparison.chips, *chips]
    known, seen = model.including(everywhere), len(comparison.chips)
    rows = known.design(everywhere, comparison.kind)
    whole = rows @ known.covariance @ rows.T + known.of_a_job(everywhere, comparison.kind)
    inner = whole[:seen, :seen] + _ANY + comparison.sd**2 * np.eye(seen)
    gain = np.linalg.solve(inner, whole[:seen, seen:] + _ANY).T
    logs = np.array(comparison.logs)
    size = logs.mean()
    pull = np.linalg.solve(inner, logs - size - rows[:seen] @ known.mean)
    x = rows[:, :3]
    job = known.scales
    own = np.array([job.job_flops**2, job.job_bandwidth**2, 0.0])[:, np.newaxis] * x[:seen].T
    own += job.job_level**2 * np.outer(STATIC_RULE, x[:seen] @ np.array(STATIC_RULE))
    own *= known.own_variance
    begin = known.index[f"flops/{CLASSES[comparison.kind]}"]
    mean = known.mean[:3] + known.mean[begin : begin + 3]
    common = known.covariance[:3] + known.covariance[begin : begin + 3]
    axes = mean + (common @ rows[:seen].T + own) @ pull
    median = size + rows[seen:] @ known.mean + (whole[seen:, :seen] + _ANY) @ pull
    lift = np.maximum(-axes, 0.0) * np.array([1.0, 1.0, 0.0])
    centre = x[:seen].mean(axis=0)
    median = median + (x[seen:] - centre) @ lift
    covariance = whole[seen:, seen:] + _ANY - gain @ (whole[:seen, seen:] + _ANY)
    return median, covariance


_ANY: Final = 25.0


def _ratios(values: Floats) -> Floats:
    table: Floats = values[np.newaxis, :] - values[:, np.newaxis]
    return table


def _same(names: Sequence[str]) -> Bools:
    column = np.array(names)
    table: Bools = column[:, np.newaxis] == column[np.newaxis, :]
    return table
