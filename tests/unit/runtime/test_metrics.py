"""Metrics of the process, and of the fleet only while the process leads."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client import generate_latest

from rightpool import runtime
from rightpool.runtime.metrics import OperatorMetrics

OF_THE_FLEET = ("jobs", "pools", "telemetry_up", "circuit_breaker_open", "fleet_dollars_per_hour")


def exported(metrics: OperatorMetrics) -> set[str]:
    """Which of those are on the page."""
    page = generate_latest(metrics.registry).decode()
    return {name for name in OF_THE_FLEET if f"\nrightpool_operator_{name}" in page}


def test_fleet_metrics_are_exported_by_a_leader_with_measurements() -> None:
    leads = True
    metrics = OperatorMetrics(lambda: leads)
    metrics.jobs.labels("Running").set(3)
    assert exported(metrics) == set(), "not measured yet: absent, and not 0"
    metrics.fleet.measured = True
    assert exported(metrics) == set(OF_THE_FLEET)
    leads = False
    assert exported(metrics) == set(), "outdated values are not exported"


def test_leadership_is_evaluated_at_each_scrape() -> None:
    leads = False
    metrics = OperatorMetrics(lambda: leads)
    assert b"rightpool_operator_leader 0.0" in generate_latest(metrics.registry)
    leads = True
    assert b"rightpool_operator_leader 1.0" in generate_latest(metrics.registry)


def test_process_metrics_are_always_exported() -> None:
    metrics = OperatorMetrics(lambda: False)
    metrics.prediction_error.labels("slower").observe(0.12)
    page = generate_latest(metrics.registry).decode()
    assert "rightpool_operator_cycle_errors_total 0.0" in page
    assert 'rightpool_operator_prediction_error_ratio_bucket{le="0.15",side="slower"} 1.0' in page


def test_counters_start_at_zero() -> None:
    """increase() can't see a series begin: an alert on the first error, or on the only one, would never fire."""
    page = generate_latest(OperatorMetrics(lambda: False).registry).decode()
    for one in (
        'job_errors_total{phase="status"}',
        'job_errors_total{phase="execute"}',
        'status_writes_total{result="error"}',
        'commands_total{command="EnsureRevision",result="error"}',
        'commands_total{command="RequestCheckpoint",result="unavailable"}',
        'migrations_total{outcome="Failed"}',
        'decisions_total{action="Hold",reason="CircuitBreakerOpen"}',
        'prediction_error_ratio_count{side="slower"}',
    ):
        assert f"rightpool_operator_{one} 0.0" in page
    series = [line for line in page.splitlines() if not line.startswith("#") and "_created" not in line]
    assert len(series) < 240


def test_all_label_values_are_predefined() -> None:
    """The labels in the source are all on the page from the start."""
    page = generate_latest(OperatorMetrics(lambda: False).registry).decode()
    source = "".join(path.read_text() for path in Path(str(runtime.__file__)).parent.rglob("*.py"))
    labels = re.findall(r'(commands|job_errors)\.labels\((?:name, )?"(\w+)"\)|_not_written\(step, "(\w+)"', source)
    assert len(labels) >= 11
    for counter, label, result in labels:
        wanted = f'{counter or "status_writes"}_total{{[^}}]*"{label or result}"}} 0.0'
        assert re.search(wanted, page), wanted
