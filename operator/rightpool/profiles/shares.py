"""Shares of the time of a step, derived from counters.

A chip counts as busy while any kernel is resident, including collectives: with DDP over PCIe it is busy for 99.5% of
the step, of which 25.5% is exposed communication and 73.3% computation. So the waiting time is 1 − busy, and busy less
the exposed communication is work on the chip.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.value_object import value_object
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field

ATTAINABLE: Final = 0.8
"""The highest ratio that training steps sustain: of the time of matrix units, and of the bandwidth of the data sheet. A
bf16 matmul alone reaches 0.93, a device copy 0.89, mixed steps less."""


@value_object
class Roofline:
    """How close the chip came to each of its roofs while it worked (0–1, or slightly above). None without a counter."""

    matrix: float | None
    """Of the matrix units."""
    bandwidth: float | None
    """Of the memory's bandwidth."""

    @property
    def nearest(self) -> float | None:
        """The higher of the two; None without counters."""
        known = [value for value in (self.matrix, self.bandwidth) if value is not None]
        return max(known, default=None)

    @property
    def compute_weight(self) -> float | None:
        """w = T / (T + D): the part of the chip's time that scales with FLOP/s. None unless both counters exist."""
        if self.matrix is None or self.bandwidth is None or self.matrix + self.bandwidth <= 0:
            return None
        return self.matrix / (self.matrix + self.bandwidth)


@value_object
class Shares:
    """Shares of a step. None is negative, and their sum is 1."""

    input: float | None
    """The chip waits for input data; None where nobody watched that. Then it is a part of `host`."""
    saving: float
    """The chip waits for a save."""
    host: float
    """The chip waits for the host for another reason."""
    communication: float
    """Exposed communication."""
    chip: float
    """The chip works."""
    roofline: Roofline
    """Divides `chip` by what limits it."""

    @property
    def idle(self) -> float:
        """The chip waits: input, saves and host."""
        return (self.input or 0.0) + self.saving + self.host

    @property
    def compute(self) -> float | None:
        """Share limited by FLOP/s; None without counters."""
        weight = self.roofline.compute_weight
        return None if weight is None else self.chip * weight

    @property
    def bandwidth(self) -> float | None:
        """Share limited by memory bandwidth; None without counters."""
        weight = self.roofline.compute_weight
        return None if weight is None else self.chip * (1.0 - weight)


def decompose(profile: Profile) -> Shares | None:
    """The shares of a step; None if busy time, or exposed communication of several chips, is unknown.

    Input wait and time in saves are measured on the host, and the chip may work meanwhile. So at most the idle time
    counts as either.
    """
    busy = profile.value(Field.CHIP_BUSY)
    exposed = profile.value(Field.EXPOSED_COMMUNICATION)
    if exposed is None and profile.chips == 1:
        exposed = 0.0
    if busy is None or exposed is None:
        return None
    busy, exposed = _ratio(busy), _ratio(exposed)
    # Communication over the host does not keep the chip busy, so exposed communication may exceed busy time.
    occupied = max(busy, exposed)
    idle = 1.0 - occupied
    watched = profile.value(Field.INPUT_WAIT)
    waiting = None if watched is None else min(_ratio(watched), idle)
    left = idle - (waiting or 0.0)
    saving = min(_ratio(profile.value(Field.SAVING) or 0.0), left)
    return Shares(
        input=waiting,
        saving=saving,
        host=left - saving,
        communication=exposed,
        chip=occupied - exposed,
        roofline=roofline(profile, occupied - exposed),
    )


def parts_of_step(profile: Profile) -> dict[str, float]:
    """Shares of a step by name, those that are known; empty where none is. Collectives keep a chip busy: where nothing
    tells how long it only communicates, that is in the chip's part."""
    found = decompose(replace(profile, chips=1))  # of one chip, which does not communicate
    if found is None:
        return {}
    parts = {"saving": found.saving, "host": found.host, "chip": found.chip}
    if profile.chips == 1 or profile.value(Field.EXPOSED_COMMUNICATION) is not None:
        parts["communication"] = found.communication
    return parts if found.input is None else {"input": found.input, **parts}


def roofline(profile: Profile, working: float) -> Roofline:
    """Closeness to the roofs while the chip works (`working`: share of the step); counters are means over the step."""

    def near(field: Field) -> float | None:
        ratio = profile.value(field)
        if ratio is None:
            return None
        return 0.0 if working <= 0 else min(_ratio(ratio) / (working * ATTAINABLE), 1.0 / ATTAINABLE)

    return Roofline(matrix=near(Field.MATRIX_ACTIVE), bandwidth=near(Field.MEMORY_BANDWIDTH))


def _ratio(value: float) -> float:
    return min(1.0, max(0.0, value))
