"""Samples from what the sources say of a Revision: which values are admissible, and which source comes first."""

from collections.abc import Iterable, Mapping
from typing import Final

from rightpool.api.traits import ModelTraits
from rightpool.profiles.sample import LARGEST, SMALLEST, Field, Sample, measurable
from rightpool.telemetry.sources.source import SourceReading

_RATIOS: Final = frozenset(
    {
        Field.CHIP_BUSY,
        Field.COMPUTE_ACTIVE,
        Field.MATRIX_ACTIVE,
        Field.MEMORY_BANDWIDTH,
        Field.EXPOSED_COMMUNICATION,
        Field.INPUT_WAIT,
        Field.THROTTLE,
        Field.SLOWEST_CHIP_BUSY,
        Field.MOST_COMPUTE_ACTIVE,
        Field.LEAST_COMPUTE_ACTIVE,
        Field.FP64_ACTIVE,
        Field.FP32_ACTIVE,
        Field.FP16_ACTIVE,
        Field.INTEGER_ACTIVE,
        Field.OCCUPANCY,
        Field.POWER_CAPPED,
        Field.THERMAL_THROTTLE,
        Field.CLOCK,
        Field.LEAST_EXPOSED,
        Field.LEAST_INPUT_WAIT,
        Field.LAUNCH_GAPS,
        Field.COMPILING,
        Field.SAVING,
        Field.OTHERS,
    }
)
_RATIO_SLACK: Final = 0.05  # counters read at slightly different moments may give 1.01; beyond this it is no ratio
_AHEAD: Final = 86_400.0  # seconds that a node's clock may be ahead; what is dated later was dated by none


def admissible(field: Field, value: float) -> float | None:
    """The value, or None where it can't be one of this field: a wrong number is worse than a missing one.

    An untrusted pod may say anything.
    """
    if not measurable(value) or (value == 0 and field is Field.STEP_SECONDS):
        return None
    if field in _RATIOS:
        return None if value > 1 + _RATIO_SLACK else min(value, 1.0)
    return value


def sample_of(readings: Iterable[SourceReading], span: float = 0.0) -> Sample | None:
    """A Sample of what the sources say of one Revision. span: that of the Sample.

    Each field is that of the first that measures it admissibly, else of the first that derives it: a utilization that
    counts any kernel must not hide a better counter. None where nothing is left, or no source knows when its values
    were read.
    """
    at = None
    values: Mapping[Field, float] = {}
    derived: set[Field] = set()
    traits: ModelTraits | None = None
    for reading in readings:
        at = reading.at if at is None else at
        traits = reading.traits if traits is None else traits
        found = _admissible(reading.values)
        if values:
            found = {
                field: value
                for field, value in found.items()
                if field not in values or (field in derived and field not in reading.derived)
            }
            values = {**values, **found}
        else:
            values = found
        derived.difference_update(found)
        derived.update(found.keys() & reading.derived)
    if at is not None and values.get(Field.CHECKPOINT_TIMESTAMP, at) > at + _AHEAD:
        values = {field: value for field, value in values.items() if field is not Field.CHECKPOINT_TIMESTAMP}
    return Sample(at, values, frozenset(derived), traits, span) if at is not None and values else None


def _admissible(values: Mapping[Field, float]) -> Mapping[Field, float]:
    """The admissible ones; the very same mapping where these are all, as they mostly are."""
    for field, value in values.items():
        # Nearly all are; a call for each would be most of the time.
        usual = SMALLEST <= value <= 1.0 or (1.0 < value <= LARGEST and field not in _RATIOS)
        if not usual and admissible(field, value) != value:
            break
    else:
        return values
    return {field: number for field, value in values.items() if (number := admissible(field, value)) is not None}
