"""What limits the work on a chip: how near it comes to its roofs.

A roof is what the chip can do at most: of its matrix units, of a pipe beside them (FP32, FP64, FP16, integers), of its
memory's bandwidth. Below half of every roof nothing on the chip is the limit, unless its compute units are all
occupied: then kernels of many kinds follow each other, and the nearest roof is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rightpool.profiles.bottleneck import Bottleneck, Case, Diagnosis, percent
from rightpool.profiles.health import power_limit
from rightpool.profiles.sample import Field
from rightpool.profiles.shares import Roofline, Shares, roofline

# Below this activity the compute units of a busy chip do nothing: it copies, or kernels wait.
_NOT_COMPUTING: Final = 0.05
# Closeness that names a roof by itself.
_NEAR: Final = 0.5
# Closeness that names a roof where compute units are occupied for this share of the time that the chip works.
_FAINT: Final = 0.25
_OCCUPIED: Final = 0.7
# Below this share kernels are too small for the chip, or too far apart.
_SPARSE: Final = 0.5
# A board that is limited to less than this share of its data sheet is worth a word.
_LIMITED: Final = 0.95
_ON_CHIP: Final = (Bottleneck.COMPUTE, Bottleneck.MEMORY_BANDWIDTH)
_LAUNCH: Final = (Bottleneck.HOST_BOUND, Bottleneck.MEMORY_CAPACITY)
_PIPES: Final = {
    Field.FP32_ACTIVE: "FP32 units",
    Field.FP64_ACTIVE: "FP64 units",
    Field.FP16_ACTIVE: "FP16 units",
    Field.INTEGER_ACTIVE: "integer units",
}
_TRACE: Final = "let the profiler take traces (spec.profiling.trace)"
_MATRIX_UNITS: Final = "lower precision (bf16, TF32) to use the matrix units, or a chip with more FLOP/s"


@dataclass(frozen=True, slots=True)
class _Roofs:
    """Closeness to each roof while the chip works, 0–1 or slightly above; None without a counter."""

    matrix: float | None
    bandwidth: float | None
    pipe: tuple[float, str] | None
    """The nearest of the pipes beside the matrix units, with its name."""

    @property
    def arithmetic(self) -> float | None:
        known = [value for value in (self.matrix, None if self.pipe is None else self.pipe[0]) if value is not None]
        return max(known, default=None)

    @property
    def nearest(self) -> float | None:
        known = [value for value in (self.arithmetic, self.bandwidth) if value is not None]
        return max(known, default=None)

    @property
    def by_pipe(self) -> bool:
        """Whether a pipe beside the matrix units does most of the arithmetic."""
        return self.pipe is not None and self.pipe[0] > (self.matrix or 0.0)

    def __str__(self) -> str:
        known = []
        if self.bandwidth is not None:
            known.append(f"memory bandwidth is at {percent(min(1.0, self.bandwidth))}")
        if self.by_pipe and self.pipe is not None:
            known.append(f"{self.pipe[1]} are at {percent(min(1.0, self.pipe[0]))}")
        if self.matrix is not None:
            known.append(f"matrix units are at {percent(min(1.0, self.matrix))}")
        return (", ".join(known[:-1]) + " and " if known[1:] else "") + "".join(known[-1:]) + " of what is attainable"


def on_chip(case: Case, shares: Shares | None) -> Diagnosis:
    """The limit on the chip by the counters that exist, or Unknown with what would tell."""
    return _not_computing(case) or _by_roofs(case, shares)


def _not_computing(case: Case) -> Diagnosis | None:
    busy, active = case.value(Field.CHIP_BUSY), case.value(Field.COMPUTE_ACTIVE)
    if busy is None or active is None or active >= _NOT_COMPUTING:
        return None
    evidence = f"{case.accelerator.key} is busy {percent(busy)}, and its compute units are active {percent(active)}"
    return Diagnosis(
        Bottleneck.HOST_BOUND, f"{evidence}: copies or tiny kernels", "keep data on the chip; larger batches"
    )


def _by_roofs(case: Case, shares: Shares | None) -> Diagnosis:
    working = shares.chip if shares is not None else (case.value(Field.CHIP_BUSY) or 1.0)
    roofs = _roofs(case, working, shares.roofline if shares is not None else None)
    if roofs.nearest is None:
        evidence = f"{case.chips} busy, which proves nothing: no counter tells what limits the work"
        return Diagnosis(Bottleneck.UNKNOWN, evidence, "give the profiler DCGM or GPM counters")
    active = case.value(Field.COMPUTE_ACTIVE)
    occupied = active is not None and active >= case.threshold(_OCCUPIED, *_ON_CHIP) * min(working, 1.0)
    near = roofs.nearest >= case.threshold(_NEAR, *_ON_CHIP)
    if near:
        return _nearer(case, roofs)
    if shares is None:
        evidence = f"exposed communication of {case.profile.chips} chips is not measured, and {roofs}"
        return Diagnosis(Bottleneck.UNKNOWN, evidence, _TRACE)
    if roofs.matrix is None or roofs.bandwidth is None:
        if occupied and roofs.nearest >= case.threshold(_FAINT, *_ON_CHIP) and roofs.pipe is not None:
            return _nearer(case, roofs)
        return Diagnosis(
            Bottleneck.UNKNOWN, f"only one roof is counted: {roofs}", "give the profiler the other counter"
        )
    if active is None:
        evidence = f"no roof is near: {roofs}; whether compute units wait for launches is not measured"
        return Diagnosis(Bottleneck.UNKNOWN, evidence, "give the profiler the activity of compute units (DCGM or GPM)")
    if occupied:
        return _occupied(case, roofs, active)
    evidence = f"compute units of {case.accelerator.key} are active {percent(active)} of the time, and no roof is near"
    if active < case.weighted(_SPARSE, *_LAUNCH) * min(working, 1.0):
        lever = "larger batches, CUDA graphs or compilation, or a part of a chip"
        return Diagnosis(Bottleneck.HOST_BOUND, f"{evidence}: {roofs}: kernels are small or far apart", lever)
    lever = f"{_TRACE}, and look for gaps and many small kernels"
    return Diagnosis(Bottleneck.UNKNOWN, f"{evidence}: {roofs}", lever)


def _occupied(case: Case, roofs: _Roofs, active: float) -> Diagnosis:
    """Compute units always have work, and no single roof is near."""
    assert roofs.nearest is not None
    if roofs.nearest >= case.threshold(_FAINT, *_ON_CHIP):
        return _nearer(case, roofs)
    evidence = f"compute units of {case.accelerator.key} are active {percent(active)} beside its matrix units"
    if roofs.pipe is None:
        return Diagnosis(Bottleneck.COMPUTE, f"{evidence}: {roofs}{_words(case)}", _MATRIX_UNITS)
    occupancy = case.value(Field.OCCUPANCY)
    seen = "" if occupancy is None else f", with {percent(occupancy)} of their slots in use"
    evidence = (
        f"compute units of {case.accelerator.key} are active {percent(active)}{seen}, and no roof is near: {roofs}"
    )
    return Diagnosis(Bottleneck.UNKNOWN, evidence, "profile the longest kernels (ncu): they wait within the chip")


def _nearer(case: Case, roofs: _Roofs) -> Diagnosis:
    """The nearer of arithmetic and bandwidth."""
    arithmetic, bandwidth = roofs.arithmetic, roofs.bandwidth
    evidence = f"while {case.accelerator.key} works, {roofs}"
    if bandwidth is None or (
        arithmetic is not None
        and case.weighted(arithmetic, Bottleneck.COMPUTE) >= case.weighted(bandwidth, Bottleneck.MEMORY_BANDWIDTH)
    ):
        lever = _MATRIX_UNITS if roofs.by_pipe else "lower precision, or a chip with more FLOP/s per dollar"
        return Diagnosis(Bottleneck.COMPUTE, evidence + _words(case), lever)
    lever = "fused kernels, lower precision, or a chip with more memory bandwidth per dollar"
    return Diagnosis(Bottleneck.MEMORY_BANDWIDTH, evidence, lever)


def _roofs(case: Case, working: float, known: Roofline | None) -> _Roofs:
    near = roofline(case.profile, working, case.attainable) if known is None else known
    pipes = [
        (min(value / working, 1.0) / case.attainable.matrix if working > 0 else 0.0, name)
        for field, name in _PIPES.items()
        if (value := case.value(field)) is not None
    ]
    return _Roofs(near.matrix, near.bandwidth, max(pipes, default=None))


def _words(case: Case) -> str:
    """What else is known of the arithmetic: the precision, and a board that is limited below its data sheet."""
    text = ""
    if case.profile.traits.precision is not None:
        text += f"; the program computes in {case.profile.traits.precision}"
    limit, sheet = power_limit(case), case.accelerator.power_watts
    if limit is not None and sheet is not None and limit < _LIMITED * sheet:
        text += f"; the board is limited to {limit:.0f} of {sheet:.0f} W"
    return text
