"""What limits the work on a chip: how near it comes to its roofs.

A roof is what the chip can do at most: of its matrix units, of a pipe beside them (FP32, FP64, FP16), of its memory's
bandwidth. Integer units are none: gathers and scatters keep them busy with addresses while they wait for memory. Below
half of every roof nothing on the chip is the limit, unless its compute units are all occupied: then kernels of many
kinds follow each other, and the nearest roof is named.
"""

from __future__ import annotations

from typing import Final

from rightpool.profiles.bottleneck import Bottleneck, Case, Diagnosis
from rightpool.profiles.closeness import Arithmetic, Roofs
from rightpool.profiles.health import power_limit
from rightpool.profiles.sample import Field, Quality
from rightpool.profiles.shares import ATTAINABLE, Roofline, Shares, roofline
from rightpool.profiles.work_findings import (
    ArithmeticNear,
    BandwidthNear,
    CommunicationUnknown,
    ComputesNothing,
    KernelsSmall,
    KernelsSparse,
    KernelsWait,
    LaunchesUnknown,
    NoRoofNear,
    NothingCounted,
    OneRoofCounted,
    OtherUnitsCompute,
)

# Below this activity the compute units of a busy chip do nothing: it copies, or kernels wait.
_NOT_COMPUTING: Final = 0.05
# Closeness that names a roof by itself.
_NEAR: Final = 0.5
# Closeness that names a roof where compute units are occupied for this share of the time that the chip works.
_FAINT: Final = 0.25
_OCCUPIED: Final = 0.7
# Waiting that is worth a word beside the roof.
_WAITS: Final = 0.1
# Below this share kernels are too small for the chip, or too far apart.
_SPARSE: Final = 0.5
# A board that is limited to less than this share of its data sheet is worth a word.
_LIMITED: Final = 0.95
_ON_CHIP: Final = (Bottleneck.COMPUTE, Bottleneck.MEMORY_BANDWIDTH)
_LAUNCH: Final = (Bottleneck.HOST_BOUND, Bottleneck.SMALL_KERNELS, Bottleneck.MEMORY_CAPACITY)
# From this share of the time on, kernels follow each other without a gap that is worth a word.
_GAPLESS: Final = 0.95
_PIPES: Final = (Field.FP32_ACTIVE, Field.FP64_ACTIVE, Field.FP16_ACTIVE)


def on_chip(case: Case, shares: Shares | None) -> Diagnosis:
    """The limit on the chip by the counters that exist, or Unknown with what would tell."""
    return _not_computing(case) or _by_roofs(case, shares)


def at_a_roof(case: Case, shares: Shares) -> Diagnosis | None:
    """The limit on the chip, where it takes more of the step than chips wait; None where it does not."""
    roofs, waits = _roofs(case, shares.chip, shares.roofline), 1.0 - shares.chip
    if roofs.nearest is None or roofs.nearest < case.threshold(_NEAR, *_ON_CHIP):
        return None
    if shares.communication > shares.idle:
        return None  # communication moves memory too, so that counters do not tell what the work itself needs
    if case.weighted(shares.chip * min(roofs.nearest, 1.0), *_ON_CHIP) < waits:
        return None
    return _nearer(case, roofs, waits if waits >= _WAITS else None)


def _not_computing(case: Case) -> Diagnosis | None:
    busy, active = case.values.get(Field.CHIP_BUSY), case.values.get(Field.COMPUTE_ACTIVE)
    if busy is None or active is None or active >= _NOT_COMPUTING:
        return None
    return Diagnosis(Bottleneck.HOST_BOUND, ComputesNothing(case.accelerator.key, busy, active))


def _by_roofs(case: Case, shares: Shares | None) -> Diagnosis:
    working = shares.chip if shares is not None else (case.values.get(Field.CHIP_BUSY) or 1.0)
    roofs = _roofs(case, working, shares.roofline if shares is not None else None)
    if roofs.nearest is None:
        return Diagnosis(Bottleneck.UNKNOWN, NothingCounted(case.profile.chips))
    active = case.values.get(Field.COMPUTE_ACTIVE)
    occupied = active is not None and active >= case.threshold(_OCCUPIED, *_ON_CHIP) * min(working, 1.0)
    near = roofs.nearest >= case.threshold(_NEAR, *_ON_CHIP)
    if near:
        return _nearer(case, roofs)
    if shares is None:
        return Diagnosis(Bottleneck.UNKNOWN, CommunicationUnknown(case.profile.chips, roofs))
    if roofs.matrix is None or roofs.bandwidth is None:
        if occupied and roofs.nearest >= case.threshold(_FAINT, *_ON_CHIP) and roofs.pipe is not None:
            return _nearer(case, roofs)
        return Diagnosis(Bottleneck.UNKNOWN, OneRoofCounted(roofs))
    if active is None:
        return Diagnosis(Bottleneck.UNKNOWN, LaunchesUnknown(roofs))
    if occupied:
        return _occupied(case, roofs, active)
    if active < case.weighted(_SPARSE, *_LAUNCH) * min(working, 1.0):
        return _sparse(case, roofs, active, working)
    return Diagnosis(Bottleneck.UNKNOWN, NoRoofNear(case.accelerator.key, active, roofs))


def _sparse(case: Case, roofs: Roofs, active: float, working: float) -> Diagnosis:
    """Compute units have nothing to do for most of the time: between kernels, or beside them."""
    chip, busy = case.accelerator.key, case.profile.readings.get(Field.CHIP_BUSY)
    gapless = busy is not None and busy.quality is Quality.MEASURED  # utilization does not see gaps
    if not gapless or working < case.threshold(_GAPLESS, Bottleneck.SMALL_KERNELS):
        return Diagnosis(Bottleneck.HOST_BOUND, KernelsSparse(chip, active, roofs))
    used, total = case.values.get(Field.MEMORY_USED), case.values.get(Field.MEMORY_TOTAL)
    full = 0.0 if used is None or not total else used / total
    part = min(1.0, max(active / working, roofs.nearest or 0.0, full))
    return Diagnosis(Bottleneck.SMALL_KERNELS, KernelsSmall(chip, active, roofs, part))


def _occupied(case: Case, roofs: Roofs, active: float) -> Diagnosis:
    """Compute units always have work, and no single roof is near."""
    assert roofs.nearest is not None
    if roofs.nearest >= case.threshold(_FAINT, *_ON_CHIP):
        return _nearer(case, roofs)
    chip = case.accelerator.key
    if roofs.pipe is None:
        return Diagnosis(Bottleneck.COMPUTE, OtherUnitsCompute(chip, active, roofs, _arithmetic(case)))
    return Diagnosis(Bottleneck.UNKNOWN, KernelsWait(chip, active, case.values.get(Field.OCCUPANCY), roofs))


def _nearer(case: Case, roofs: Roofs, waits: float | None = None) -> Diagnosis:
    """The nearer of arithmetic and bandwidth. waits: as in the findings."""
    arithmetic, bandwidth = roofs.arithmetic, roofs.bandwidth
    if bandwidth is None or (
        arithmetic is not None
        and case.weighted(arithmetic, Bottleneck.COMPUTE) >= case.weighted(bandwidth, Bottleneck.MEMORY_BANDWIDTH)
    ):
        return Diagnosis(Bottleneck.COMPUTE, ArithmeticNear(case.accelerator.key, roofs, _arithmetic(case), waits))
    return Diagnosis(Bottleneck.MEMORY_BANDWIDTH, BandwidthNear(case.accelerator.key, roofs, waits))


def _roofs(case: Case, working: float, known: Roofline | None) -> Roofs:
    near = roofline(case.profile, working) if known is None else known
    pipes = [
        (min(value / working, 1.0) / ATTAINABLE if working > 0 else 0.0, field)
        for field in _PIPES
        if (value := case.values.get(field)) is not None
    ]
    return Roofs(near.matrix, near.bandwidth, max(pipes, default=None))


def _arithmetic(case: Case) -> Arithmetic:
    """Of a board that is limited below its data sheet, and of the program."""
    limit, sheet = power_limit(case), case.accelerator.power_watts
    limited = limit is not None and sheet is not None and limit < _LIMITED * sheet
    return Arithmetic(case.profile.traits.precision, *((limit, sheet) if limited else (None, None)))
