"""The operator's own metrics. Labels are bounded: no job, pod or node names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import start_http_server
from prometheus_client.registry import Collector

from rightpool.api.ledger import Outcome
from rightpool.planning.moves.commands import Command
from rightpool.planning.offers.decision import REASONS

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SLOWER, FASTER = SIDES = ("slower", "faster")  # than predicted
COMMAND_RESULTS = ("done", "refused", "conflict", "unavailable", "error")
WRITE_RESULTS = ("written", "refused", "conflict", "unavailable", "error")
ERROR_PHASES = ("observe", "status", "execute")
_ERRORS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0)


class FleetFigures(Collector):
    """Gauges of the fleet, exported from the first measurement on and only while this process leads.

    A follower plans nothing, so what it could say of the fleet is nothing, or what was true when it led.
    """

    def __init__(self, leading: Callable[[], bool]) -> None:
        self.gauges = CollectorRegistry()
        self.measured = False
        self._leading = leading

    def collect(self) -> Iterable[Metric]:
        """All of them, or none."""
        return self.gauges.collect() if self.measured and self._leading() else ()


CHARGED: Final = {
    "rightpool_chargeback_spent_dollars": "Dollars spent, at the prices of the day.",
    "rightpool_chargeback_saved_dollars": "Dollars saved by moves that paid.",
    "rightpool_chargeback_lost_dollars": "Dollars lost by moves that did not pay, and corrections of what was saved.",
    "rightpool_chargeback_chip_seconds": "Chip-seconds that pods held, those of starting and loading included.",
    "rightpool_chargeback_useful_chip_seconds": "Chip-seconds that the work would have taken without loading, waiting "
    "and repeating; ÷ chip_seconds it is the goodput.",
}
"""Counters of each namespace, which outlive its jobs."""
CHARGED_BY: Final = ("job_namespace", "team", "pool", "capacity")
JOB_FIGURES: Final = {
    "rightpool_job_spent_dollars": "Dollars that the job has spent.",
    "rightpool_job_saved_dollars": "Dollars that moves have saved the job; it falls where they do not pay.",
    "rightpool_job_chip_seconds": "Chip-seconds that the job's pods have held.",
    "rightpool_job_goodput_ratio": "Share of the paid chip time that was useful.",
    "rightpool_job_scaling_efficiency_ratio": "Throughput ÷ (chips × throughput of one chip), by the last Profile.",
    "rightpool_job_model_flops_utilization_ratio": "FLOP/s of the model ÷ (chips × peak dense FLOP/s at its "
    "precision), by the last Profile.",
    "rightpool_job_regressed": "1 where since the last edit of the template the job is surely slower on the same "
    "chips, does nothing, or fails more of its requests; 0 where not, or where it can't be told.",
    "rightpool_job_regression_ratio": "Throughput ÷ that before the last edit of the template, on the same chips: once "
    "enough was measured, and where the two compare.",
    "rightpool_job_joules_per_sample": "Energy of the chips for a sample, by the last Profile.",
    "rightpool_job_joules_per_step": "The same for an optimizer step, of jobs whose samples are not seen.",
    "rightpool_job_requests_per_second": "Requests that a server answers, all replicas together.",
    "rightpool_job_request_error_ratio": "Failed requests ÷ requests of a server.",
    "rightpool_job_request_mean_seconds": "Mean duration of a server's requests.",
    "rightpool_job_request_p99_seconds": "Within which 99% of a server's requests are answered: the edge of its "
    "histogram above it.",
}
"""Gauges of the jobs that have spent most, as long as they exist."""
JOB_FIGURES_BY: Final = ("job_namespace", "profiledjob", "team")

Figures = Mapping[str, Mapping[tuple[str, ...], float]]
"""Values by metric and labels."""


class ChargebackFigures(Collector):
    """What was charged, exported by the leader alone from the moment that it has read the stored books."""

    def __init__(self, leading: Callable[[], bool]) -> None:
        self.charged: Figures | None = None
        self.jobs: Figures = {}
        self._leading = leading

    def collect(self) -> Iterable[Metric]:
        """All of them, or none."""
        if self.charged is None or not self._leading():
            return
        for name, text in CHARGED.items():
            counter = CounterMetricFamily(name, text, labels=CHARGED_BY)
            for labels, value in self.charged.get(name, {}).items():
                counter.add_metric(labels, value)
            yield counter
        for name, text in JOB_FIGURES.items():
            gauge = GaugeMetricFamily(name, text, labels=JOB_FIGURES_BY)
            for labels, value in self.jobs.get(name, {}).items():
                gauge.add_metric(labels, value)
            yield gauge


class OperatorMetrics:
    """One set for each process; a registry of its own, so that tests can make several.

    leading: whether this process is the leader, asked whenever the page is read: a planner that hangs while the Lease
    runs out must not go on to say that it leads.
    """

    def __init__(self, leading: Callable[[], bool]) -> None:
        self.registry = CollectorRegistry()
        self.fleet = FleetFigures(leading)
        self.registry.register(self.fleet)
        self.cycle_seconds = Histogram(
            "rightpool_operator_cycle_seconds",
            "Duration of a planning cycle, by phase.",
            ["phase"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.cycle_errors = Counter(
            "rightpool_operator_cycle_errors", "Planning cycles that ended in an error.", registry=self.registry
        )
        self.job_errors = Counter(
            "rightpool_operator_job_errors",
            "Jobs that could not be handled in a cycle.",
            ["phase"],
            registry=self.registry,
        )
        self.jobs = Gauge("rightpool_operator_jobs", "ProfiledJobs, by state.", ["state"], registry=self.fleet.gauges)
        self.pools = Gauge("rightpool_operator_pools", "AcceleratorPools.", registry=self.fleet.gauges)
        self.decisions = Counter(
            "rightpool_operator_decisions",
            "Decisions that differ from the job's last one.",
            ["action", "reason"],
            registry=self.registry,
        )
        self.migrations = Counter(
            "rightpool_operator_migrations", "Migrations that ended, by outcome.", ["outcome"], registry=self.registry
        )
        self.prediction_error = Histogram(
            "rightpool_operator_prediction_error_ratio",
            "How far the throughput that was measured after a move was from the predicted one, by its side.",
            ["side"],
            buckets=_ERRORS,
            registry=self.registry,
        )
        self.breaker_open = Gauge(
            "rightpool_operator_circuit_breaker_open",
            "1 while moves are stopped because too many of the last ones had to be undone.",
            registry=self.fleet.gauges,
        )
        self.fallbacks = Counter(
            "rightpool_operator_fleet_plan_fallbacks",
            "Cycles in which the plan of the fleet failed, and chips went to one job after another.",
            registry=self.registry,
        )
        self.worth = Gauge(
            "rightpool_operator_chip_worth_dollars_per_hour",
            "What one more chip of a pool would be worth to the fleet, beyond its price; of pools that are wanted more "
            "than there are chips of.",
            ["pool"],
            registry=self.fleet.gauges,
        )
        self.migrating = Gauge(
            "rightpool_operator_migrations_in_progress",
            "Migrations under way, by phase.",
            ["phase"],
            registry=self.fleet.gauges,
        )
        self.status_writes = Counter(
            "rightpool_operator_status_writes",
            "Status applies, by what came of them.",
            ["result"],
            registry=self.registry,
        )
        self.commands = Counter(
            "rightpool_operator_commands", "Commands to the cluster.", ["command", "result"], registry=self.registry
        )
        self.missed_events = Counter(
            "rightpool_operator_missed_events",
            "Objects that a list brought and the watch had not.",
            registry=self.registry,
        )
        self.leader = Gauge("rightpool_operator_leader", "1 while this process is the leader.", registry=self.registry)
        self.leader.set_function(leading)
        self.telemetry_up = Gauge(
            "rightpool_operator_telemetry_up", "1 while measurements can be read.", registry=self.fleet.gauges
        )
        self.spent = Gauge(
            "rightpool_operator_fleet_dollars_per_hour",
            "What all running jobs cost an hour.",
            registry=self.fleet.gauges,
        )
        self.saved = Gauge(
            "rightpool_operator_fleet_saved_dollars",
            "Saved by moves over all jobs that exist.",
            registry=self.fleet.gauges,
        )

        self.potential_savings = Gauge(
            "rightpool_operator_fleet_potential_savings_dollars_per_hour",
            "What the work of an hour would cost less if everything that is recommended were carried out.",
            registry=self.fleet.gauges,
        )
        self.chargeback = ChargebackFigures(leading)
        self.registry.register(self.chargeback)

        # Known from the start: a series that begins with its first count hides that count from increase().
        for action, reasons in REASONS.items():
            for reason in reasons:
                self.decisions.labels(action.value, reason.value)
        for outcome in Outcome:
            self.migrations.labels(outcome.value)
        for command in get_args(Command):
            for result in COMMAND_RESULTS:
                self.commands.labels(command.__name__, result)
        for result in WRITE_RESULTS:
            self.status_writes.labels(result)
        for phase in ERROR_PHASES:
            self.job_errors.labels(phase)
        for side in SIDES:
            self.prediction_error.labels(side)

    def serve(self, address: str, port: int) -> None:
        """Answer on /metrics from a thread of its own."""
        start_http_server(port, addr=address, registry=self.registry)
