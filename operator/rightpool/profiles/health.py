"""What is wrong with chips: faults, clocks that a fault holds down, memory that is too small.

A power cap is no fault. A chip at the limit that its board enforces works as it was set up to, whatever the data sheet
says; only heat, a hardware slowdown and a power brake are faults, by the reasons that the driver gives.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from rightpool.profiles.bottleneck import Bottleneck, Case, Diagnosis
from rightpool.profiles.findings import (
    AllocationsRetried,
    BrokenRow,
    ClocksHeldDown,
    CriticalError,
    Finding,
    MemoryErrors,
    NoRoomForBatch,
)
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field

# From this share of time on, clocks that a fault holds down limit the job.
_THROTTLED: Final = 0.2
# From this share of a chip's memory on, there is no room for a larger batch.
_FULL: Final = 0.95
# Clocks of a chip at its power limit while it works, as a share of their maximum: what a healthy chip reaches.
_USUAL_CLOCK: Final = 0.85
_USUAL_CLOCK_SD: Final = 0.1  # of its logarithm, between kinds of chips and of work
_REPAIR_FAILED: Final = 2.0


def unhealthy(case: Case) -> Diagnosis | None:
    """A chip with a fault that ends programs, or makes wrong results likely."""
    xid, repair = case.values.get(Field.XID), case.values.get(Field.REPAIR)
    errors = case.profile.readings.get(Field.UNCORRECTED_ERRORS)
    finding: Finding
    if xid:
        finding = CriticalError(xid)
    elif repair:
        finding = BrokenRow(replaceable=repair < _REPAIR_FAILED)
    elif errors is not None and errors.high > errors.low:
        finding = MemoryErrors(errors.high)
    else:
        return None
    return Diagnosis(Bottleneck.UNHEALTHY, finding)


def throttled(case: Case) -> Diagnosis | None:
    """Clocks that heat, a hardware slowdown or a power brake holds down, below what healthy chips reach."""
    throttle, clock = case.values.get(Field.THROTTLE), case.values.get(Field.CLOCK)
    if throttle is None or throttle < case.threshold(_THROTTLED, Bottleneck.THROTTLED):
        return None
    if clock is not None and 1.0 - clock < case.threshold(1.0 - _USUAL_CLOCK, Bottleneck.THROTTLED):
        return None
    heat = case.values.get(Field.THERMAL_THROTTLE)
    finding = ClocksHeldDown(
        time=throttle,
        by_heat=None if heat is None else 2.0 * heat >= throttle,
        degrees=case.values.get(Field.TEMPERATURE),
        watts=case.values.get(Field.POWER),
        limit=power_limit(case),
        clock=clock,
    )
    return Diagnosis(Bottleneck.THROTTLED, finding)


def power_limit(case: Case) -> float | None:
    """Watts that the driver enforces, else those of the data sheet."""
    enforced = case.values.get(Field.POWER_LIMIT)
    return case.accelerator.power_watts if enforced is None else enforced


def memory_is_short(case: Case) -> Diagnosis | None:
    """Allocations that succeed only after cached memory was given back: the program runs at the edge."""
    retries = case.profile.readings.get(Field.MEMORY_RETRIES)
    if retries is None or retries.high <= retries.low:
        return None
    used, total = case.values.get(Field.MEMORY_USED), case.values.get(Field.MEMORY_TOTAL)
    full = None if used is None or not total else min(1.0, used / total)
    return Diagnosis(Bottleneck.MEMORY_CAPACITY, AllocationsRetried(retries.high - retries.low, full))


def no_room_for_more(case: Case, found: Diagnosis) -> Diagnosis | None:
    """Full memory is what limits a job whose chips a larger batch would use better."""
    used, total = case.values.get(Field.MEMORY_USED), case.values.get(Field.MEMORY_TOTAL)
    if found.bottleneck not in (Bottleneck.HOST_BOUND, Bottleneck.SMALL_KERNELS) or used is None or not total:
        return None
    if used < case.threshold(_FULL, Bottleneck.MEMORY_CAPACITY) * total:
        return None
    return Diagnosis(Bottleneck.MEMORY_CAPACITY, NoRoomForBatch(found.finding, min(1.0, used / total)))


class Throttling(NamedTuple):
    """How much faster the arithmetic units of a job's chips would be, had no fault held down their clocks. Memory has a
    clock of its own."""

    log: float
    """Logarithm of the ratio; 0 where nothing is wrong."""
    sd: float
    """Its standard deviation."""


NOT_THROTTLED: Final = Throttling(0.0, 0.0)


def throttling(profile: Profile) -> Throttling:
    """What predictions of other pools, verdicts and what is learned of chips make of a fault; they ask nothing else.

    By the clock of the slowest chip against what chips reach at their power limit, and no more than the time in which
    clocks were held down allows. Where no clock is known, by that time alone: the driver halves clocks or more in a
    hardware slowdown, and takes less where software sees heat (NVML, nvmlClocksEventReasons), so that half of a halving
    is taken, and as much for its doubt.
    """
    held, clock = profile.value(Field.THROTTLE), profile.value(Field.CLOCK)
    if held is None or held < _THROTTLED:
        return NOT_THROTTLED
    if clock is None or clock <= 0.0:
        half = -0.5 * math.log1p(-0.5 * min(held, 1.0))
        return Throttling(half, half)
    slowed = math.log(_USUAL_CLOCK / clock)
    if held < 1.0:
        slowed = min(slowed, -math.log1p(-held))
    return Throttling(slowed, _USUAL_CLOCK_SD) if slowed > 0.0 else NOT_THROTTLED
