"""Job: how one job uses its chips and links, by Revision."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from tools.dashboards.panels import (
    BYTES,
    COUNT,
    NOTHING,
    SECONDS,
    SHARE,
    WATTS,
    Query,
    board,
    choice,
    lines,
    number,
)

_JOB = 'namespace="$namespace",profiledjob="$profiledjob"'
_REVISION = "revision {{revision}}"


def _chips(metric: str, aggregate: str = "avg") -> str:
    return f"{aggregate} by (revision) (rightpool_chip_{metric}{{{_JOB}}})"


def _figure(metric: str) -> str:
    return f'max(rightpool_job_{metric}{{job_namespace="$namespace",profiledjob="$profiledjob"}})'


def _rate(metric: str) -> str:
    return f"sum by (revision) (rate(rightpool_{metric}{{{_JOB}}}[$__rate_interval]))"


def _quantile(quantile: float) -> str:
    buckets = f"rate(rightpool_step_seconds_bucket{{{_JOB}}}[$__rate_interval])"
    return f"histogram_quantile({quantile}, sum by (le, revision) ({buckets}))"


def job() -> dashboard.Dashboard:
    made = (
        board("job", "Job", "What one job does to its chips and links, Revision by Revision.")
        .with_variable(choice("namespace", "Namespace", 'label_values(up{profiledjob!=""}, namespace)', many=False))
        .with_variable(
            choice(
                "profiledjob",
                "ProfiledJob",
                'label_values(up{namespace="$namespace",profiledjob!=""}, profiledjob)',
                many=False,
            )
        )
    )
    for panel in (
        number("Samples a second", "Of all pods.", COUNT, Query(f"sum({_rate('samples_total')})"), width=6),
        number(
            "Step",
            "Mean duration of a step.",
            SECONDS,
            Query(f"sum({_rate('step_seconds_sum')}) / sum({_rate('step_seconds_count')})"),
            width=6,
        ),
        number(
            "Chips busy", "Mean over all chips.", SHARE, Query(f"avg(rightpool_chip_busy_ratio{{{_JOB}}})"), width=6
        ),
        number(
            "Last checkpoint",
            "Time since the last complete save.",
            SECONDS,
            Query(f"time() - max(rightpool_checkpoint_timestamp_seconds{{{_JOB}}})"),
            empty="no save seen",
            width=6,
        ),
    ):
        made = made.with_panel(panel)
    for curve in (
        lines(
            "Samples a second",
            "Of all pods. A new Revision is a move.",
            COUNT,
            Query(_rate("samples_total"), _REVISION),
        ),
        lines(
            "Step",
            "Duration of a step over all pods.",
            SECONDS,
            Query(_quantile(0.5), "median, " + _REVISION),
            Query(_quantile(0.95), "95th percentile, " + _REVISION),
        ),
        lines(
            "Where a step's time goes",
            "Shares of one step; what is missing from 1 is not known.",
            SHARE,
            Query(f"avg by (part) (rightpool_step_share_ratio{{{_JOB}}})", "{{part}}"),
            stacked=True,
            top=1,
        ),
        lines(
            "Chips",
            "Mean over all chips. Busy says that any work was there; the others say how much of the chip it used.",
            SHARE,
            Query(_chips("busy_ratio"), "busy, " + _REVISION),
            Query(_chips("compute_active_ratio"), "compute, " + _REVISION),
            Query(_chips("matrix_active_ratio"), "matrix units, " + _REVISION),
            Query(_chips("memory_bandwidth_ratio"), "memory bandwidth, " + _REVISION),
            top=1,
        ),
        lines(
            "Use of what is paid",
            "Scaling is throughput ÷ (chips × throughput of one chip), goodput the useful share of the time.",
            SHARE,
            Query(_figure("scaling_efficiency_ratio"), "scaling"),
            Query(_figure("goodput_ratio"), "goodput"),
            top=1,
        ),
        lines(
            "Model FLOPs utilization",
            "FLOP/s of the model ÷ the chips' peak.",
            SHARE,
            Query(_figure("model_flops_utilization_ratio"), "MFU"),
            top=1,
            empty="FLOPs are not known",
        ),
        lines(
            "Memory",
            "Peak of the fullest chip, and what it has.",
            BYTES,
            Query(_chips("memory_used_bytes", "max"), "used, " + _REVISION),
            Query(_chips("memory_total_bytes", "max"), "there, " + _REVISION),
        ),
        lines("Power", "Of all chips.", WATTS, Query(_chips("power_watts", "sum"), _REVISION), empty="not reported"),
        lines(
            "Throttling",
            "Share of time in which the clocks were held down.",
            SHARE,
            Query(f"max by (reason) (rightpool_chip_throttle_ratio{{{_JOB}}})", "{{reason}}"),
            top=1,
            empty=NOTHING,
        ),
        lines(
            "Links",
            "Bytes a second over all links, by direction.",
            "Bps",
            Query(
                f"sum by (link, direction) (rate(rightpool_link_bytes_total{{{_JOB}}}[$__rate_interval]))",
                "{{link}} {{direction}}",
            ),
            empty="not reported",
        ),
        lines(
            "Chip errors",
            "Hardware errors within an hour.",
            COUNT,
            Query(f"sum by (kind) (increase(rightpool_chip_errors_total{{{_JOB}}}[1h]))", "{{kind}}"),
            empty=NOTHING,
        ),
        lines(
            "Profilers",
            "That answer, and all that should.",
            COUNT,
            Query(f"sum by (revision) (up{{{_JOB}}})", "answering, " + _REVISION),
            Query(f"count by (revision) (up{{{_JOB}}})", "there, " + _REVISION),
            whole=True,
        ),
    ):
        made = made.with_panel(curve)
    return made
