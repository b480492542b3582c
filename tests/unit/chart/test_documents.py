"""Generated documents agree with the code, and metrics follow the naming conventions of Prometheus."""

from __future__ import annotations

import re

import pytest
from prometheus_client.metrics import MetricWrapperBase

from rightpool.runtime.metrics import OperatorMetrics
from tools.chartdocs import documents, metrics

from .test_alerts import exported

UNITS = ("seconds", "bytes", "ratio", "dollars", "dollars_per_hour", "joules", "watts")
# Counts and booleans have no unit.
UNITLESS = (
    "rightpool_operator_jobs",
    "rightpool_operator_pools",
    "rightpool_operator_migrations_in_progress",
    "rightpool_operator_leader",
    "rightpool_operator_telemetry_up",
    "rightpool_operator_circuit_breaker_open",
)
# pool: of the dearest alone.
BOUNDED = {"pool", "phase", "state", "action", "reason", "outcome", "result", "command", "side"}


def collectors() -> list[MetricWrapperBase]:
    return [one for one in vars(OperatorMetrics(lambda: True)).values() if isinstance(one, MetricWrapperBase)]


def test_documents_are_current() -> None:
    assert documents.stale() == [], "python -m tools.chartdocs"


def test_the_table_lists_the_exported_metrics() -> None:
    named = set(
        re.findall(
            r"^\| `(rightpool_(?:operator|chargeback|job)_\w+)`", documents.METRICS.read_text(), flags=re.MULTILINE
        )
    )
    names = {re.sub(r"_(bucket|count|sum)$", "", name) for name in exported()}
    assert named == names
    jobs = set(
        re.findall(
            r"^\| `(rightpool_(?!operator_|chargeback_|job_)\w+)`", documents.METRICS.read_text(), flags=re.MULTILINE
        )
    )
    assert jobs == set(metrics.names_of_jobs())


@pytest.mark.parametrize("metric", collectors(), ids=lambda metric: str(metric._name))
def test_metrics_of_the_operator_are_named_by_convention(metric: MetricWrapperBase) -> None:
    (family,) = metric.collect()
    assert re.fullmatch(r"rightpool_operator_[a-z][a-z0-9]*(_[a-z0-9]+)*", family.name)
    assert not family.name.endswith(("_total", "_count", "_sum", "_bucket", "_milliseconds", "_percent"))
    if family.type != "counter" and family.name not in UNITLESS:
        assert family.name.endswith(UNITS)
    assert family.documentation[0].isupper() or family.documentation[0].isdigit()
    assert family.documentation.endswith(".")
    assert set(metric._labelnames) <= BOUNDED, "a label that grows with the fleet"
