"""What a diagnosis was made of: one type for each rule, with the values that it decided by.

Shares are of the time or of a step, 0 to 1. `chips` are those of the job, `chip` is the catalog's key of their kind.
The words are in `reporting/diagnosis_texts.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.api.pool import LinkKind
from rightpool.profiles.closeness import Arithmetic, Roofs


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a diagnosis names its class."""


# --- the profile itself ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NothingMeasured(Finding):
    """There is no reading yet."""


@dataclass(frozen=True, slots=True)
class ReadingsTooOld(Finding):
    """The newest reading says nothing about now."""


@dataclass(frozen=True, slots=True)
class WindowNotFull(Finding):
    """Readings after the warm-up do not fill the window."""

    covered: float
    """Share of the window."""

    window: float
    """Seconds."""

    steps: float | None
    """Steps of a program that may still compile; None of one that has made enough, or is not counted."""


@dataclass(frozen=True, slots=True)
class SharedChip(Finding):
    """Processes of others work on a chip: counters are theirs, too."""

    others: float
    """Share of the time in which its compute units work for them."""


# --- faults of chips -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CriticalError(Finding):
    """The driver has reported one."""

    xid: float
    """NVIDIA's number of it."""


@dataclass(frozen=True, slots=True)
class BrokenRow(Finding):
    """A row of a chip's memory is broken."""

    replaceable: bool
    """Whether a reset replaces it."""


@dataclass(frozen=True, slots=True)
class MemoryErrors(Finding):
    """Uncorrectable errors were added within the window."""

    count: float
    """Of one chip, the whole of its life."""


@dataclass(frozen=True, slots=True)
class ClocksHeldDown(Finding):
    """A fault holds down the clocks."""

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


@dataclass(frozen=True, slots=True)
class AllocationsRetried(Finding):
    """Allocations failed at first, and succeeded after cached memory was given back."""

    times: float
    """Within the window."""

    memory_used: float | None
    """Share of a chip's memory."""


@dataclass(frozen=True, slots=True)
class NoRoomForBatch(Finding):
    """Chips wait for the host, and memory is too full for the larger batch that would help."""

    otherwise: Finding
    """Why the chips wait."""

    memory_used: float
    """Share of a chip's memory."""


# --- ranks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RankStarves(Finding):
    """Some ranks wait for data, and one does not."""

    mean: float
    """Wait for data, of all ranks."""

    least: float
    """The same of the rank that waits least."""


@dataclass(frozen=True, slots=True)
class RankNeverWaits(Finding):
    """Ranks wait for one that does not wait for others, by a trace."""

    mean: float
    """Exposed communication, of all ranks."""

    least: float
    """The same of the rank that waits least."""


@dataclass(frozen=True, slots=True)
class RankComputesMore(Finding):
    """Compute units of one chip are active while those of another one wait."""

    chips: int
    """How many the job has."""
    most: float
    """Activity of the chip that does most."""

    least: float
    """Activity of the chip that does least."""


@dataclass(frozen=True, slots=True)
class RankIdles(Finding):
    """A chip idles where the others are busy."""

    chips: int
    """How many the job has."""
    slowest: float
    """Busy time of that chip."""

    mean: float
    """Busy time, of all chips."""


# --- where chips wait ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StillCompiles(Finding):
    """No step was made, and the program compiled."""

    time: float
    """Share of the time."""


@dataclass(frozen=True, slots=True)
class NothingRuns(Finding):
    """No step was made, and chips did nothing."""

    chips: int
    """How many the job has."""
    busy: float
    """Share of the time."""


@dataclass(frozen=True, slots=True)
class ChipsUnused(Finding):
    """Nothing ever ran on some chips of a pod."""

    unused: float
    """How many those are."""
    of: int
    """Chips of the pod."""


@dataclass(frozen=True, slots=True)
class NoStepYet(Finding):
    """Chips did nothing, and the program never made a step: it may still load or start."""

    chips: int
    """How many the job has."""
    busy: float
    """Share of the time."""


@dataclass(frozen=True, slots=True)
class BusyTimeUnknown(Finding):
    """Waiting and work can't be told apart."""


@dataclass(frozen=True, slots=True)
class WaitsForInput(Finding):
    """Chips are idle, most of it for data."""

    chips: int
    """How many the job has."""
    idle: float
    """Share of the step."""

    input: float
    """The part of it for data."""


@dataclass(frozen=True, slots=True)
class WaitsForSave(Finding):
    """Chips are idle, most of it while the program saves."""

    chips: int
    """How many the job has."""
    idle: float
    """Share of the step."""

    saving: float
    """The part of it in saves."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


# --- what limits the work --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComputesNothing(Finding):
    """The chip is busy and its compute units are not."""

    chip: str
    """Its key in the catalog."""
    busy: float
    """Share of the time in which anything ran."""
    active: float
    """Activity of the compute units."""


@dataclass(frozen=True, slots=True)
class NothingCounted(Finding):
    """Chips are busy, and no counter tells of any roof."""

    chips: int
    """How many the job has."""


@dataclass(frozen=True, slots=True)
class CommunicationUnknown(Finding):
    """No roof is near, and exposed communication is not measured."""

    chips: int
    """How many the job has."""
    roofs: Roofs
    """How near it comes to those that are counted."""


@dataclass(frozen=True, slots=True)
class OneRoofCounted(Finding):
    """The roof that is counted is not near; another one may be."""

    roofs: Roofs
    """How near it comes to the one that is counted."""


@dataclass(frozen=True, slots=True)
class LaunchesUnknown(Finding):
    """No roof is near, and the activity of compute units is not measured."""

    roofs: Roofs
    """How near it comes to them."""


@dataclass(frozen=True, slots=True)
class KernelsSparse(Finding):
    """No roof is near, and compute units have nothing to do for most of the time."""

    chip: str
    """Its key in the catalog."""
    active: float
    """Activity of the compute units."""

    roofs: Roofs
    """How near it comes to them."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class NoRoofNear(Finding):
    """No roof is near, and compute units wait for a part of the time."""

    chip: str
    """Its key in the catalog."""
    active: float
    """Activity of the compute units."""

    roofs: Roofs
    """How near it comes to them."""


@dataclass(frozen=True, slots=True)
class KernelsWait(Finding):
    """No roof is near, and compute units always have work: they wait within the chip."""

    chip: str
    """Its key in the catalog."""
    active: float
    """Activity of the compute units."""

    occupancy: float | None
    """Share of their slots in use; None where that is not counted."""

    roofs: Roofs
    """How near it comes to them."""


@dataclass(frozen=True, slots=True)
class OtherUnitsCompute(Finding):
    """Compute units always have work, and pipes beside the matrix units are not counted."""

    chip: str
    """Its key in the catalog."""
    active: float
    """Activity of the compute units."""

    roofs: Roofs
    """How near it comes to those that are counted."""
    arithmetic: Arithmetic
    """What helps depends on it."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class BandwidthNear(Finding):
    """The memory's bandwidth is the nearest roof."""

    chip: str
    """Its key in the catalog."""
    roofs: Roofs
    """How near it comes to them."""

    waits: float | None = None
    """Share of the step in which chips wait, which limits the job next; None where it matters little."""
