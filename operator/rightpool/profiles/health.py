"""What is wrong with chips: faults, clocks that a fault holds down, memory that is too small.

A power cap is no fault. A chip at the limit that its board enforces works as it was set up to, whatever the data sheet
says; only heat, a hardware slowdown and a power brake are faults, by the reasons that the driver gives.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from rightpool.profiles.bottleneck import Bottleneck, Case, Diagnosis, percent
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
    xid, repair = case.value(Field.XID), case.value(Field.REPAIR)
    errors = case.profile.readings.get(Field.UNCORRECTED_ERRORS)
    if xid:
        evidence = f"a chip reported the critical error XID {xid:.0f}"
    elif repair is not None and repair >= _REPAIR_FAILED:
        evidence = "a chip could not replace a broken row of its memory"
    elif repair:
        evidence = "a chip waits for a reset to replace a broken row of its memory"
    elif errors is not None and errors.high > errors.low:
        evidence = f"uncorrectable memory errors of a chip went up to {errors.high:.0f} within the window"
    else:
        return None
    lever = "run elsewhere; cordon the node, reset the chip, and replace it if the error comes back"
    return Diagnosis(Bottleneck.UNHEALTHY, evidence, lever)


def throttled(case: Case) -> Diagnosis | None:
    """Clocks that heat, a hardware slowdown or a power brake holds down."""
    throttle = case.value(Field.THROTTLE)
    if throttle is None or throttle < case.threshold(_THROTTLED, Bottleneck.THROTTLED):
        return None
    heat, degrees = case.value(Field.THERMAL_THROTTLE), case.value(Field.TEMPERATURE)
    evidence = f"clocks are held down {percent(throttle)} of the time"
    if heat is not None:
        hot = "" if degrees is None else f" ({degrees:.0f} °C)"
        by_heat = 2.0 * heat >= throttle
        evidence += f" by heat{hot}" if by_heat else " by a hardware slowdown or a power brake"
    power, limit = case.value(Field.POWER), power_limit(case)
    if power is not None:
        evidence += f" at {power:.0f} W" + (f" of {limit:.0f} W" if limit is not None else "")
    clock = case.value(Field.CLOCK)
    if clock is not None:
        evidence += f", at {percent(clock)} of their maximum"
    return Diagnosis(Bottleneck.THROTTLED, evidence, "see to cooling and power of the node, or run on another one")


def power_limit(case: Case) -> float | None:
    """Watts that the driver enforces, else those of the data sheet."""
    enforced = case.value(Field.POWER_LIMIT)
    return case.accelerator.power_watts if enforced is None else enforced


def memory_is_short(case: Case) -> Diagnosis | None:
    """Allocations that succeed only after cached memory was given back: the program runs at the edge."""
    retries = case.profile.readings.get(Field.MEMORY_RETRIES)
    if retries is None or retries.high <= retries.low:
        return None
    evidence = f"allocations failed at first {retries.high - retries.low:.0f} times within the window{_fill(case)}"
    return Diagnosis(Bottleneck.MEMORY_CAPACITY, evidence, _MORE_MEMORY)


def no_room_for_more(case: Case, found: Diagnosis) -> Diagnosis | None:
    """Full memory is what limits a job whose chips a larger batch would use better."""
    used, total = case.value(Field.MEMORY_USED), case.value(Field.MEMORY_TOTAL)
    if found.bottleneck is not Bottleneck.HOST_BOUND or used is None or not total:
        return None
    if used < case.threshold(_FULL, Bottleneck.MEMORY_CAPACITY) * total:
        return None
    return Diagnosis(
        Bottleneck.MEMORY_CAPACITY, f"{found.evidence}; a larger batch has no room{_fill(case)}", _MORE_MEMORY
    )


_MORE_MEMORY: Final = "chips with more memory, sharded state, recomputed activations, or lower precision"


def _fill(case: Case) -> str:
    used, total = case.value(Field.MEMORY_USED), case.value(Field.MEMORY_TOTAL)
    return "" if used is None or not total else f": {percent(min(1.0, used / total))} of a chip's memory is in use"


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
    if not clock:
        half = -0.5 * math.log1p(-0.5 * min(held, 1.0))
        return Throttling(half, half)
    slowed = math.log(_USUAL_CLOCK / clock)
    if held < 1.0:
        slowed = min(slowed, -math.log1p(-held))
    return Throttling(slowed, _USUAL_CLOCK_SD) if slowed > 0.0 else NOT_THROTTLED
