"""Operator: its health."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from tools.dashboards.panels import COUNT, NOTHING, PER_SECOND, SECONDS, Query, board, installation, lines, number

_OPERATOR = 'namespace=~"$operator"'
_LEADING = 'phase!="list"'  # a follower only keeps its lists up to date


def _rate(name: str, matcher: str = "") -> str:
    labels = f"{_OPERATOR},{matcher}" if matcher else _OPERATOR
    return f"rate(rightpool_operator_{name}{{{labels}}}[$__rate_interval])"


def operator() -> dashboard.Dashboard:
    made = board("operator", "Operator", "Whether the operator does its work.").with_variable(installation())
    cycles = _rate("cycle_seconds_count", 'phase="plan"')
    for panel in (
        number(
            "Leaders",
            "One for each installation.",
            COUNT,
            Query(f"sum(rightpool_operator_leader{{{_OPERATOR}}})"),
            bad_below=1,
            width=6,
        ),
        number(
            "Replicas", "That are scraped.", COUNT, Query(f"count(rightpool_operator_leader{{{_OPERATOR}}})"), width=6
        ),
        number(
            "Telemetry",
            "1 while the leader can read measurements.",
            COUNT,
            Query(f"min(rightpool_operator_telemetry_up{{{_OPERATOR}}})"),
            bad_below=1,
            width=6,
        ),
        number(
            "Cycle",
            "Mean duration of a planning cycle.",
            SECONDS,
            Query(f"sum({_rate('cycle_seconds_sum', _LEADING)}) / sum({cycles})"),
            width=6,
        ),
    ):
        made = made.with_panel(panel)
    for curve in (
        lines(
            "Cycle by phase",
            "Mean duration of each phase.",
            SECONDS,
            Query(
                f"sum by (phase) ({_rate('cycle_seconds_sum')}) / sum by (phase) ({_rate('cycle_seconds_count')})",
                "{{phase}}",
            ),
            stacked=True,
        ),
        lines(
            "Slowest cycles by phase",
            "99th percentile of each phase.",
            SECONDS,
            Query(f"histogram_quantile(0.99, sum by (le, phase) ({_rate('cycle_seconds_bucket')}))", "{{phase}}"),
        ),
        lines(
            "Cycles",
            "A second, and those that ended in an error.",
            PER_SECOND,
            Query(f"sum({cycles})", "planned"),
            Query(f"sum({_rate('cycle_errors_total')})", "failed"),
        ),
        lines(
            "Leader",
            "1 for the replica that leads.",
            COUNT,
            Query(f"rightpool_operator_leader{{{_OPERATOR}}}", "{{namespace}}/{{pod}}"),
            top=1,
            whole=True,
        ),
        lines(
            "Status writes",
            "A second, by what came of them. Conflicts mean that somebody was faster, and are met again.",
            PER_SECOND,
            Query(f"sum by (result) ({_rate('status_writes_total')})", "{{result}}"),
            stacked=True,
            empty=NOTHING,
        ),
        lines(
            "Commands",
            "A second, by command and what came of it.",
            PER_SECOND,
            Query(f"sum by (command, result) ({_rate('commands_total')}) > 0", "{{command}}: {{result}}"),
            stacked=True,
            empty=NOTHING,
        ),
        lines(
            "Jobs that could not be handled",
            "A second, by phase. Each is a bug; the log has its stack trace.",
            PER_SECOND,
            Query(f"sum by (phase) ({_rate('job_errors_total')})", "{{phase}}"),
            empty=NOTHING,
        ),
        lines(
            "Missed events",
            "Objects within an hour that a list brought and the watch had not.",
            COUNT,
            Query(f"sum(increase(rightpool_operator_missed_events_total{{{_OPERATOR}}}[1h]))", "objects"),
        ),
    ):
        made = made.with_panel(curve)
    return made
