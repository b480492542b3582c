"""A sample: one reading of a Revision's pods."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final, NamedTuple

from rightpool.api.traits import ModelTraits
from rightpool.api.value_object import value_object

# Beyond these nothing of a job is measured, and arithmetic over- and underflows.
SMALLEST: Final = 1e-12
LARGEST: Final = 1e18


def measurable(value: float) -> bool:
    """Whether anything of a job can have this value, which is never negative."""
    return value == 0 or SMALLEST <= value <= LARGEST


class Field(StrEnum):
    """The measured quantities: ratios 0–1, others in SI base units. The value is the name in status and messages."""

    SAMPLES_PER_SECOND = "samplesPerSecond"  # the whole job: sum over pods
    STEPS_PER_SECOND = "stepsPerSecond"  # of the whole job, where steps are its unit of work; no source reads it
    STEP_SECONDS = "stepSeconds"  # mean over processes
    SAMPLES = "samples"  # counted since the Revision's pods started, sum over pods; falls where one is made anew
    STEPS = "steps"  # optimizer steps since the Revision's processes started; resets on restart
    PODS = "pods"  # pods whose readings are in the sample
    CHECKPOINT_TIMESTAMP = "checkpointTimestamp"  # Unix seconds of the newest complete save
    CHECKPOINT_SECONDS = "checkpointSeconds"  # how long the program waited for that save

    # Activity of chips: mean over chips where nothing else is said.
    CHIP_BUSY = "chipBusy"
    SLOWEST_CHIP_BUSY = "slowestChipBusy"  # minimum over chips
    COMPUTE_ACTIVE = "computeActive"
    MOST_COMPUTE_ACTIVE = "mostComputeActive"  # maximum over chips: of a straggler, which never waits
    LEAST_COMPUTE_ACTIVE = "leastComputeActive"  # minimum over chips
    MATRIX_ACTIVE = "matrixActive"
    FP64_ACTIVE = "fp64Active"  # pipes beside the matrix units
    FP32_ACTIVE = "fp32Active"
    FP16_ACTIVE = "fp16Active"
    INTEGER_ACTIVE = "integerActive"
    OCCUPANCY = "occupancy"
    MEMORY_BANDWIDTH = "memoryBandwidth"
    MEMORY_USED = "memoryUsedBytes"  # the fullest chip
    MEMORY_TOTAL = "memoryTotalBytes"
    UNUSED_CHIPS = "unusedChips"  # of a pod: nothing ever ran on them while others worked; the pod with most of them
    OTHERS = "others"  # share of time in which compute units work for processes of others; the chip with most of it
    MEMORY_RETRIES = "memoryRetries"  # allocations that had to free cached memory first, since the processes started

    # Power, clocks and health.
    POWER = "powerWatts"  # mean over chips
    POWER_LIMIT = "powerLimitWatts"  # what the driver enforces; the lowest of all chips
    POWER_CAPPED = "powerCapped"  # share of time at that limit, of the most limited chip; no fault
    CLOCK = "clock"  # of the compute units, as a share of the chip's maximum; the slowest chip
    THROTTLE = "throttle"  # share of time in which a fault holds clocks down, of the most throttled chip
    THERMAL_THROTTLE = "thermalThrottle"  # the part of it that is due to heat
    TEMPERATURE = "temperatureCelsius"  # the hottest chip
    XID = "xid"  # the highest number of a critical XID of a chip; 0 if there was none
    REPAIR = "repair"  # of memory, of the worst chip: 0 none, 1 waits for a reset, 2 failed
    UNCORRECTED_ERRORS = "uncorrectedErrors"  # of memory, of the worst chip, since the driver was loaded

    # Shares of the step, mean over ranks where nothing else is said.
    EXPOSED_COMMUNICATION = "exposedCommunication"
    LEAST_EXPOSED = "leastExposedCommunication"  # of the rank that waits least for others
    INPUT_WAIT = "inputWait"
    LEAST_INPUT_WAIT = "leastInputWait"  # of the rank that waits least for data
    LAUNCH_GAPS = "launchGaps"  # a trace shows nothing on the chip, and no wait for data

    COMPILING = "compiling"  # share of time in which the program compiled; the pod with most of it
    SAVING = "saving"  # share of time in which the program stood still for a save; the pod with most of it

    # Bytes a second of one chip, mean over chips: peer links connect chips (NVLink, xGMI, ICI), PCIe leads to the host.
    PEER_SENT = "peerSentBytesPerSecond"
    PEER_RECEIVED = "peerReceivedBytesPerSecond"
    PCIE_SENT = "pcieSentBytesPerSecond"
    PCIE_RECEIVED = "pcieReceivedBytesPerSecond"

    # The same for one step. Derived from rate and step time in a Profile; no source reads them.
    PEER_SENT_PER_STEP = "peerSentBytesPerStep"
    PEER_RECEIVED_PER_STEP = "peerReceivedBytesPerStep"
    PCIE_SENT_PER_STEP = "pcieSentBytesPerStep"
    PCIE_RECEIVED_PER_STEP = "pcieReceivedBytesPerStep"


PER_STEP: Mapping[Field, Field] = {
    Field.PEER_SENT: Field.PEER_SENT_PER_STEP,
    Field.PEER_RECEIVED: Field.PEER_RECEIVED_PER_STEP,
    Field.PCIE_SENT: Field.PCIE_SENT_PER_STEP,
    Field.PCIE_RECEIVED: Field.PCIE_RECEIVED_PER_STEP,
}
"""Rates of links, and the field for the same in one step."""


class Quality(StrEnum):
    """The origin of a value. A missing value is absent and has no quality."""

    MEASURED = "Measured"
    DERIVED = "Derived"


class RevisionKey(NamedTuple):
    """Identifies a Revision."""

    namespace: str
    """Where the ProfiledJob is."""
    job: str
    """Name of the ProfiledJob."""
    revision: int
    """Its number, from 1."""


@value_object
class Sample:
    """One reading of a Revision's pods."""

    at: float
    """Unix seconds of the scrape, not of the query."""
    values: Mapping[Field, float]
    """Values by field. A field that could not be read is absent."""
    derived: frozenset[Field] = field(default_factory=frozenset)
    """Fields that their source marks as derived instead of measured."""
    traits: ModelTraits | None = None
    """What the program says of its model; None where it says nothing."""
    span: float = 0.0
    """Seconds that its rates are taken over; 0 where they begin with the sample before."""
