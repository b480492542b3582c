"""What an operator exports of itself, and of the fleet only while it leads."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client import generate_latest

from rightpool import runtime
from rightpool.runtime.metrics import OperatorMetrics

OF_THE_FLEET = ("jobs", "pools", "telemetry_up", "circuit_breaker_open", "fleet_dollars_per_hour")


def said(metrics: OperatorMetrics) -> set[str]:
    """Which of those are on the page."""
    page = generate_latest(metrics.registry).decode()
    return {name for name in OF_THE_FLEET if f"\nrightpool_operator_{name}" in page}


def test_the_fleet_is_told_of_by_who_leads_and_has_measured() -> None:
    leads = True
    metrics = OperatorMetrics(lambda: leads)
    metrics.jobs.labels("Running").set(3)
    assert said(metrics) == set(), "not measured yet: absent, and not 0"
    metrics.fleet.measured = True
    assert said(metrics) == set(OF_THE_FLEET)
    leads = False
    assert said(metrics) == set(), "what was true is not said again"


def test_who_leads_is_asked_when_the_page_is_read() -> None:
    leads = False
    metrics = OperatorMetrics(lambda: leads)
    assert b"rightpool_operator_leader 0.0" in generate_latest(metrics.registry)
    leads = True
    assert b"rightpool_operator_leader 1.0" in generate_latest(metrics.registry)


def test_what_the_process_does_is_always_told() -> None:
    metrics = OperatorMetrics(lambda: False)
    metrics.prediction_error.labels("slower").observe(0.12)
    page = generate_latest(metrics.registry).decode()
    assert "rightpool_operator_cycle_errors_total 0.0" in page
    assert 'rightpool_operator_prediction_error_ratio_bucket{le="0.15",side="slower"} 1.0' in page


def test_what_may_be_counted_is_there_at_0_before_its_first_time() -> None:
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
    assert len(series) < 150


def test_nothing_is_counted_under_labels_that_nobody_has_foreseen() -> None:
    """The labels in the source are all on the page from the start."""
    page = generate_latest(OperatorMetrics(lambda: False).registry).decode()
    source = "".join(path.read_text() for path in Path(str(runtime.__file__)).parent.glob("*.py"))
    said = re.findall(r'(commands|job_errors)\.labels\((?:name, )?"(\w+)"\)|_not_written\(step, "(\w+)"', source)
    assert len(said) >= 11
    for counter, label, result in said:
        wanted = f'{counter or "status_writes"}_total{{[^}}]*"{label or result}"}} 0.0'
        assert re.search(wanted, page), wanted
