"""The sidecars' series in Prometheus.

Every query gives one row for each Revision and field. Rows carry the field's name in the label `field`, or the
metric's own name where PromQL keeps it.

Prometheus repeats a series' last value for five minutes unless it saw the series end, and a rate outlives its series
by the whole range. So everything is taken only from pods that were scraped within the horizon.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final

from rightpool import contract
from rightpool.profiles.sample import Field, RevisionKey
from rightpool.telemetry.sources.rows import Row
from rightpool.telemetry.sources.sidecar import (
    GAUGES,
    LINK_RATES,
    MODEL_NUMBERS,
    MODEL_SUMS,
    STEP_COUNT,
    STEP_SUM,
    Gauge,
    LinkRate,
    ModelRows,
    fields_of,
)
from rightpool.telemetry.sources.source import Aggregate, Query, SourceReading, TargetIndex
from rightpool.telemetry.sources.whole_rate import whole_rate

FIELD: Final = "field"
PODS: Final = "pods"
AT: Final = "at"
RATES: Final = "rates"
QUALITY: Final = "quality"
MODEL: Final = "model"
SAMPLES: Final = Field.SAMPLES.value
SAMPLES_PER_SECOND: Final = Field.SAMPLES_PER_SECOND.value
STEP_SECONDS: Final = Field.STEP_SECONDS.value

_KEY: Final = "namespace, profiledjob, revision"
_POD: Final = f"{_KEY}, pod"

# Namespace, job and revision, as labels spell them. Not the Revision's key: there are nineteen rows for each.
_LabelKey = tuple[str, str, str]
_KEY_OF: Final = itemgetter("namespace", "profiledjob", "revision")
# Of a metric, or of the name that a query gives its rows: the label that tells its rows apart, and fields by its value.
_ByValue = tuple[str, Mapping[str, tuple[Field, ...]]]
_NO_LABEL: Final = ""


def gauges_by(aggregate: Aggregate) -> str:
    """The name of the query for the gauges with this aggregate."""
    return f"gauges by {aggregate}"


def _gauge_fields(aggregate: Aggregate) -> Mapping[str, _ByValue]:
    found: dict[str, tuple[str, dict[str, tuple[Field, ...]]]] = {}
    for gauge in GAUGES:
        if gauge.aggregate is aggregate and not _several(gauge):
            [value] = gauge.among
            _, fields = found.setdefault(gauge.metric, (gauge.label, {}))
            fields[value] = (*fields.get(value, ()), gauge.field)
    return {
        **found,
        **_named_fields(gauge.field for gauge in GAUGES if gauge.aggregate is aggregate and _several(gauge)),
    }


def _several(gauge: Gauge) -> bool:
    """Whether series of several values of the label make the field. Prometheus makes one row of them."""
    return len(gauge.among) > 1


def _named_fields(fields: Iterable[Field]) -> dict[str, _ByValue]:
    return {field.value: (_NO_LABEL, {"": (field,)}) for field in fields}


# Of each query, the fields of a row by what it is about.
_FIELDS: Final[Mapping[str, Mapping[str, _ByValue]]] = {
    PODS: {PODS: (_NO_LABEL, {"": (Field.PODS,)})},
    **{gauges_by(aggregate): _gauge_fields(aggregate) for aggregate in Aggregate},
    RATES: _named_fields(
        (Field.SAMPLES_PER_SECOND, Field.STEP_SECONDS, Field.SAMPLES, *(rate.field for rate in LINK_RATES))
    ),
}


class SidecarSeries:
    """The source."""

    name = "sidecar"

    def queries(self, horizon: int) -> Sequence[Query]:
        """The first says which pods were scraped, and when."""
        return _queries(horizon)

    def collector(self, targets: TargetIndex) -> "_ByRevision":
        return _ByRevision(targets)


SIDECAR_SERIES: Final = SidecarSeries()


class _ByRevision:
    """Sorts rows by the Revision that their labels name."""

    def __init__(self, targets: TargetIndex) -> None:
        self._keys = {
            (target.key.namespace, target.key.job, str(target.key.revision)): target.key for target in targets.all
        }
        self._values: dict[_LabelKey, dict[Field, float]] = {labels: {} for labels in self._keys}
        self._scraped: dict[_LabelKey, float] = {}
        self._derived: dict[_LabelKey, set[str]] = defaultdict(set)
        self._model: dict[_LabelKey, ModelRows] = defaultdict(ModelRows)

    def take(self, what: str, rows: Iterable[Row]) -> None:
        """Rows of other Revisions, and about what is no field, are skipped."""
        if what == QUALITY:
            for labels, _ in rows:
                self._derived[_label_key(labels)].add(labels.get(FIELD, ""))
            return
        if what == MODEL:
            for labels, value in rows:
                if (key := _label_key(labels)) in self._keys:
                    self._model[key].take(labels.get("__name__") or labels.get(FIELD, ""), labels, value)
            return
        known, values = _FIELDS[what], self._values
        for labels, value in rows:
            try:
                own = values[_KEY_OF(labels)]
            except KeyError:
                continue
            name = labels.get("__name__") or labels.get(FIELD) or ""
            if name in known:
                label, fields = known[name]
                for field in fields.get(labels.get(label, ""), ()):
                    own[field] = value
            elif name == AT:
                self._scraped[_KEY_OF(labels)] = value

    def readings(self) -> Mapping[RevisionKey, SourceReading]:
        """Only of Revisions of which a pod was scraped: what else is there of others is old."""
        return {
            self._keys[labels]: SourceReading(
                at,
                self._values[labels],
                fields_of(self._derived.get(labels, ())),
                self._model[labels].traits if labels in self._model else None,
            )
            for labels, at in self._scraped.items()
        }


def _label_key(labels: Mapping[str, str]) -> _LabelKey:
    return labels.get("namespace", ""), labels.get("profiledjob", ""), labels.get("revision", "")


def _named(field: str, expression: str) -> str:
    return f'label_replace({expression}, "{FIELD}", "{field}", "", "")'


def _by_name(expression: str) -> str:
    """With the metric's name in a label too: `or` compares all labels but the name."""
    return f'label_replace({expression}, "{FIELD}", "$1", "__name__", "(.+)")'


def _queries(seconds: int) -> tuple[Query, ...]:
    """The pods first, then their gauges, rates, and which metrics are derived."""
    of_jobs = 'namespace!="",profiledjob!="",revision!=""'

    up = f"up{{{of_jobs}}}"
    alive = f"({up} == 1 and timestamp({up}) > time() - {seconds})"

    def living(expression: str) -> str:
        return f"({expression} and on ({_POD}) {alive})"

    def gauge(aggregate: Aggregate) -> str:
        chosen = [entry for entry in GAUGES if entry.aggregate is aggregate]
        groups: dict[tuple[str, bool], list[Gauge]] = {}
        for entry in chosen:
            if not _several(entry):
                groups.setdefault((entry.label, entry.faults), []).append(entry)
        parts = [gauges(aggregate, label, entries) for (label, _), entries in groups.items()]
        return " or ".join([*parts, *(several(aggregate, entry) for entry in chosen if _several(entry))])

    def several(aggregate: Aggregate, entry: Gauge) -> str:
        selector = f'{entry.metric}{{{entry.label}=~"{"|".join(entry.among)}",{of_jobs}}}'
        each = f"{aggregate} by ({_POD}) ({selector})"
        return _named(entry.field.value, f"{aggregate} by ({_KEY}) {living(each)}")

    def gauges(aggregate: Aggregate, label: str, chosen: Sequence[Gauge]) -> str:
        names = "|".join(sorted({entry.metric for entry in chosen}))
        values = "|".join(sorted({value for entry in chosen for value in entry.among}))
        selector = f'{{__name__=~"{names}",{label}=~"{values}",{of_jobs}}}'
        # Per pod before the join with living pods, so that the join costs one row a pod and not one a chip.
        each = f"{aggregate} by (__name__, {label}, {_POD}) ({selector})"
        rows = f"{aggregate} by (__name__, {label}, {_KEY}) {living(each)}"
        # `or` drops rows whose labels are the same but for the metric's name.
        return f"{_by_name(rows)} > 0" if chosen[0].faults else rows

    def rate(metric: str) -> str:
        selector = f"{metric}{{{of_jobs}}}"
        return living(whole_rate(selector, seconds, _POD))

    def link_rate(one: LinkRate) -> str:
        chip, direction = contract.LABEL_CHIP, contract.LABEL_DIRECTION
        links = f'{contract.LABEL_LINK}=~"{"|".join(one.links)}",{direction}="{one.direction}"'
        selector = f"{contract.LINK_BYTES}{{{links},{of_jobs}}}"
        return f"avg by ({_POD}) (sum by ({chip}, {_POD}) {living(whole_rate(selector, seconds))})"

    # While one pod has no rate yet, or makes steps and counts no samples, the sum of the others is not the job's.
    samples = rate(contract.SAMPLES)
    there = living(f"{contract.SAMPLES}{{{of_jobs}}}")
    unknown = f'{contract.FIELD_QUALITY}{{field="{contract.SAMPLES}",quality="{contract.QUALITY_MISSING}",{of_jobs}}}'
    stepping = " or ".join(f"{metric}{{{of_jobs}}} > 0" for metric in (contract.STEPS, STEP_COUNT))
    steps = f"(group by ({_POD}) ({stepping} or {unknown} == 1))"

    def incomplete(metric: str) -> str:
        """Revisions with a pod that makes steps and has no such series. One that makes none has no samples to count."""
        return f"group by ({_KEY}) ({living(steps)} unless on ({_POD}) {metric}{{{of_jobs}}})"

    complete = f"(count by ({_KEY}) {samples} == count by ({_KEY}) {there} unless {incomplete(contract.SAMPLES)})"
    # Of all pods or of none: without one of them the sum would fall, as if the processes had been made anew.
    whole = f"(count by ({_KEY}) {there} == count by ({_KEY}) (group by ({_POD}) {alive}))"
    counted = f"(sum by ({_KEY}) {there} and {whole})"
    per_second = f"(sum by ({_KEY}) {samples} and {complete})"
    per_step = f"(sum by ({_KEY}) {rate(STEP_SUM)} / sum by ({_KEY}) {rate(STEP_COUNT)})"

    pods = f"count by ({_KEY}) (group by ({_POD}) {alive})"
    at = f"max by ({_KEY}) (timestamp({up}) and {alive})"

    # A chip may have links of several kinds, which are added up; then the mean over chips, as of other counters.
    moved = [_named(one.field.value, f"avg by ({_KEY}) ({link_rate(one)})") for one in LINK_RATES]

    def model(aggregate: str, metrics: Iterable[str], *labels: str) -> str:
        selector = f'{{__name__=~"{"|".join(sorted(metrics))}",{of_jobs}}}'
        return _by_name(f"{aggregate} by ({', '.join(('__name__', *labels, _KEY))}) {living(selector)}")

    info = model("max", (contract.MODEL_INFO,), *contract.MODEL_WORDS, *contract.MODEL_DEGREES)
    same = model("max", MODEL_NUMBERS.keys() - MODEL_SUMS)
    summed = " or ".join(f"({model('sum', [one])} unless on ({_KEY}) {incomplete(one)})" for one in sorted(MODEL_SUMS))
    quality = f'{contract.FIELD_QUALITY}{{quality="{contract.QUALITY_DERIVED}",{of_jobs}}}'
    return (
        Query(PODS, f"{_named(PODS, pods)} or {_named(AT, at)}"),
        *(Query(gauges_by(aggregate), gauge(aggregate)) for aggregate in Aggregate),
        Query(
            RATES,
            " or ".join(
                (
                    _named(SAMPLES_PER_SECOND, per_second),
                    _named(STEP_SECONDS, per_step),
                    _named(SAMPLES, counted),
                    *moved,
                )
            ),
        ),
        Query(MODEL, f"{info} or {same} or {summed}"),
        Query(QUALITY, f"group by ({FIELD}, {_KEY}) {living(f'{quality} == 1')}"),
    )
