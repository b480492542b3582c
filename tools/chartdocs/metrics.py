"""The tables of all metrics, from the registries that export them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics import MetricWrapperBase

from rightpool import contract
from rightpool.runtime.metrics import CHARGED, CHARGED_BY, JOB_FIGURES, JOB_FIGURES_BY, OperatorMetrics
from rightpool_profiler.exposition import Sample, render
from tools.chartdocs import dialects

_OF_THE_PROFILER_ITSELF: Final = "rightpool_profiler_datagrams_total"

_HEAD: Final = """# Metrics

Made by `python -m tools.chartdocs` from what is exported; a test compares. Ratios are 0–1, everything else is in SI
base units and dollars. What can't be read is absent, never 0.

## The operator
At port 9090 of each replica. Gauges of the fleet (*leader*) are exported by the leader alone, from its first cycle on.
No label of `rightpool_operator_` grows with the fleet: there are no names of jobs, pods or nodes. Those of
`rightpool_chargeback_` have the namespace, team, pool and capacity type of jobs, and outlive them; those of
`rightpool_job_` are of the 1,000 jobs that have spent most, as long as they exist. What `rightpool_operator_` may count
is there at 0 from the start, so that `increase()` sees the first one.
"""
_JOBS: Final = """
## Jobs
At port 9464 (`rightpool`) of each pod of a ProfiledJob. Prometheus adds whose series these are, from the pod's
metadata: `namespace`, `pod`, `profiledjob` and `revision`, as the chart's PodMonitor does. Those of chips have `chip`.
[metrics.schema.json](metrics.schema.json) says which labels and values each can have.
"""


def page() -> str:
    """The whole document."""
    rows = sorted(_operator())
    operator = [f"| `{name}` | {kind} | {by} | {labels} | {meaning} |" for name, kind, by, labels, meaning in rows]
    jobs = [f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in _jobs()]
    return "\n".join(
        [
            _HEAD,
            "| metric | type | from | labels | meaning |",
            "|---|---|---|---|---|",
            *operator,
            _JOBS,
            "| metric | type | meaning |",
            "|---|---|---|",
            *jobs,
            dialects.HEAD,
            *dialects.rows(),
            "",
        ]
    )


def names_of_jobs() -> list[str]:
    """Every metric of the contract, and the profiler's metrics about itself."""
    constants = (value for value in vars(contract).values() if isinstance(value, str))
    return sorted({name for name in constants if name.startswith("rightpool_")} | {_OF_THE_PROFILER_ITSELF})


def _jobs() -> Iterator[tuple[str, str, str]]:
    for name in names_of_jobs():
        page = render([Sample(name, {}, 1.0)]).splitlines()
        comments = {line.split(" ", 3)[1]: line.split(" ", 3)[3] for line in page if line.startswith("# ")}
        yield name, comments["TYPE"], comments["HELP"]


def _operator() -> Iterator[tuple[str, str, str, str, str]]:
    metrics = OperatorMetrics(lambda: True)
    of_leader = {family.name for family in metrics.fleet.gauges.collect()}
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            (family,) = metric.collect()
            name = family.name + ("_total" if family.type == "counter" else "")
            by = "leader" if family.name in of_leader else "each"
            labels = ", ".join(f"`{label}`" for label in metric._labelnames)
            yield name, family.type, by, labels, family.documentation
    for texts, kind, names in ((CHARGED, "counter", CHARGED_BY), (JOB_FIGURES, "gauge", JOB_FIGURES_BY)):
        labels = ", ".join(f"`{label}`" for label in names)
        for name, text in texts.items():
            yield name + ("_total" if kind == "counter" else ""), kind, "leader", labels, text
