"""Findings of chips that wait: for a program that hangs or starts, for data, the host, a save or a link."""

from __future__ import annotations

from typing import Final

from rightpool.api.pool import LinkKind
from rightpool.api.value_object import value_object
from rightpool.api.wording import percent
from rightpool.profiles.findings import Finding

_FEWER: Final = "fewer chips, or a faster link"


@value_object
class StillCompiles(Finding):
    """No step was made, and the program compiled."""

    helps = "wait for its first steps, or look at its log"

    time: float
    """Share of the time."""

    def text(self) -> str:
        return f"the program compiled {percent(self.time)} of the time, and made no step"


@value_object
class NothingRuns(Finding):
    """No step was made, and chips did nothing."""

    helps = "check whether the program hangs, or suspend the job"

    chips: int
    """How many the job has."""
    busy: float
    """Share of the time."""

    def text(self) -> str:
        return f"{chips_are(self.chips)} busy {percent(self.busy)} of the time, and no samples are counted"


@value_object
class ChipsUnused(Finding):
    """Nothing ever ran on some chips of a pod."""

    helps = "start one process for each chip, such as by torchrun --nproc-per-node, or ask for fewer chips"

    unused: float
    """How many those are."""
    of: int
    """Chips of the pod."""

    def text(self) -> str:
        are = "is" if self.unused == 1 else "are"
        return f"{self.unused:.0f} of {self.of} chips of a pod {are} unused: nothing ever ran there"


@value_object
class NoStepYet(Finding):
    """Chips did nothing, and the program never made a step: it may still load or start."""

    helps = "wait for its first steps; if none come, see its log, or suspend the job"

    chips: int
    """How many the job has."""
    busy: float
    """Share of the time."""

    def text(self) -> str:
        return f"no step was made yet, and {chips_are(self.chips)} busy {percent(self.busy)} of the time"


@value_object
class BusyTimeUnknown(Finding):
    """Waiting and work can't be told apart."""

    helps = "give the profiler counters of the chips (NVIDIA: NVML or DCGM)"

    def text(self) -> str:
        return "how busy the chips are is not measured: waiting and work can't be told apart"


@value_object
class WaitsForInput(Finding):
    """Chips are idle, most of it for data."""

    helps = "more loader workers, faster storage, or cheaper chips"

    chips: int
    """How many the job has."""
    idle: float
    """Share of the step."""

    input: float
    """The part of it for data."""

    def text(self) -> str:
        return f"{_idle(self.chips, self.idle)}, {percent(self.input)} of it for input"


@value_object
class WaitsForSave(Finding):
    """Chips are idle, most of it while the program saves."""

    helps = "save less often, asynchronously, or to local disk first"

    chips: int
    """How many the job has."""
    idle: float
    """Share of the step."""

    saving: float
    """The part of it in saves."""

    def text(self) -> str:
        return f"{_idle(self.chips, self.idle)}, {percent(self.saving)} of it while the program saves"


@value_object
class WaitsForHost(Finding):
    """Chips are idle, and neither for data nor in saves."""

    chips: int
    """How many the job has."""
    idle: float
    """Share of the step."""

    input: float | None
    """The part of it for data; None where nobody watched that, so that it may be all of it."""

    saving: float | None
    """The part of it in saves; None where it is too little to matter."""

    compiling: float | None
    """Share of the time in which the program compiles; None where it is too little to matter."""

    def text(self) -> str:
        text = _idle(self.chips, self.idle)
        text += "" if self.input is None else f", {percent(self.input)} for input"
        text += "" if self.saving is None else f", {percent(self.saving)} in saves"
        if self.compiling is not None:
            text += f"; the program compiles {percent(self.compiling)} of the time"
        return text if self.input is not None else f"{text}; waits for input were not watched"

    def lever(self) -> str:
        if self.compiling is not None:
            return "batches of one shape, or dimensions marked as dynamic"
        if self.input is None:
            return "see whether it waits for data; else larger batches, CUDA graphs or compilation"
        return "larger batches, CUDA graphs or compilation, a faster host, or cheaper chips"


@value_object
class WaitsForLink(Finding):
    """Communication is exposed."""

    chips: int
    """How many the job has."""
    exposed: float
    """Share of the step."""

    link: LinkKind | None = None
    """What it goes over; None where busy time is not measured, so that nothing more is known."""

    over_host: float | None = None
    """Share of the bytes that go over PCIe, where chips do not use their own link. None: they use it, or it is not
    counted."""

    sent: float | None = None
    """Bytes a second and chip; None where they are not counted."""

    capacity: float | None = None
    """Bytes a second and chip that the link can carry."""

    used: bool = True
    """Whether the bandwidth of the link may be what chips wait for."""

    def text(self) -> str:
        text = f"{percent(self.exposed)} of the step is exposed communication"
        if self.link is not None:
            text += f" over {self.link.value}"
        text += f" on {self.chips} chips"
        if self.over_host is not None:
            return f"{text}; {percent(self.over_host)} of the bytes go over PCIe"
        if self.sent is None or self.capacity is None:
            return text
        return f"{text}; it carries {self.sent / 1e9:.1f} of {self.capacity / 1e9:.0f} GB/s a chip"

    def lever(self) -> str:
        if self.over_host is not None and self.link is not None:
            return f"see why chips do not use {self.link.value} (peer access), or fewer chips"
        if self.used:
            return _FEWER
        return "larger messages (buckets, batches) or fewer chips, as bandwidth is not the limit"


def chips_are(count: int) -> str:
    """The subject of a sentence: the chip is, 8 chips are."""
    return f"{count} chips are" if count > 1 else "the chip is"


def _idle(chips: int, share: float) -> str:
    return f"{chips_are(chips)} idle {percent(share)} of the step"
