"""Readings that can't be so together. They are set aside: what contradicts itself was not measured.

Shares are of one step, and counters are means over one window, so they may differ by a few percent. Beyond that one of
two is of something else: of another chip, of another time, in another unit. Which one, nobody knows, so both go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final, Protocol

from rightpool.profiles.sample import Field

# By so much counters may be off, as a share of the time.
SLACK: Final = 0.05
# Of two that are read at different times; of shares that overlap a little.
SLACK_OF_TWO: Final = 0.10
# The same of two that were set aside in the window before: noise at the limit would change it in every window.
STILL_OF_TWO: Final = 0.05


class Inconsistency(StrEnum):
    """Why a reading was set aside."""

    OUT_OF_RANGE = "OutOfRange"  # a share of less than nothing, or of more than all
    SHARES_EXCEED_STEP = "SharesExceedStep"  # exposed communication and the wait for data are more than a step
    UNITS_ACTIVE_ON_IDLE_CHIP = "UnitsActiveOnIdleChip"  # matrix units without the SMs, or SMs without the chip
    MEAN_BEYOND_EXTREMES = "MeanBeyondExtremes"  # a mean over chips below the lowest of them, or above the highest
    TRACE_DISTORTED = "TraceDistorted"  # a trace in which chips compute far less than by their counters
    MEMORY_OVERFULL = "MemoryOverfull"  # more memory in use than the chip has


class _Valued(Protocol):
    @property
    def value(self) -> float: ...


_SHARES: Final = (
    Field.CHIP_BUSY,
    Field.SLOWEST_CHIP_BUSY,
    Field.COMPUTE_ACTIVE,
    Field.MOST_COMPUTE_ACTIVE,
    Field.LEAST_COMPUTE_ACTIVE,
    Field.MATRIX_ACTIVE,
    Field.FP64_ACTIVE,
    Field.FP32_ACTIVE,
    Field.FP16_ACTIVE,
    Field.INTEGER_ACTIVE,
    Field.OCCUPANCY,
    Field.MEMORY_BANDWIDTH,
    Field.EXPOSED_COMMUNICATION,
    Field.LEAST_EXPOSED,
    Field.INPUT_WAIT,
    Field.LEAST_INPUT_WAIT,
    Field.LAUNCH_GAPS,
    Field.SAVING,
    Field.OTHERS,
)
# What a trace tells of a step.
_TRACED: Final = frozenset({Field.EXPOSED_COMMUNICATION, Field.LEAST_EXPOSED, Field.LAUNCH_GAPS})
# Part of the compute units that collectives occupy: at most some thirty of NVIDIA's, of eighty and more.
_COLLECTIVES: Final = 0.3
# The first is never more than the second.
_NOT_ABOVE: Final = (
    (Field.MATRIX_ACTIVE, Field.COMPUTE_ACTIVE, Inconsistency.UNITS_ACTIVE_ON_IDLE_CHIP),
    (Field.COMPUTE_ACTIVE, Field.CHIP_BUSY, Inconsistency.UNITS_ACTIVE_ON_IDLE_CHIP),
    (Field.MATRIX_ACTIVE, Field.CHIP_BUSY, Inconsistency.UNITS_ACTIVE_ON_IDLE_CHIP),
    (Field.SLOWEST_CHIP_BUSY, Field.CHIP_BUSY, Inconsistency.MEAN_BEYOND_EXTREMES),
    (Field.LEAST_COMPUTE_ACTIVE, Field.COMPUTE_ACTIVE, Inconsistency.MEAN_BEYOND_EXTREMES),
    (Field.COMPUTE_ACTIVE, Field.MOST_COMPUTE_ACTIVE, Inconsistency.MEAN_BEYOND_EXTREMES),
)


def inconsistencies(
    readings: Mapping[Field, _Valued], before: Collection[Field] = frozenset()
) -> dict[Field, Inconsistency]:
    """The readings to set aside, and why; each for the first reason that is found. before: those of the last window."""
    values = {field: reading.value for field, reading in readings.items()}
    impossible = [field for field in _SHARES if not -SLACK <= values.get(field, 0.0) <= 1.0 + SLACK]
    found = dict.fromkeys(impossible, Inconsistency.OUT_OF_RANGE)
    for field in found:
        del values[field]
    for lower, upper, reason in _NOT_ABOVE:
        least, most = values.get(lower), values.get(upper)
        if least is not None and most is not None and least > most + _slack(lower, upper, before):
            found.setdefault(lower, reason)
            found.setdefault(upper, reason)
    exposed, waited = values.get(Field.EXPOSED_COMMUNICATION), values.get(Field.INPUT_WAIT)
    slack = _slack(Field.EXPOSED_COMMUNICATION, Field.INPUT_WAIT, before)
    if exposed is not None and waited is not None and exposed + waited > 1.0 + slack:
        found[Field.EXPOSED_COMMUNICATION] = found[Field.INPUT_WAIT] = Inconsistency.SHARES_EXCEED_STEP
    if _distorted(values, before):
        found.update(dict.fromkeys(_TRACED & values.keys(), Inconsistency.TRACE_DISTORTED))
    used, total = values.get(Field.MEMORY_USED), values.get(Field.MEMORY_TOTAL)
    if used is not None and total is not None and used > (1.0 + SLACK) * total:
        found[Field.MEMORY_TOTAL] = Inconsistency.MEMORY_OVERFULL  # what is in use must fit all the same
    return found


def _distorted(values: Mapping[Field, float], before: Collection[Field]) -> bool:
    """Whether compute units are active for longer than the trace of a few steps has room for: it slowed these."""
    exposed, active = values.get(Field.EXPOSED_COMMUNICATION), values.get(Field.COMPUTE_ACTIVE)
    if exposed is None or active is None:
        return False
    slack = STILL_OF_TWO if Field.EXPOSED_COMMUNICATION in before else SLACK_OF_TWO
    return active > max(0.0, 1.0 - exposed - values.get(Field.LAUNCH_GAPS, 0.0)) + _COLLECTIVES * exposed + slack


def _slack(one: Field, other: Field, before: Collection[Field]) -> float:
    return STILL_OF_TWO if one in before and other in before else SLACK_OF_TWO
