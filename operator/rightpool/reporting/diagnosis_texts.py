"""Diagnoses in words: what was found, and what helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rightpool.api.wording import how_many, span
from rightpool.profiles import findings
from rightpool.profiles.closeness import Arithmetic, Roofs
from rightpool.profiles.sample import Field

_PIPES: Final = {
    Field.FP32_ACTIVE: "FP32 units",
    Field.FP64_ACTIVE: "FP64 units",
    Field.FP16_ACTIVE: "FP16 units",
}
_EVEN_OUT: Final = "even out the work between ranks, or replace the slow node"
_RUN_ELSEWHERE: Final = "run elsewhere; cordon the node, reset the chip, and replace it if the error comes back"
_FULL_WINDOW: Final = "wait for a full window; if none comes, see the condition Profiled"
_MORE_MEMORY: Final = "chips with more memory, sharded state, recomputed activations, or lower precision"
_MATRIX_UNITS: Final = "lower precision (bf16, TF32) to use the matrix units, or a chip with more FLOP/s"
_BESIDE_THEM: Final = "fewer operations beside the matrix products (fused kernels), or a chip with more FLOP/s"
_ON_MATRIX_UNITS: Final = frozenset({"tf32", "bf16", "fp16", "fp8", "int8"})
_TRACE: Final = "let the profiler take traces (spec.profiling.trace)"
# Of more than this part of a chip there is no slice.
_WHOLE: Final = 0.75
_FEWER: Final = "fewer chips, or a faster link"

# What helps, where it does not depend on what was found.
_LEVERS: Final[dict[type[findings.Finding], str]] = {
    findings.NothingMeasured: _FULL_WINDOW,
    findings.ReadingsTooOld: _FULL_WINDOW,
    findings.WindowNotFull: _FULL_WINDOW,
    findings.SharedChip: "end them (nvidia-smi on the node lists them), or run elsewhere",
    findings.CriticalError: _RUN_ELSEWHERE,
    findings.BrokenRow: _RUN_ELSEWHERE,
    findings.MemoryErrors: _RUN_ELSEWHERE,
    findings.ClocksHeldDown: "check cooling and power of the node, or run on another one",
    findings.AllocationsRetried: _MORE_MEMORY,
    findings.NoRoomForBatch: _MORE_MEMORY,
    findings.RankStarves: "check the storage and the loader of the ranks that wait",
    findings.RankNeverWaits: _EVEN_OUT,
    findings.RankComputesMore: _EVEN_OUT,
    findings.RankIdles: _EVEN_OUT,
    findings.StillCompiles: "wait for its first steps, or look at its log",
    findings.NothingRuns: "check whether the program hangs, or suspend the job",
    findings.NoStepYet: "wait for its first steps; if none come, see its log, or suspend the job",
    findings.ChipsUnused: (
        "start one process for each chip, such as by torchrun --nproc-per-node, or ask for fewer chips"
    ),
    findings.BusyTimeUnknown: "give the profiler counters of the chips (NVIDIA: NVML or DCGM)",
    findings.WaitsForInput: "more loader workers, faster storage, or cheaper chips",
    findings.WaitsForSave: "save less often, asynchronously, or to local disk first",
    findings.ComputesNothing: "keep data on the chip; larger batches",
    findings.NothingCounted: "give the profiler counters of units and memory (NVIDIA: DCGM or GPM)",
    findings.CommunicationUnknown: _TRACE,
    findings.LaunchesUnknown: "give the profiler the activity of compute units (NVIDIA: DCGM or GPM)",
    findings.KernelsSparse: "larger batches, CUDA graphs or compilation, or a part of a chip",
    findings.NoRoofNear: f"{_TRACE}, and look for gaps and many small kernels",
    findings.KernelsWait: "profile the longest kernels (ncu): they wait within the chip",
    findings.OtherUnitsCompute: _MATRIX_UNITS,
    findings.BandwidthNear: "fused kernels, lower precision, or a chip with more memory bandwidth per dollar",
}


@dataclass(frozen=True, slots=True)
class RecordedFinding(findings.Finding):
    """What a stored condition says of a finding whose values are not stored."""

    text: str
    """With what helps, as the condition says it; empty where it says nothing."""


def percent(ratio: float) -> str:
    """A whole percentage: what is measured of shares is not known better."""
    return f"{100.0 * ratio:.0f}%"


def diagnosis_text(finding: findings.Finding) -> str:
    """What was found and what helps."""
    lever = lever_text(finding)
    return f"{evidence_text(finding)}. What helps: {lever}" if lever else evidence_text(finding)


def lever_text(finding: findings.Finding) -> str:
    """What helps. Empty where nothing is known to."""
    match finding:
        case findings.WaitsForHost():
            if finding.compiling is not None:
                return "batches of the same shape, or dimensions marked as dynamic: each new shape is compiled"
            if finding.input is None:
                return "see whether it waits for data; else larger batches, CUDA graphs or compilation"
            return "larger batches, CUDA graphs or compilation, a faster host, or cheaper chips"
        case findings.WaitsForLink():
            if finding.over_host is not None and finding.link is not None:
                return f"see why chips do not use {finding.link.value} (peer access), or fewer chips"
            if finding.used:
                return _FEWER
            return (
                "larger messages (buckets, batches, gradient accumulation) or fewer chips; bandwidth is not the limit"
            )
        case findings.OneRoofCounted():
            missing = "the matrix units" if finding.roofs.matrix is None else "memory bandwidth"
            return f"give the profiler a counter of {missing} (NVIDIA: DCGM or GPM)"
        case findings.KernelsSmall():
            if finding.part > _WHOLE:
                return "larger batches"
            return f"a slice or a smaller chip ({percent(finding.part)} of this one would do), or larger batches"
        case findings.ArithmeticNear():
            if not finding.roofs.by_pipe:
                return "lower precision, or a chip with more FLOP/s per dollar"
            return _BESIDE_THEM if finding.arithmetic.precision in _ON_MATRIX_UNITS else _MATRIX_UNITS
    return _LEVERS.get(type(finding), "")


def evidence_text(finding: findings.Finding) -> str:
    """What was found, with the measured values."""
    match finding:
        case RecordedFinding():
            return finding.text
        case findings.NothingMeasured():
            return "nothing was measured yet"
        case findings.ReadingsTooOld():
            return "the newest reading is too old"
        case findings.WindowNotFull():
            text = (
                f"readings after the warm-up cover {percent(finding.covered)} of the window of {span(finding.window)}"
            )
            if finding.steps is None:
                return text
            return f"{text}; the program has made {how_many(finding.steps, 'step')} and may still compile"
        case findings.SharedChip():
            return (
                f"processes that are not the job's take {percent(finding.others)} of a chip: counters are theirs, too"
            )
        case findings.CriticalError():
            return f"a chip reported the critical error XID {finding.xid:.0f}"
        case findings.BrokenRow():
            if finding.replaceable:
                return "a chip waits for a reset to replace a broken row of its memory"
            return "a chip could not replace a broken row of its memory"
        case findings.MemoryErrors():
            return f"uncorrectable memory errors of a chip went up to {finding.count:.0f} within the window"
        case findings.ClocksHeldDown():
            text = f"clocks are held down {percent(finding.time)} of the time"
            if finding.by_heat is not None:
                hot = "" if finding.degrees is None else f" ({finding.degrees:.0f} °C)"
                text += f" by heat{hot}" if finding.by_heat else " by a hardware slowdown or a power brake"
            if finding.watts is not None:
                text += f" at {finding.watts:.0f} W" + (
                    f" of {finding.limit:.0f} W" if finding.limit is not None else ""
                )
            return text if finding.clock is None else f"{text}, at {percent(finding.clock)} of their maximum"
        case findings.AllocationsRetried():
            failed = how_many(finding.times, "allocation")
            return f"{failed} failed at the first try within the window{_fill(finding.memory_used)}"
        case findings.NoRoomForBatch():
            return f"{evidence_text(finding.otherwise)}; a larger batch has no room{_fill(finding.memory_used)}"
        case findings.RankStarves():
            mean, least = percent(finding.mean), percent(finding.least)
            return f"ranks wait for data {mean} of the step on average, and one of them only {least}"
        case findings.RankNeverWaits():
            mean, least = percent(finding.mean), percent(finding.least)
            return f"ranks wait for others {mean} of the step on average, and one of them only {least}"
        case findings.RankComputesMore():
            return (
                f"compute units of one of {finding.chips} chips are active {percent(finding.most)} of the time, "
                f"those of another {percent(finding.least)}: that one waits"
            )
        case findings.RankIdles():
            slowest, mean = percent(finding.slowest), percent(finding.mean)
            return f"one of {finding.chips} chips is busy {slowest} of the time, and the mean is {mean}"
        case findings.StillCompiles():
            return f"the program compiled {percent(finding.time)} of the time, and made no step"
        case findings.NothingRuns():
            return f"{_chips(finding.chips)} busy {percent(finding.busy)} of the time, and no samples are counted"
        case findings.NoStepYet():
            return f"no step was made yet, and {_chips(finding.chips)} busy {percent(finding.busy)} of the time"
        case findings.ChipsUnused():
            are = "is" if finding.unused == 1 else "are"
            return f"{finding.unused:.0f} of {finding.of} chips of a pod {are} unused: nothing ever ran there"
        case findings.BusyTimeUnknown():
            return "how busy the chips are is not measured: waiting and work can't be told apart"
        case findings.WaitsForInput():
            return f"{_idle(finding.chips, finding.idle)}, {percent(finding.input)} of it for input"
        case findings.WaitsForSave():
            return f"{_idle(finding.chips, finding.idle)}, {percent(finding.saving)} of it while the program saves"
        case findings.WaitsForHost():
            text = _idle(finding.chips, finding.idle)
            text += "" if finding.input is None else f", {percent(finding.input)} for input"
            text += "" if finding.saving is None else f", {percent(finding.saving)} in saves"
            if finding.compiling is not None:
                text += f", and the program compiles {percent(finding.compiling)} of the time"
            return text if finding.input is not None else f"{text}; waits for input were not watched"
        case findings.WaitsForLink():
            text = f"{percent(finding.exposed)} of the step is exposed communication"
            if finding.link is not None:
                text += f" over {finding.link.value}"
            text += f" on {finding.chips} chips"
            if finding.over_host is not None:
                return f"{text}, but {percent(finding.over_host)} of the bytes go over PCIe"
            if finding.sent is None or finding.capacity is None:
                return text
            return f"{text}, which carries {finding.sent / 1e9:.1f} GB/s a chip of {finding.capacity / 1e9:.0f}"
        case findings.ComputesNothing():
            return (
                f"{finding.chip} is busy {percent(finding.busy)} of the time, and its compute units "
                f"{percent(finding.active)}: copies or tiny kernels"
            )
        case findings.NothingCounted():
            return f"{_chips(finding.chips)} busy, but no counter tells what limits the work"
        case findings.CommunicationUnknown():
            return f"exposed communication of {finding.chips} chips is not measured, and {_roofs(finding.roofs)}"
        case findings.OneRoofCounted():
            return f"only one roof is counted: {_roofs(finding.roofs)}"
        case findings.LaunchesUnknown():
            return f"no roof is near: {_roofs(finding.roofs)}; whether compute units wait for launches is not measured"
        case findings.KernelsSparse():
            return f"{_far_from_roofs(finding)}: kernels are small or far apart"
        case findings.KernelsSmall():
            near = percent(min(1.0, finding.roofs.nearest or 0.0))
            return (
                f"kernels fill {percent(finding.active)} of {finding.chip}, always busy; the nearest roof is at {near}"
            )
        case findings.NoRoofNear():
            return _far_from_roofs(finding)
        case findings.KernelsWait():
            seen = "" if finding.occupancy is None else f", with {percent(finding.occupancy)} of their slots in use"
            return f"{_active(finding.chip, finding.active)}{seen}, and no roof is near: {_roofs(finding.roofs)}"
        case findings.OtherUnitsCompute():
            units = _active(f"{finding.chip} other than its matrix units", finding.active)
            return f"{units}: {_roofs(finding.roofs)}{_arithmetic(finding.arithmetic)}"
        case findings.ArithmeticNear():
            text = f"while {finding.chip} works, {_roofs(finding.roofs)}{_arithmetic(finding.arithmetic)}"
            return text + _next(finding.waits)
        case findings.BandwidthNear():
            return f"while {finding.chip} works, {_roofs(finding.roofs)}{_next(finding.waits)}"
    raise NotImplementedError(type(finding).__name__)


def _next(waits: float | None) -> str:
    return "" if waits is None else f"; it waits {percent(waits)} of the step"


def _chips(count: int) -> str:
    return f"{count} chips are" if count > 1 else "the chip is"


def _idle(chips: int, share: float) -> str:
    return f"{_chips(chips)} idle {percent(share)} of the step"


def _active(chip: str, share: float) -> str:
    return f"compute units of {chip} are active {percent(share)} of the time"


def _far_from_roofs(finding: findings.KernelsSparse | findings.NoRoofNear) -> str:
    active = _active(finding.chip, finding.active)
    return f"{active}, and no roof is near: {_roofs(finding.roofs)}"


def _fill(memory_used: float | None) -> str:
    return "" if memory_used is None else f": {percent(memory_used)} of a chip's memory is in use"


def _roofs(roofs: Roofs) -> str:
    known = []
    if roofs.bandwidth is not None:
        known.append(f"memory bandwidth is at {percent(min(1.0, roofs.bandwidth))}")
    if roofs.by_pipe and roofs.pipe is not None:
        known.append(f"{_PIPES[roofs.pipe[1]]} are at {percent(min(1.0, roofs.pipe[0]))}")
    if roofs.matrix is not None:
        known.append(f"matrix units are at {percent(min(1.0, roofs.matrix))}")
    return (", ".join(known[:-1]) + " and " if known[1:] else "") + "".join(known[-1:]) + " of what is attainable"


def _arithmetic(known: Arithmetic) -> str:
    text = "" if known.precision is None else f"; the program computes in {known.precision}"
    if known.limit is not None and known.data_sheet is not None:
        text += f"; the board is limited to {known.limit:.0f} of {known.data_sheet:.0f} W"
    return text
