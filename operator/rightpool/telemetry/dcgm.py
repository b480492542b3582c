"""Chip counters of NVIDIA's dcgm-exporter, read through Prometheus and joined to Revisions by pod.

They fill what the sidecars could not read: on Ampere and older chips, SM, tensor and memory activity can't be had from
within a pod. Formats: https://github.com/NVIDIA/dcgm-exporter.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rightpool.profiles.sample import Field, RevisionKey
from rightpool.telemetry.fields import Aggregate
from rightpool.telemetry.vector import Row

# What DCGM gives for a counter that the chip does not have; 64-bit integers from here up, as a float.
BLANK: Final = float(0x7FFFFFFFFFFFFFF0)

# Prometheus renames the exporter's own pod labels unless it honours them; `pod` is then the exporter's pod.
_LABELS: Final = "exported_namespace, exported_pod, namespace, pod, UUID"
_AT: Final = "at"
_MEBIBYTE: Final = 2.0**20


@dataclass(frozen=True, slots=True)
class Counter:
    """A field from a DCGM counter. scale: to SI base units and ratios. The first counter that is there is taken."""

    field: Field
    metrics: tuple[tuple[str, float], ...]
    aggregate: Aggregate


_BUSY: Final = (("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1.0), ("DCGM_FI_DEV_GPU_UTIL", 0.01))
COUNTERS: Final = (
    Counter(Field.CHIP_BUSY, _BUSY, Aggregate.AVG),
    Counter(Field.SLOWEST_CHIP_BUSY, _BUSY, Aggregate.MIN),
    Counter(Field.COMPUTE_ACTIVE, (("DCGM_FI_PROF_SM_ACTIVE", 1.0),), Aggregate.AVG),
    Counter(Field.MATRIX_ACTIVE, (("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1.0),), Aggregate.AVG),
    Counter(Field.MEMORY_BANDWIDTH, (("DCGM_FI_PROF_DRAM_ACTIVE", 1.0),), Aggregate.AVG),
    Counter(Field.POWER, (("DCGM_FI_DEV_POWER_USAGE", 1.0),), Aggregate.AVG),
    Counter(Field.MEMORY_USED, (("DCGM_FI_DEV_FB_USED", _MEBIBYTE),), Aggregate.MAX),
)

_NAMES: Final = "|".join(sorted({name for counter in COUNTERS for name, _ in counter.metrics}))
QUERY: Final = (
    f'max by (__name__, {_LABELS}) ({{__name__=~"{_NAMES}"}}) or '
    f'label_replace(max by ({_LABELS}) (timestamp(DCGM_FI_DEV_GPU_UTIL)), "field", "{_AT}", "", "")'
)


@dataclass(frozen=True, slots=True)
class ChipCounters:
    """at: Unix seconds of the newest scrape, None where unknown. values: in the units of their fields."""

    at: float | None
    values: Mapping[Field, float]


def join(rows: Iterable[Row], owners: Mapping[tuple[str, str], RevisionKey]) -> dict[RevisionKey, ChipCounters]:
    """The counters of each Revision's chips. owners: the Revision of each pod, by namespace and name."""
    found: dict[RevisionKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for labels, value in rows:
        pod = labels.get("exported_pod") or labels.get("pod") or ""
        namespace = labels.get("exported_namespace") or labels.get("namespace") or ""
        key = owners.get((namespace, pod))
        if key is None or value >= BLANK:
            continue
        found[key][labels.get("__name__") or labels.get("field") or ""].append(value)
    return {key: _counters(series) for key, series in found.items()}


def _counters(series: Mapping[str, list[float]]) -> ChipCounters:
    values = {}
    for counter in COUNTERS:
        for metric, scale in counter.metrics:
            if series.get(metric):
                values[counter.field] = counter.aggregate.over(series[metric]) * scale
                break
    return ChipCounters(max(series[_AT]) if series.get(_AT) else None, values)
