"""The sidecars' series: which gives which field, and how those of several chips and pods become one value.

Over the chips of each pod first, then over pods: all pods of a job have as many chips, and one of whose chips only some
can be read counts as much as any other. The sidecars say of each metric whether it is measured or derived.

One table for both ways to read them: Prometheus computes these aggregates itself (sidecar_series), of pages that are
read directly they are computed here (sidecar_page).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rightpool import contract
from rightpool.api.traits import ModelTraits, traits_of
from rightpool.profiles.sample import Field
from rightpool.telemetry.sources.source import Aggregate


@dataclass(frozen=True, slots=True)
class Gauge:
    """A field that is read as it is: of each pod's chips first, then over pods."""

    field: Field
    """What the value is."""
    metric: str
    """Its name on the sidecar's page."""
    aggregate: Aggregate
    """Over the chips of each pod, and over pods."""
    label: str = contract.LABEL_PART
    """The label that tells this metric's series apart, beside the chip and the rank."""
    among: tuple[str, ...] = ("",)
    """Its values that count; the empty one stands for a metric that has no such label."""
    faults: bool = False
    """Whether it is a state that no healthy chip has: then 0 is left out, so that healthy jobs cost no rows."""


_EXPOSED: Final = (contract.PART_EXPOSED_COMMUNICATION,)
_INPUT: Final = (contract.PART_INPUT,)

GAUGES: Final = (
    Gauge(Field.CHIP_BUSY, contract.CHIP_BUSY, Aggregate.AVG),
    Gauge(Field.COMPUTE_ACTIVE, contract.CHIP_COMPUTE_ACTIVE, Aggregate.AVG),
    Gauge(Field.MATRIX_ACTIVE, contract.CHIP_MATRIX_ACTIVE, Aggregate.AVG),
    Gauge(Field.MEMORY_BANDWIDTH, contract.CHIP_MEMORY_BANDWIDTH, Aggregate.AVG),
    Gauge(Field.POWER, contract.CHIP_POWER, Aggregate.AVG),
    Gauge(Field.OCCUPANCY, contract.CHIP_OCCUPANCY, Aggregate.AVG),
    Gauge(Field.EXPOSED_COMMUNICATION, contract.STEP_SHARE, Aggregate.AVG, among=_EXPOSED),
    Gauge(Field.LEAST_EXPOSED, contract.STEP_SHARE, Aggregate.MIN, among=_EXPOSED),
    Gauge(Field.INPUT_WAIT, contract.STEP_SHARE, Aggregate.AVG, among=_INPUT),
    Gauge(Field.LEAST_INPUT_WAIT, contract.STEP_SHARE, Aggregate.MIN, among=_INPUT),
    Gauge(Field.LAUNCH_GAPS, contract.STEP_SHARE, Aggregate.AVG, among=(contract.PART_IDLE,)),
    Gauge(Field.FP64_ACTIVE, contract.CHIP_PIPE, Aggregate.AVG, contract.LABEL_PIPE, ("fp64",)),
    Gauge(Field.FP32_ACTIVE, contract.CHIP_PIPE, Aggregate.AVG, contract.LABEL_PIPE, ("fp32",)),
    Gauge(Field.FP16_ACTIVE, contract.CHIP_PIPE, Aggregate.AVG, contract.LABEL_PIPE, ("fp16",)),
    Gauge(Field.INTEGER_ACTIVE, contract.CHIP_PIPE, Aggregate.AVG, contract.LABEL_PIPE, ("integer",)),
    Gauge(Field.MOST_COMPUTE_ACTIVE, contract.CHIP_COMPUTE_ACTIVE, Aggregate.MAX),
    Gauge(Field.LEAST_COMPUTE_ACTIVE, contract.CHIP_COMPUTE_ACTIVE, Aggregate.MIN),
    Gauge(Field.POWER_LIMIT, contract.CHIP_POWER_LIMIT, Aggregate.MIN),
    Gauge(Field.CLOCK, contract.CHIP_CLOCK, Aggregate.MIN),
    Gauge(Field.TEMPERATURE, contract.CHIP_TEMPERATURE, Aggregate.MAX),
    Gauge(Field.XID, contract.CHIP_XID, Aggregate.MAX, faults=True),
    Gauge(Field.REPAIR, contract.CHIP_REPAIR, Aggregate.MAX, faults=True),
    Gauge(
        Field.UNCORRECTED_ERRORS,
        contract.CHIP_ERRORS,
        Aggregate.MAX,
        contract.LABEL_KIND,
        (contract.ERROR_UNCORRECTED,),
    ),
    Gauge(Field.UNUSED_CHIPS, contract.CHIPS_UNUSED, Aggregate.MAX, faults=True),
    Gauge(Field.OTHERS, contract.CHIP_OTHERS, Aggregate.MAX),
    Gauge(Field.COMPILING, contract.COMPILE, Aggregate.MAX),
    Gauge(Field.SAVING, contract.SAVING, Aggregate.MAX),
    Gauge(Field.MEMORY_RETRIES, contract.MEMORY_RETRIES, Aggregate.MAX),
    Gauge(Field.MEMORY_USED, contract.CHIP_MEMORY_USED, Aggregate.MAX),
    Gauge(Field.MEMORY_TOTAL, contract.CHIP_MEMORY_TOTAL, Aggregate.MAX),
    Gauge(
        Field.THROTTLE,
        contract.CHIP_THROTTLE,
        Aggregate.MAX,
        contract.LABEL_REASON,
        contract.REASONS_FAULT,
    ),
    Gauge(
        Field.THERMAL_THROTTLE,
        contract.CHIP_THROTTLE,
        Aggregate.MAX,
        contract.LABEL_REASON,
        contract.REASONS_THERMAL,
    ),
    Gauge(
        Field.POWER_CAPPED,
        contract.CHIP_THROTTLE,
        Aggregate.MAX,
        contract.LABEL_REASON,
        (contract.REASON_POWER_CAP,),
    ),
    Gauge(Field.CHECKPOINT_TIMESTAMP, contract.CHECKPOINT_TIMESTAMP, Aggregate.MAX),
    Gauge(Field.CHECKPOINT_SECONDS, contract.CHECKPOINT_SECONDS, Aggregate.MAX),
    Gauge(Field.SLOWEST_CHIP_BUSY, contract.CHIP_BUSY, Aggregate.MIN),
    Gauge(Field.STEPS, contract.STEPS, Aggregate.MIN),
)


@dataclass(frozen=True, slots=True)
class LinkRate:
    """A field that is the rate of LINK_BYTES of a chip: the mean over chips, all its links of these kinds together."""

    field: Field
    """What the rate is, bytes a second."""
    links: tuple[str, ...]
    """Kinds of links, by the contract's labels."""
    direction: str
    """Sent or received, by the contract's labels."""


LINK_RATES: Final = (
    LinkRate(Field.PEER_SENT, contract.LINKS_PEER, contract.DIRECTION_SENT),
    LinkRate(Field.PEER_RECEIVED, contract.LINKS_PEER, contract.DIRECTION_RECEIVED),
    LinkRate(Field.PCIE_SENT, (contract.LINK_PCIE,), contract.DIRECTION_SENT),
    LinkRate(Field.PCIE_RECEIVED, (contract.LINK_PCIE,), contract.DIRECTION_RECEIVED),
)

# What the program says of its model. The same in every pod, except for what is summed over them.
MODEL_NUMBERS: Final = {
    contract.MODEL_PARAMETERS: "parameters",
    contract.MODEL_PARAMETER_BYTES: "parameter_bytes",
    contract.MODEL_BYTES: "model_bytes",
    contract.STEP_SAMPLES: "batch",
    contract.STEP_FLOPS: "step_flops",
}
MODEL_SUMS: Final = frozenset({contract.STEP_SAMPLES, contract.STEP_FLOPS})

# Throughput is the rate of SAMPLES, where every pod that makes steps counts them; step time that of STEP_SUM over that
# of STEP_COUNT.
STEP_SUM: Final = f"{contract.STEP_SECONDS}_sum"
STEP_COUNT: Final = f"{contract.STEP_SECONDS}_count"
METRICS: Final = frozenset(
    {gauge.metric for gauge in GAUGES}
    | {contract.SAMPLES, STEP_SUM, STEP_COUNT, contract.FIELD_QUALITY, contract.MODEL_INFO, contract.LINK_BYTES}
    | MODEL_NUMBERS.keys()
)


def _fields_by_metric() -> Mapping[str, frozenset[Field]]:
    fields: dict[str, set[Field]] = defaultdict(set)
    for gauge in GAUGES:
        fields[gauge.metric].add(gauge.field)
    fields[contract.LINK_BYTES].update(rate.field for rate in LINK_RATES)
    fields[contract.SAMPLES].update((Field.SAMPLES_PER_SECOND, Field.SAMPLES))
    fields[contract.STEP_SECONDS].add(Field.STEP_SECONDS)
    return {metric: frozenset(found) for metric, found in fields.items()}


_FIELDS: Final = _fields_by_metric()
_NO_FIELDS: Final = frozenset[Field]()


def fields_of(metrics: Iterable[str]) -> frozenset[Field]:
    """The fields that come from these metrics."""
    return _NO_FIELDS.union(*(_FIELDS.get(metric, _NO_FIELDS) for metric in metrics))


class ModelRows:
    """Collects the series about the model of one Revision, one a call."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._numbers: dict[str, float] = {}

    def take(self, metric: str, labels: Mapping[str, str], value: float) -> None:
        """A series of MODEL_INFO or MODEL_NUMBERS; others are skipped.

        Of what several pods say alike, the largest counts.
        """
        if metric == contract.MODEL_INFO:
            for name in contract.MODEL_WORDS:
                self._words[name] = max(self._words.get(name, ""), labels.get(name, ""))
            for name in contract.MODEL_DEGREES:
                if (text := labels.get(name, "")).isdecimal() and len(text) < 10:
                    self._numbers[name] = max(self._numbers.get(name, 0.0), float(text))
            return
        name = MODEL_NUMBERS.get(metric, "")
        if not name:
            return
        before = self._numbers.get(name, 0.0)
        self._numbers[name] = before + value if metric in MODEL_SUMS else max(before, value)

    @property
    def traits(self) -> ModelTraits | None:
        """What they say together; None where there was no series."""
        return traits_of(self._words, self._numbers) if self._words or self._numbers else None
