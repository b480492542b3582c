"""Which metric gives which field, and how readings of several chips and pods become one value.

Over the chips of each pod first, then over pods: all pods of a job have as many chips, and one of whose chips only some
can be read counts as much as any other.

One table for all sources: Prometheus computes these aggregates itself, direct scraping computes them here.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rightpool import contract
from rightpool.profiles.sample import Field, Sample


class Aggregate(StrEnum):
    """How the series of one Revision become one value. The value is PromQL's name for it."""

    AVG = "avg"
    MIN = "min"
    MAX = "max"

    def over(self, values: Iterable[float]) -> float:
        """The aggregate of at least one value."""
        numbers = list(values)
        if self is Aggregate.MIN:
            return min(numbers)
        if self is Aggregate.MAX:
            return max(numbers)
        return math.fsum(numbers) / len(numbers)


@dataclass(frozen=True, slots=True)
class Gauge:
    """A field that is read as it stands. part: of the step, for the metric that has that label."""

    field: Field
    metric: str
    aggregate: Aggregate
    part: str = ""


GAUGES: Final = (
    Gauge(Field.CHIP_BUSY, contract.CHIP_BUSY, Aggregate.AVG),
    Gauge(Field.COMPUTE_ACTIVE, contract.CHIP_COMPUTE_ACTIVE, Aggregate.AVG),
    Gauge(Field.MATRIX_ACTIVE, contract.CHIP_MATRIX_ACTIVE, Aggregate.AVG),
    Gauge(Field.MEMORY_BANDWIDTH, contract.CHIP_MEMORY_BANDWIDTH, Aggregate.AVG),
    Gauge(Field.POWER, contract.CHIP_POWER, Aggregate.AVG),
    Gauge(Field.EXPOSED_COMMUNICATION, contract.STEP_SHARE, Aggregate.AVG, contract.PART_EXPOSED_COMMUNICATION),
    Gauge(Field.INPUT_WAIT, contract.STEP_SHARE, Aggregate.AVG, contract.PART_INPUT),
    Gauge(Field.MEMORY_USED, contract.CHIP_MEMORY_USED, Aggregate.MAX),
    Gauge(Field.MEMORY_TOTAL, contract.CHIP_MEMORY_TOTAL, Aggregate.MAX),
    Gauge(Field.THROTTLE, contract.CHIP_THROTTLE, Aggregate.MAX),
    Gauge(Field.CHECKPOINT_TIMESTAMP, contract.CHECKPOINT_TIMESTAMP, Aggregate.MAX),
    Gauge(Field.CHECKPOINT_SECONDS, contract.CHECKPOINT_SECONDS, Aggregate.MAX),
    Gauge(Field.SLOWEST_CHIP_BUSY, contract.CHIP_BUSY, Aggregate.MIN),
    Gauge(Field.STEPS, contract.STEPS, Aggregate.MIN),
)

STEP_SUM: Final = f"{contract.STEP_SECONDS}_sum"
STEP_COUNT: Final = f"{contract.STEP_SECONDS}_count"
METRICS: Final = frozenset(
    {gauge.metric for gauge in GAUGES} | {contract.SAMPLES, STEP_SUM, STEP_COUNT, contract.FIELD_QUALITY}
)

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
    }
)
# A tenant's pod may say anything. Beyond these nothing of a job is measured, and arithmetic over and under flows.
LARGEST: Final = 1e18
_SMALLEST: Final = 1e-12
_RATIO_SLACK: Final = 0.05  # counters read at slightly different moments may give 1.01; beyond this it is no ratio

_FROM_METRIC: Final[Mapping[str, frozenset[Field]]] = {
    **{
        metric: frozenset(gauge.field for gauge in GAUGES if gauge.metric == metric)
        for metric in {gauge.metric for gauge in GAUGES}
    },
    contract.SAMPLES: frozenset({Field.SAMPLES_PER_SECOND}),
    contract.STEP_SECONDS: frozenset({Field.STEP_SECONDS}),
}


def admissible(field: Field, value: float) -> float | None:
    """The value, or None where it can't be one of this field: a wrong number is worse than a missing one."""
    if not (value == 0 or _SMALLEST <= value <= LARGEST):
        return None
    if field in _RATIOS:
        return None if value > 1 + _RATIO_SLACK else min(value, 1.0)
    return value


def assembled(at: float, values: Mapping[Field, float], derived_metrics: Iterable[str] = ()) -> Sample:
    """A Sample of what is admissible. derived_metrics: names of the metrics whose sidecars call them derived."""
    kept = {}
    for field, value in values.items():
        number = admissible(field, value)
        if number is not None:
            kept[field] = number
    derived: set[Field] = set()
    for metric in derived_metrics:
        derived |= _FROM_METRIC.get(metric, frozenset())
    return Sample(at=at, values=kept, derived=frozenset(derived & kept.keys()))
