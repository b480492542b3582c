"""Exporters of chip counters that run on the nodes, read through Prometheus and joined to Revisions by pod.

Such an exporter asks the kubelet which pod holds a chip, and says so in labels. An exporter is a table.

Any pod that Prometheus scrapes can serve series with these names and somebody else's pod in their labels. So they count
from scrape jobs that the platform has named alone: Prometheus sets the label `job`, and renames one of the page's own.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rightpool.profiles.sample import Field, Quality, RevisionKey
from rightpool.telemetry.sources.rows import Row
from rightpool.telemetry.sources.source import Aggregate, Query, SourceReading, TargetIndex
from rightpool.telemetry.sources.whole_rate import whole_rate

EXPORTER_JOBS: Final = (
    "dcgm-exporter",
    "nvidia-dcgm-exporter",
    "amd-metrics-exporter",
    "default-metrics-exporter",
    "device-metrics-exporter",
    "tpu-device-plugin",
    "neuron-monitor",
    "habana-metric-exporter",
    "metric-exporter",
)
"""Scrape jobs of exporters by the names of the Services that their own charts and manifests make."""

_AT: Final = "at"
_COUNTERS: Final = "counters"


@dataclass(frozen=True, slots=True)
class Counter:
    """A field from an exporter's series."""

    field: Field
    """What the value is, once it is scaled."""
    metrics: tuple[tuple[str, float], ...]
    """Metrics, each with the factor that makes SI base units and ratios of it. The first that is there is taken."""
    aggregate: Aggregate
    """Over the chips of a Revision."""
    quality: Quality = Quality.MEASURED
    """Measured, or derived from something else."""
    rate: bool = False
    """Whether the metric is a counter, and the field its growth a second."""
    whole_chip: bool = False
    """Whether it is about a chip as a whole, so that a part of one says nothing of its own."""
    made_of: Callable[[float], float | None] | None = None
    """What the value means, where that is not a matter of scale: the reason bits of clocks, the number of an error.
    None: nothing."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """A source whose series carry the namespace and the name of the pod that holds the chip."""

    name: str
    """For messages and for metrics of the operator."""
    counters: tuple[Counter, ...]
    """Where several give a field, the first that is there counts."""
    chip: str
    """The label that tells chips apart."""
    timed_by: str
    """A metric that is always there. When it was scraped is when the values were read."""
    blank: float = float("inf")
    """From this value up, a series says that the chip does not have the counter."""
    part: str = ""
    """The label that tells parts of a chip apart, where it can be divided."""
    where: str = ""
    """Further label matchers, of series that are about something else under the same name."""
    # Prometheus renames an exporter's own pod labels unless it honours them; `pod` is then the exporter's pod.
    namespace_labels: tuple[str, ...] = ("exported_namespace", "namespace")
    """Labels with the namespace of the pod that holds the chip. The first that is there counts."""
    pod_labels: tuple[str, ...] = ("exported_pod", "pod")
    """Likewise, of the pod's name."""
    jobs: tuple[str, ...] = EXPORTER_JOBS
    """Scrape jobs of Prometheus whose series count."""

    def queries(self, horizon: int) -> Sequence[Query]:
        labels = ", ".join((*self.namespace_labels, *self.pod_labels, self.chip, *filter(None, (self.part,))))
        gauges = sorted({metric for one in self.counters if not one.rate for metric, _ in one.metrics})
        rates = sorted({metric for one in self.counters if one.rate for metric, _ in one.metrics})
        named = "|".join(job.replace(".", "[.]") for job in self.jobs)
        jobs = f'job=~"{named}"'
        values = f'max by (__name__, {labels}) ({{__name__=~"{"|".join(gauges)}",{jobs}{self.where}}})'
        for metric in rates:
            grown = f"sum by ({labels}) {whole_rate(f'{metric}{{{jobs}}}', horizon)}"
            values += f' or label_replace({grown}, "field", "{metric}", "", "")'
        times = f'label_replace(max by ({labels}) (timestamp({self.timed_by}{{{jobs}}})), "field", "{_AT}", "", "")'
        return (Query(f"{self.name} {_COUNTERS}", f"{values} or {times}"),)

    def collector(self, targets: TargetIndex) -> "_ByPod":
        return _ByPod(self, targets)


class _ByPod:
    """Sorts the series of an exporter by the Revision that holds the chip."""

    def __init__(self, exporter: Exporter, targets: TargetIndex) -> None:
        self._exporter = exporter
        self._targets = targets
        self._divided: set[RevisionKey] = set()
        self._found: dict[RevisionKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def take(self, what: str, rows: Iterable[Row]) -> None:
        for labels, value in rows:
            pod = _first(labels, self._exporter.pod_labels)
            namespace = _first(labels, self._exporter.namespace_labels)
            key = self._targets.by_pod.get((namespace, pod))
            if key is not None and value < self._exporter.blank:
                name = labels.get("__name__") or labels.get("field") or ""
                self._found[key][name].append(value)
                if self._exporter.part and labels.get(self._exporter.part):
                    self._divided.add(key)

    def readings(self) -> Mapping[RevisionKey, SourceReading]:
        return {key: self._reading(series, key in self._divided) for key, series in self._found.items()}

    def _reading(self, series: Mapping[str, list[float]], divided: bool) -> SourceReading:
        values: dict[Field, float] = {}
        derived: set[Field] = set()
        for counter in self._exporter.counters:
            if counter.field in values or (divided and counter.whole_chip):
                continue
            for metric, scale in counter.metrics:
                numbers = [number for one in series.get(metric, ()) if (number := _meaning(counter, one)) is not None]
                if numbers:
                    values[counter.field] = counter.aggregate.over(numbers) * scale
                    if counter.quality is Quality.DERIVED:
                        derived.add(counter.field)
                    break
        return SourceReading(max(series[_AT]) if series.get(_AT) else None, values, derived)


def _first(labels: Mapping[str, str], names: Iterable[str]) -> str:
    return next((value for name in names if (value := labels.get(name))), "")


def _meaning(counter: Counter, value: float) -> float | None:
    return value if counter.made_of is None else counter.made_of(value)
