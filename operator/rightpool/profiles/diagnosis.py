"""The diagnosis: one bottleneck, with its evidence."""

from dataclasses import dataclass
from enum import StrEnum


class Bottleneck(StrEnum):
    """The one class that limits a job now."""

    INPUT_BOUND = "InputBound"
    HOST_BOUND = "HostBound"
    COMMUNICATION_BOUND = "CommunicationBound"
    MEMORY_BANDWIDTH = "MemoryBandwidth"
    COMPUTE = "Compute"
    THROTTLED = "Throttled"
    STRAGGLER = "Straggler"
    IDLE = "Idle"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """evidence: the numbers, one sentence. lever: what helps, one sentence."""

    bottleneck: Bottleneck
    evidence: str
    lever: str
