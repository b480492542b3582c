"""What a diagnosis was made of: one type for each rule, with the values that it decided by and its words.

Shares are of the time or of a step, 0 to 1. `chips` are those of the job, `chip` is the catalog's key of their kind.
Findings of chips that wait are in idle_findings.py, those of chips that work in work_findings.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final

from rightpool.api.value_object import value_object
from rightpool.api.wording import how_many, percent, span

_EVEN_OUT: Final = "even out the work between ranks, or replace the slow node"
_RUN_ELSEWHERE: Final = "run elsewhere; cordon the node, reset the chip, and replace it if the error comes back"
_FULL_WINDOW: Final = "wait for a full window; if none comes, see the condition Profiled"
_MORE_MEMORY: Final = "chips with more memory, sharded state, or lower precision"


@value_object
class Finding(ABC):
    """Why a diagnosis names its class."""

    helps: ClassVar[str] = ""
    """What helps, where that does not depend on the values."""

    @abstractmethod
    def text(self) -> str:
        """What was found, with the measured values."""

    def lever(self) -> str:
        """What helps. Empty where nothing is known to."""
        return self.helps


@value_object
class NothingMeasured(Finding):
    """There is no reading yet."""

    helps = _FULL_WINDOW

    def text(self) -> str:
        return "nothing was measured yet"


@value_object
class ReadingsTooOld(Finding):
    """The newest reading says nothing about now."""

    helps = _FULL_WINDOW

    def text(self) -> str:
        return "the newest reading is too old"


@value_object
class WindowNotFull(Finding):
    """Readings after the warm-up do not fill the window."""

    helps = _FULL_WINDOW

    covered: float
    """Share of the window."""

    window: float
    """Seconds."""

    steps: float | None
    """Steps of a program that may still compile; None of one that has made enough, or is not counted."""

    def text(self) -> str:
        text = f"readings after the warm-up cover {percent(self.covered)} of the window of {span(self.window)}"
        if self.steps is None:
            return text
        return f"{text}; the program has made {how_many(self.steps, 'step')} and may still compile"


@value_object
class SharedChip(Finding):
    """Processes of others work on a chip: counters are theirs, too."""

    helps = "end them (nvidia-smi on the node lists them), or run elsewhere"

    others: float
    """Share of the time in which its compute units work for them."""

    def text(self) -> str:
        return f"processes that are not the job's take {percent(self.others)} of a chip: counters are theirs, too"


@value_object
class CriticalError(Finding):
    """The driver has reported one."""

    helps = _RUN_ELSEWHERE

    xid: float
    """NVIDIA's number of it."""

    def text(self) -> str:
        return f"a chip reported the critical error XID {self.xid:.0f}"


@value_object
class BrokenRow(Finding):
    """A row of a chip's memory is broken."""

    helps = _RUN_ELSEWHERE

    replaceable: bool
    """Whether a reset replaces it."""

    def text(self) -> str:
        if self.replaceable:
            return "a chip waits for a reset to replace a broken row of its memory"
        return "a chip could not replace a broken row of its memory"


@value_object
class MemoryErrors(Finding):
    """Uncorrectable errors were added within the window."""

    helps = _RUN_ELSEWHERE

    count: float
    """Of one chip, the whole of its life."""

    def text(self) -> str:
        return f"uncorrectable memory errors of a chip went up to {self.count:.0f} within the window"


@value_object
class ClocksHeldDown(Finding):
    """A fault holds down the clocks."""

    helps = "check cooling and power of the node, or run on another one"

    time: float
    """Share of the time."""

    by_heat: bool | None
    """Whether mostly by heat, else by a hardware slowdown or a power brake. None: not known."""

    degrees: float | None
    """Celsius; None where it is not measured."""

    watts: float | None
    """Power of one chip; None where it is not measured."""
    limit: float | None
    """Watts that the driver enforces, else those of the data sheet."""

    clock: float | None
    """Share of the highest clock."""

    def text(self) -> str:
        text = f"clocks are held down {percent(self.time)} of the time"
        if self.by_heat is not None:
            hot = "" if self.degrees is None else f" ({self.degrees:.0f} °C)"
            text += f" by heat{hot}" if self.by_heat else " by a slowdown or power brake"
        if self.watts is not None:
            text += f" at {self.watts:.0f} W" + (f" of {self.limit:.0f} W" if self.limit is not None else "")
        return text if self.clock is None else f"{text}; at {percent(self.clock)} of their maximum"


@value_object
class AllocationsRetried(Finding):
    """Allocations failed at first, and succeeded after cached memory was given back."""

    helps = _MORE_MEMORY

    times: float
    """Within the window."""

    memory_used: float | None
    """Share of a chip's memory."""

    def text(self) -> str:
        return f"{how_many(self.times, 'allocation')} failed at the first try{_fill(self.memory_used)}"


@value_object
class NoRoomForBatch(Finding):
    """Chips wait for the host, and memory is too full for the larger batch that would help."""

    helps = _MORE_MEMORY

    otherwise: Finding
    """Why the chips wait."""

    memory_used: float
    """Share of a chip's memory."""

    def text(self) -> str:
        return f"{self.otherwise.text()}; a larger batch has no room{_fill(self.memory_used)}"


@value_object
class RankStarves(Finding):
    """Some ranks wait for data, and one does not."""

    helps = "check the storage and the loader of the ranks that wait"

    mean: float
    """Wait for data, of all ranks."""

    least: float
    """The same of the rank that waits least."""

    def text(self) -> str:
        mean, least = percent(self.mean), percent(self.least)
        return f"ranks wait for data {mean} of the step on average, and one of them only {least}"


@value_object
class RankNeverWaits(Finding):
    """Ranks wait for one that does not wait for others, by a trace."""

    helps = _EVEN_OUT

    mean: float
    """Exposed communication, of all ranks."""

    least: float
    """The same of the rank that waits least."""

    def text(self) -> str:
        mean, least = percent(self.mean), percent(self.least)
        return f"ranks wait for others {mean} of the step on average, and one of them only {least}"


@value_object
class RankComputesMore(Finding):
    """Compute units of one chip are active while those of another one wait."""

    helps = _EVEN_OUT

    chips: int
    """How many the job has."""
    most: float
    """Activity of the chip that does most."""

    least: float
    """Activity of the chip that does least."""

    def text(self) -> str:
        return (
            f"one of {self.chips} chips computes {percent(self.most)} of the time, and another, which waits, "
            f"{percent(self.least)}"
        )


@value_object
class RankIdles(Finding):
    """A chip idles where the others are busy."""

    helps = _EVEN_OUT

    chips: int
    """How many the job has."""
    slowest: float
    """Busy time of that chip."""

    mean: float
    """Busy time, of all chips."""

    def text(self) -> str:
        slowest, mean = percent(self.slowest), percent(self.mean)
        return f"one of {self.chips} chips is busy {slowest} of the time, and the mean is {mean}"


def _fill(memory_used: float | None) -> str:
    return "" if memory_used is None else f": {percent(memory_used)} of a chip's memory is in use"
