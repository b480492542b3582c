"""The classes of bottlenecks, and the case that the rules of a diagnosis look at.

Hysteresis: the previous class is kept until its evidence is clearly below the threshold, so that a job near a threshold
does not change its diagnosis with every window.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator
from rightpool.profiles.findings import Finding
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field


class Bottleneck(StrEnum):
    """The one class that limits a job now."""

    INPUT_BOUND = "InputBound"
    CHECKPOINT_BOUND = "CheckpointBound"
    HOST_BOUND = "HostBound"
    SMALL_KERNELS = "SmallKernels"
    COMMUNICATION_BOUND = "CommunicationBound"
    MEMORY_BANDWIDTH = "MemoryBandwidth"
    MEMORY_CAPACITY = "MemoryCapacity"
    COMPUTE = "Compute"
    THROTTLED = "Throttled"
    STRAGGLER = "Straggler"
    UNHEALTHY = "Unhealthy"
    IDLE = "Idle"
    UNKNOWN = "Unknown"


@value_object
class Diagnosis:
    """What limits a job, and why."""

    bottleneck: Bottleneck
    """The class."""

    finding: Finding
    """The rule that named it, with its values. What helps follows from it."""


# The threshold of the previous class is lower by this share. It exceeds the 2% tolerance of profiles, and the few
# percent by which windows of one job differ.
HYSTERESIS: Final = 0.1


@value_object
class Case:
    """What is known when a job is diagnosed."""

    profile: Profile
    """Of the window to be diagnosed."""
    values: Mapping[Field, float]
    """Of its fields over the window; one that is missing is absent."""
    accelerator: Accelerator
    """The chip, with the figures of its data sheet."""
    before: Bottleneck | None
    """The class of the last diagnosis, for hysteresis; None for the first."""

    def threshold(self, threshold: float, *classes: Bottleneck) -> float:
        """The threshold of these classes, lowered if one of them was the previous class."""
        return threshold * (1.0 - HYSTERESIS) if self.before in classes else threshold

    def weighted(self, evidence: float, *classes: Bottleneck) -> float:
        """The evidence for these classes when two are compared, raised if one of them was the previous class."""
        return evidence / (1.0 - HYSTERESIS) if self.before in classes else evidence
