"""The sidecars' pages, read directly: what each says, how fast its counters grow, and what that makes of a Revision."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rightpool import contract
from rightpool.profiles.sample import Field, measurable
from rightpool.telemetry.exposition import Series
from rightpool.telemetry.sources.sidecar import (
    GAUGES,
    LINK_RATES,
    MODEL_NUMBERS,
    MODEL_SUMS,
    STEP_COUNT,
    STEP_SUM,
    ModelRows,
    fields_of,
)
from rightpool.telemetry.sources.source import SourceReading

COUNTERS: Final = (contract.SAMPLES, STEP_SUM, STEP_COUNT)

GaugeKey = tuple[str, str]  # metric, value of the label that tells its series apart


@dataclass(frozen=True, slots=True)
class PodPage:
    """What one pod's sidecar says."""

    at: float
    """Seconds, on a clock that only moves forward."""
    gauges: Mapping[GaugeKey, tuple[float, ...]]
    """All values of a metric, one for each chip."""
    counters: Mapping[str, float]
    """By name; of links the mean over chips, by `_link_name`. Absent where the sidecar has none."""
    derived: frozenset[str]
    """The metrics that the sidecar calls derived."""
    missing: frozenset[str] = frozenset()
    """The metrics that the sidecar calls missing."""
    model: tuple[Series, ...] = ()
    """What the program says of its model."""

    @property
    def steps(self) -> bool:
        """Whether the pod makes steps. One that makes none, such as a parameter server or a pod whose program has not
        begun, has no samples to count."""
        steps = (*self.gauges.get((contract.STEPS, ""), ()), self.counters.get(STEP_COUNT, 0.0))
        return contract.SAMPLES in self.missing or max(steps) > 0


_GAUGES: Final = frozenset((gauge.metric, value) for gauge in GAUGES for value in gauge.among)
_LABELS: Final = {gauge.metric: gauge.label for gauge in GAUGES}


def _link_name(link: str, direction: str) -> str:
    return f"{contract.LINK_BYTES} {link} {direction}"


_LINK_NAMES: Final = {rate.field: [_link_name(link, rate.direction) for link in rate.links] for rate in LINK_RATES}
_KNOWN_LINKS: Final = frozenset(name for names in _LINK_NAMES.values() for name in names)


def page_of(series: Sequence[Series], at: float) -> PodPage:
    """Sorts a page's series."""
    gauges: dict[GaugeKey, list[float]] = defaultdict(list)
    counters: dict[str, float] = defaultdict(float)
    qualities: dict[str, set[str]] = defaultdict(set)
    model = []
    moved: dict[str, list[float]] = defaultdict(list)
    for one in series:
        key = (one.metric, one.labels.get(_LABELS.get(one.metric, ""), ""))
        if key in _GAUGES:
            gauges[key].append(one.value)
        if one.metric == contract.LINK_BYTES:
            name = _link_name(one.labels.get(contract.LABEL_LINK, ""), one.labels.get(contract.LABEL_DIRECTION, ""))
            if name in _KNOWN_LINKS and one.value >= 0:
                moved[name].append(one.value)
        if one.metric in COUNTERS and measurable(one.value):
            counters[one.metric] += one.value
        if one.metric == contract.MODEL_INFO or one.metric in MODEL_NUMBERS:
            model.append(one)
        if one.metric == contract.FIELD_QUALITY and one.value == 1:
            qualities[one.labels.get("quality", "")].add(one.labels.get("field", ""))
    counters.update({name: math.fsum(chips) / len(chips) for name, chips in moved.items()})
    return PodPage(
        at,
        {key: tuple(values) for key, values in gauges.items()},
        dict(counters),
        frozenset(qualities[contract.QUALITY_DERIVED]),
        frozenset(qualities[contract.QUALITY_MISSING]),
        tuple(model),
    )


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


def reading_of(pages: Sequence[tuple[PodPage | None, PodPage]], at: float, longest: float) -> SourceReading:
    """What the pods of a Revision say together. pages: of each pod, the one before and the newest. at: Unix seconds.
    longest: see rates."""
    newest = [page for _, page in pages]
    grown = [rates(before, now, longest) for before, now in pages]
    values = {Field.PODS: float(len(pages)), **_gauges(newest), **_rates(newest, grown)}
    rows = ModelRows()
    incomplete = {metric for page in newest if page.steps for metric in MODEL_SUMS - {one.metric for one in page.model}}
    for page in newest:
        for series in page.model:
            if series.metric in incomplete:
                continue  # the sum would be that of some of the pods
            rows.take(series.metric, series.labels, series.value)
    derived = fields_of(frozenset[str]().union(*(page.derived for page in newest)))
    return SourceReading(at, values, derived, rows.traits)


def _gauges(pages: Collection[PodPage]) -> dict[Field, float]:
    """Each gauge over the chips of each pod, then over the pods, as far as any has it."""
    found = {}
    for gauge in GAUGES:
        values = [
            [one for value in gauge.among for one in page.gauges.get((gauge.metric, value), ())] for page in pages
        ]
        if any(values):
            number = gauge.aggregate.over(gauge.aggregate.over(chips) for chips in values if chips)
            if number or not gauge.faults:
                found[gauge.field] = number
    return found


def _rates(pages: Collection[PodPage], grown: Collection[Mapping[str, float]]) -> dict[Field, float]:
    """Throughput, step time and links. A pod that was not read twice yet has no rate, and one that makes steps may
    count no samples; the sum of the others is not the job's, so then there is none."""
    found = {}
    expected = sum(contract.SAMPLES in page.counters for page in pages)
    samples = [rate[contract.SAMPLES] for rate in grown if contract.SAMPLES in rate]
    counted = all(contract.SAMPLES in page.counters for page in pages if page.steps)
    if expected and len(samples) == expected and counted:
        found[Field.SAMPLES_PER_SECOND] = math.fsum(samples)
    if expected == len(pages):
        found[Field.SAMPLES] = math.fsum(page.counters[contract.SAMPLES] for page in pages)
    timed = [rate for rate in grown if STEP_SUM in rate and STEP_COUNT in rate]
    steps = math.fsum(rate[STEP_COUNT] for rate in timed)
    if steps > 0:
        found[Field.STEP_SECONDS] = math.fsum(rate[STEP_SUM] for rate in timed) / steps
    for field, names in _LINK_NAMES.items():
        moved = [math.fsum(rate[name] for name in names if name in rate) for rate in grown if {*names} & rate.keys()]
        if moved:
            found[field] = math.fsum(moved) / len(moved)
    return found
