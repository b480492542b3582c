"""What one pod's sidecar said, and how fast its counters move."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rightpool import contract
from rightpool.telemetry.exposition import Series
from rightpool.telemetry.fields import GAUGES, STEP_COUNT, STEP_SUM

COUNTERS: Final = (contract.SAMPLES, STEP_SUM, STEP_COUNT)

GaugeKey = tuple[str, str]  # metric, part


@dataclass(frozen=True, slots=True)
class PodPage:
    """at: seconds on a clock that only moves forward. gauges: all values of a metric, one for each chip. counters:
    absent where the sidecar has none. derived: metrics that it calls derived."""

    at: float
    gauges: Mapping[GaugeKey, tuple[float, ...]]
    counters: Mapping[str, float]
    derived: frozenset[str]


_GAUGES: Final = frozenset((gauge.metric, gauge.part) for gauge in GAUGES)


def page_of(series: Sequence[Series], at: float) -> PodPage:
    """Sorts a page's series."""
    gauges: dict[GaugeKey, list[float]] = defaultdict(list)
    counters: dict[str, float] = defaultdict(float)
    derived = set()
    for one in series:
        key = (one.metric, one.labels.get(contract.LABEL_PART, ""))
        if key in _GAUGES:
            gauges[key].append(one.value)
        if one.metric in COUNTERS and one.value >= 0:
            counters[one.metric] += one.value
        quality = one.labels.get("quality") if one.metric == contract.FIELD_QUALITY else None
        if quality == contract.QUALITY_DERIVED and one.value == 1:
            derived.add(one.labels.get("field", ""))
    return PodPage(at, {key: tuple(values) for key, values in gauges.items()}, dict(counters), frozenset(derived))


def rates(before: PodPage | None, now: PodPage, longest: float) -> dict[str, float]:
    """How much each counter grew a second. Nothing where the page before is missing, or older than `longest` seconds:
    a rate over a long gap is not a rate of now. A counter that fell was started anew, from 0."""
    if before is None or not 0 < now.at - before.at <= longest:
        return {}
    found = {}
    for metric, value in now.counters.items():
        last = before.counters.get(metric)
        if last is not None:
            found[metric] = (value - last if value >= last else value) / (now.at - before.at)
    return found
