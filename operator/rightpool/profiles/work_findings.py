"""Findings of chips that work: what limits them, by their counters."""

from __future__ import annotations

from typing import Final

from rightpool.api.value_object import value_object
from rightpool.api.wording import percent
from rightpool.profiles.closeness import Arithmetic, Roofs
from rightpool.profiles.findings import Finding
from rightpool.profiles.idle_findings import chips_are

_MATRIX_UNITS: Final = "lower precision (bf16, TF32) for the matrix units, or more FLOP/s"
_BESIDE_THEM: Final = "fused kernels beside matrix products, or more FLOP/s"
_ON_MATRIX_UNITS: Final = frozenset({"tf32", "bf16", "fp16", "fp8", "int8"})
_TRACE: Final = "let the profiler take traces (spec.profiling.trace)"
# Of more than this part of a chip there is no slice.
_WHOLE: Final = 0.75


@value_object
class ComputesNothing(Finding):
    """The chip is busy and its compute units are not."""

    helps = "keep data on the chip; larger batches"

    chip: str
    """Its key in the catalog."""
    busy: float
    """Share of the time in which anything ran."""
    active: float
    """Activity of the compute units."""

    def text(self) -> str:
        return (
            f"{self.chip} is busy {percent(self.busy)} of the time, and its compute units "
            f"{percent(self.active)}: copies or tiny kernels"
        )


@value_object
class NothingCounted(Finding):
    """Chips are busy, and no counter tells of any roof."""

    helps = "give the profiler counters of units and memory (NVIDIA: DCGM or GPM)"

    chips: int
    """How many the job has."""

    def text(self) -> str:
        return f"{chips_are(self.chips)} busy, but no counter tells what limits the work"


@value_object
class CommunicationUnknown(Finding):
    """No roof is near, and exposed communication is not measured."""

    helps = _TRACE

    chips: int
    """How many the job has."""
    roofs: Roofs
    """How near it comes to those that are counted."""

    def text(self) -> str:
        return f"exposed communication of {self.chips} chips is not measured; {self.roofs.text()}"


@value_object
class OneRoofCounted(Finding):
    """The roof that is counted is not near; another one may be."""

    roofs: Roofs
    """How near it comes to the one that is counted."""

    def text(self) -> str:
        return f"only one roof is counted: {self.roofs.text()}"

    def lever(self) -> str:
        missing = "the matrix units" if self.roofs.matrix is None else "memory bandwidth"
        return f"give the profiler a counter of {missing} (NVIDIA: DCGM or GPM)"


@value_object
class LaunchesUnknown(Finding):
    """No roof is near, and the activity of compute units is not measured."""

    helps = "give the profiler the activity of compute units (NVIDIA: DCGM or GPM)"

    roofs: Roofs
    """How near it comes to them."""

    def text(self) -> str:
        return f"no roof is near: {self.roofs.text()}; whether compute units wait for launches is not measured"


@value_object
class KernelsSparse(Finding):
    """No roof is near, and compute units have nothing to do for most of the time."""

    helps = "larger batches, CUDA graphs or compilation, or a part of a chip"

    chip: str
    """Its key in the catalog."""
    active: float
    """Activity of the compute units."""

    roofs: Roofs
    """How near it comes to them."""

    def text(self) -> str:
        return f"{_far_from_roofs(self)}; kernels are small or far apart"


@value_object
class KernelsSmall(Finding):
    """The chip always has a kernel, and none fills it."""

    chip: str
    """Its key in the catalog."""
    active: float
    """Activity of the compute units."""

    roofs: Roofs
    """How near it comes to them."""
    part: float
    """Of the chip that would do: of its compute units, what is near a roof, and memory in use."""

    def text(self) -> str:
        near = percent(min(1.0, self.roofs.nearest or 0.0))
        return f"kernels fill {percent(self.active)} of {self.chip}, always busy; the nearest roof is at {near}"

    def lever(self) -> str:
        if self.part > _WHOLE:
            return "larger batches"
        return f"a slice or a smaller chip ({percent(self.part)} of this one would do), or larger batches"


@value_object
class NoRoofNear(Finding):
    """No roof is near, and compute units wait for a part of the time."""

    helps = f"{_TRACE}, and look for gaps"

    chip: str
    """Its key in the catalog."""
    active: float
    """Activity of the compute units."""

    roofs: Roofs
    """How near it comes to them."""

    def text(self) -> str:
        return _far_from_roofs(self)


@value_object
class KernelsWait(Finding):
    """No roof is near, and compute units always have work: they wait within the chip."""

    helps = "profile the longest kernels (ncu): they wait within the chip"

    chip: str
    """Its key in the catalog."""
    active: float
    """Activity of the compute units."""

    occupancy: float | None
    """Share of their slots in use; None where that is not counted."""

    roofs: Roofs
    """How near it comes to them."""

    def text(self) -> str:
        seen = "" if self.occupancy is None else f", with {percent(self.occupancy)} of their slots in use"
        return f"{_active(self.chip, self.active)}{seen}; no roof is near: {self.roofs.text()}"


@value_object
class OtherUnitsCompute(Finding):
    """Compute units always have work, and pipes beside the matrix units are not counted."""

    helps = _MATRIX_UNITS

    chip: str
    """Its key in the catalog."""
    active: float
    """Activity of the compute units."""

    roofs: Roofs
    """How near it comes to those that are counted."""
    arithmetic: Arithmetic
    """What helps depends on it."""

    def text(self) -> str:
        units = _active(f"{self.chip} other than its matrix units", self.active)
        return f"{units}; {self.roofs.text()}{self.arithmetic.text()}"


@value_object
class ArithmeticNear(Finding):
    """Arithmetic is the nearest roof."""

    chip: str
    """Its key in the catalog."""
    roofs: Roofs
    """How near it comes to them."""
    arithmetic: Arithmetic
    """What helps depends on it."""

    waits: float | None = None
    """Share of the step in which chips wait, which limits the job next; None where it matters little."""

    def text(self) -> str:
        text = f"while {self.chip} works, {self.roofs.text()}{self.arithmetic.text()}"
        return text + _next(self.waits)

    def lever(self) -> str:
        if not self.roofs.by_pipe:
            return "lower precision, or a chip with more FLOP/s per dollar"
        return _BESIDE_THEM if self.arithmetic.precision in _ON_MATRIX_UNITS else _MATRIX_UNITS


@value_object
class BandwidthNear(Finding):
    """The memory's bandwidth is the nearest roof."""

    helps = "fused kernels, lower precision, or more bandwidth per dollar"

    chip: str
    """Its key in the catalog."""
    roofs: Roofs
    """How near it comes to them."""

    waits: float | None = None
    """Share of the step in which chips wait, which limits the job next; None where it matters little."""

    def text(self) -> str:
        return f"while {self.chip} works, {self.roofs.text()}{_next(self.waits)}"


def _next(waits: float | None) -> str:
    return "" if waits is None else f"; it waits {percent(waits)} of the step"


def _active(chip: str, share: float) -> str:
    return f"compute units of {chip} are active {percent(share)} of the time"


def _far_from_roofs(finding: KernelsSparse | NoRoofNear) -> str:
    active = _active(finding.chip, finding.active)
    return f"{active}, and no roof is near; {finding.roofs.text()}"
