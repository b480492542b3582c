"""The PromQL of a cycle: a fixed handful of queries, however many jobs there are.

Every query gives one row for each Revision and field. Rows carry the field's name in the label `field`, or the
metric's own name where PromQL keeps it.

Prometheus repeats a series' last value for five minutes unless it saw the series end, and a rate outlives its series
by the whole range. So everything is taken only from pods that were scraped within the horizon.
"""

import math
from dataclasses import dataclass
from typing import Final

from rightpool import contract
from rightpool.telemetry.fields import GAUGES, STEP_COUNT, STEP_SUM, Aggregate

FIELD: Final = "field"
PODS: Final = "pods"
AT: Final = "at"
SAMPLES_PER_SECOND: Final = "samplesPerSecond"
STEP_SECONDS: Final = "stepSeconds"

_KEY: Final = "namespace, profiledjob, revision"
_POD: Final = f"{_KEY}, pod"


@dataclass(frozen=True, slots=True)
class Queries:
    """The texts. presence: pods and time of the newest scrape. gauges: by aggregate. rates: per second, and per step.
    derived: metrics that are derived and not measured."""

    presence: str
    gauges: dict[Aggregate, str]
    rates: str
    derived: str


def _named(field: str, expression: str) -> str:
    return f'label_replace({expression}, "{FIELD}", "{field}", "", "")'


def queries(horizon: float, matchers: str = "") -> Queries:
    """horizon: seconds after which a reading is old, and over which rates are taken; a few scrapes must fit in.

    matchers: further label matchers (`job="rightpool"`), where other scrape jobs could bring the same labels.
    """
    seconds = math.ceil(horizon)
    of_jobs = 'namespace!="",profiledjob!="",revision!=""' + (f",{matchers}" if matchers else "")

    up = f"up{{{of_jobs}}}"
    alive = f"({up} == 1 and timestamp({up}) > time() - {seconds})"

    def living(expression: str) -> str:
        return f"({expression} and on ({_POD}) {alive})"

    def gauge(aggregate: Aggregate) -> str:
        chosen = [entry for entry in GAUGES if entry.aggregate is aggregate]
        names = "|".join(sorted({entry.metric for entry in chosen}))
        parts = "|".join(sorted({entry.part for entry in chosen}))
        part = contract.LABEL_PART
        selector = f'{{__name__=~"{names}",{part}=~"{parts}",{of_jobs}}}'
        # Per pod before the join with living pods, so that the join costs one row a pod and not one a chip.
        each = f"{aggregate} by (__name__, {part}, {_POD}) ({selector})"
        return f"{aggregate} by (__name__, {part}, {_KEY}) {living(each)}"

    # PromQL's rate divides by the whole range, so that a series that began within it seems slower than it is: by half
    # in the middle. Until a series is as old as the range there is no rate.
    def rate(metric: str) -> str:
        selector = f"{metric}{{{of_jobs}}}"
        return f"({living(f'rate({selector}[{seconds}s])')} and on ({_POD}) {selector} offset {seconds}s)"

    # While one pod has no rate yet, the sum of the others is not the job's.
    samples = rate(contract.SAMPLES)
    there = living(f"{contract.SAMPLES}{{{of_jobs}}}")
    complete = f"(count by ({_KEY}) {samples} == count by ({_KEY}) {there})"
    per_second = f"(sum by ({_KEY}) {samples} and {complete})"
    per_step = f"(sum by ({_KEY}) {rate(STEP_SUM)} / sum by ({_KEY}) {rate(STEP_COUNT)})"

    pods = f"count by ({_KEY}) (group by ({_POD}) {alive})"
    at = f"max by ({_KEY}) (timestamp({up}) and {alive})"
    quality = f'{contract.FIELD_QUALITY}{{quality="{contract.QUALITY_DERIVED}",{of_jobs}}}'
    return Queries(
        presence=f"{_named(PODS, pods)} or {_named(AT, at)}",
        gauges={aggregate: gauge(aggregate) for aggregate in Aggregate},
        rates=f"{_named(SAMPLES_PER_SECOND, per_second)} or {_named(STEP_SECONDS, per_step)}",
        derived=f"group by ({FIELD}, {_KEY}) {living(f'{quality} == 1')}",
    )
