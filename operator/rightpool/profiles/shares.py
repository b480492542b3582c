"""Shares of one step: where the time goes, as far as the counters tell.

A chip counts as busy while anything is resident on it, and collectives are: on DDP over PCIe the chip is busy for 99.5%
of the step of which 25.5% is exposed communication and 73.3% computation. So what chips wait for is 1 − busy, and what
is left of busy after the exposed communication is work on the chip.
"""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field


@dataclass(frozen=True, slots=True)
class Attainable:
    """The highest ratios that kernels sustain on a chip; what closeness to the roofline is measured against.

    0.8 until the fleet has seen more: a bf16 matmul shows 0.93, a device copy 0.89, mixed steps less.
    """

    matrix: float = 0.8
    bandwidth: float = 0.8


@dataclass(frozen=True, slots=True)
class Roofline:
    """How close the chip came to each of its roofs while it worked (0–1 and a little above). None: not counted."""

    matrix: float | None
    bandwidth: float | None

    @property
    def nearest(self) -> float | None:
        """The higher of the two; None where neither is counted."""
        known = [value for value in (self.matrix, self.bandwidth) if value is not None]
        return max(known, default=None)

    @property
    def compute_weight(self) -> float | None:
        """w = T / (T + D): the part of the chip's time that scales with FLOP/s. None unless both are counted."""
        if self.matrix is None or self.bandwidth is None or self.matrix + self.bandwidth <= 0:
            return None
        return self.matrix / (self.matrix + self.bandwidth)


@dataclass(frozen=True, slots=True)
class Shares:
    """input: the chip waits for data. host: it waits for the host otherwise. communication: exposed. chip: it works.

    Not negative; the sum is 1. roofline splits the last one.
    """

    input: float
    host: float
    communication: float
    chip: float
    roofline: Roofline

    @property
    def idle(self) -> float:
        """The chip has nothing to do: input and host."""
        return self.input + self.host

    @property
    def compute(self) -> float | None:
        """Share limited by FLOP/s; None where counters do not tell."""
        weight = self.roofline.compute_weight
        return None if weight is None else self.chip * weight

    @property
    def bandwidth(self) -> float | None:
        """Share limited by memory bandwidth; None where counters do not tell."""
        weight = self.roofline.compute_weight
        return None if weight is None else self.chip * (1.0 - weight)


def decompose(profile: Profile, attainable: Attainable | None = None) -> Shares | None:
    """The shares of a step; None where how busy the chips are, or what several of them communicate, is not known.

    Input wait is the host's, and the chip may work meanwhile: only what the chip really waits counts as input.
    """
    busy = profile.value(Field.CHIP_BUSY)
    exposed = profile.value(Field.EXPOSED_COMMUNICATION)
    if exposed is None and profile.chips == 1:
        exposed = 0.0
    if busy is None or exposed is None:
        return None
    busy, exposed = _ratio(busy), _ratio(exposed)
    # Communication that keeps no chip busy (over the host) stretches beyond what is busy.
    occupied = max(busy, exposed)
    idle = 1.0 - occupied
    waiting = min(_ratio(profile.value(Field.INPUT_WAIT) or 0.0), idle)
    return Shares(
        input=waiting,
        host=idle - waiting,
        communication=exposed,
        chip=occupied - exposed,
        roofline=roofline(profile, occupied - exposed, attainable or Attainable()),
    )


def roofline(profile: Profile, working: float, attainable: Attainable) -> Roofline:
    """Closeness to the roofs during the share of time that the chip works: counters are means over all of it."""

    def near(field: Field, highest: float) -> float | None:
        ratio = profile.value(field)
        if ratio is None:
            return None
        return 0.0 if working <= 0 else min(_ratio(ratio) / (working * highest), 1.0 / highest)

    return Roofline(
        matrix=near(Field.MATRIX_ACTIVE, attainable.matrix),
        bandwidth=near(Field.MEMORY_BANDWIDTH, attainable.bandwidth),
    )


def _ratio(value: float) -> float:
    return min(1.0, max(0.0, value))
