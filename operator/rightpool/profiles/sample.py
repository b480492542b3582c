"""A sample: one reading of one Revision at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Field(StrEnum):
    """What can be read. Ratios 0–1, SI base units. The value is the name in status and in messages."""

    SAMPLES_PER_SECOND = "samplesPerSecond"  # the whole job: sum over pods
    STEP_SECONDS = "stepSeconds"  # mean over processes
    CHIP_BUSY = "chipBusy"  # mean over chips, as are the ratios below
    COMPUTE_ACTIVE = "computeActive"
    MATRIX_ACTIVE = "matrixActive"
    MEMORY_BANDWIDTH = "memoryBandwidth"
    MEMORY_USED = "memoryUsedBytes"  # the fullest chip
    MEMORY_TOTAL = "memoryTotalBytes"
    POWER = "powerWatts"  # mean over chips
    THROTTLE = "throttle"  # the most throttled chip
    EXPOSED_COMMUNICATION = "exposedCommunication"  # share of the step
    INPUT_WAIT = "inputWait"  # share of the step
    STEPS = "steps"  # optimizer steps since the Revision's processes started; resets on restart
    CHECKPOINT_TIMESTAMP = "checkpointTimestamp"  # Unix seconds of the newest complete save
    CHECKPOINT_SECONDS = "checkpointSeconds"  # how long that save held up the program
    SLOWEST_CHIP_BUSY = "slowestChipBusy"  # minimum over chips, to see stragglers
    PODS = "pods"  # pods that answered


class Quality(StrEnum):
    """How a value came about. A missing value has no quality: it is absent."""

    MEASURED = "Measured"
    DERIVED = "Derived"


@dataclass(frozen=True, slots=True)
class RevisionKey:
    """Whose readings these are."""

    namespace: str
    job: str
    revision: int


@dataclass(frozen=True, slots=True)
class Sample:
    """at: Unix seconds of the scrape (not of the query). values: what could be read, absent otherwise.

    derived: fields whose source says that they are derived, not measured.
    """

    at: float
    values: Mapping[Field, float]
    derived: frozenset[Field] = field(default_factory=frozenset)
