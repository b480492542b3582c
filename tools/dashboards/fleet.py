"""Fleet: running jobs, their cost, and the savings by moves."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, timeseries

from tools.dashboards.panels import (
    COUNT,
    DOLLARS,
    NOTHING,
    SECONDS,
    SHARE,
    Query,
    bars,
    board,
    installation,
    lines,
    number,
)

_OPERATOR = 'namespace=~"$operator"'


def _gauge(name: str, state: str | None = None) -> str:
    labels = _OPERATOR if state is None else f'{_OPERATOR},state="{state}"'
    return f"rightpool_operator_{name}{{{labels}}}"


def fleet() -> dashboard.Dashboard:
    made = board("fleet", "Fleet", "What all jobs cost, and what moving them has saved.").with_variable(installation())
    numbers = (
        number(
            "Cost",
            "What all running jobs cost an hour.",
            DOLLARS,
            Query(f"sum({_gauge('fleet_dollars_per_hour')})"),
            decimals=2,
            width=4,
        ),
        number(
            "Saved",
            "By moves, over all jobs that exist. A job that is deleted takes its savings along.",
            DOLLARS,
            Query(f"sum({_gauge('fleet_saved_dollars')})"),
            decimals=2,
            width=4,
        ),
        number(
            "Potential savings",
            "What the work of an hour would cost less if everything that is recommended were carried out: "
            "`rightpool recommend` lists it.",
            DOLLARS,
            Query(f"sum({_gauge('fleet_potential_savings_dollars_per_hour')})"),
            decimals=2,
            width=4,
        ),
        number(
            "Running", "Jobs all of whose pods run.", COUNT, Query(f"sum({_gauge('jobs', state='Running')})"), width=3
        ),
        number(
            "Waiting", "Jobs that do not run yet.", COUNT, Query(f"sum({_gauge('jobs', state='Waiting')})"), width=3
        ),
        number("Migrating", "Jobs on their way.", COUNT, Query(f"sum({_gauge('jobs', state='Migrating')})"), width=3),
        number("Pools", "AcceleratorPools, discovered and declared.", COUNT, Query(f"sum({_gauge('pools')})"), width=3),
    )
    for panel in numbers:
        made = made.with_panel(panel)
    job = 'profiledjob!="",revision!=""'
    curves = (
        lines(
            "Cost",
            "What all running jobs cost an hour.",
            DOLLARS,
            Query(f"sum({_gauge('fleet_dollars_per_hour')})", "dollars an hour"),
        ),
        lines(
            "Saved",
            "By moves, over all jobs that exist.",
            DOLLARS,
            Query(f"sum({_gauge('fleet_saved_dollars')})", "dollars"),
        ),
        lines(
            "Jobs",
            "By state.",
            COUNT,
            Query(f"sum by (state) ({_gauge('jobs')})", "{{state}}"),
            stacked=True,
            whole=True,
        ),
        lines(
            "Decisions",
            "In an hour, each counted when it differs from the job's last one.",
            COUNT,
            Query(
                f"sum by (action, reason) (increase(rightpool_operator_decisions_total{{{_OPERATOR}}}[1h])) > 0",
                "{{action}}: {{reason}}",
            ),
        ),
    )
    for curve in curves:
        made = made.with_panel(curve)
    return (
        made.with_panel(
            lines(
                "Moves",
                "That ended within an hour, by outcome.",
                COUNT,
                Query(
                    f"sum by (outcome) (increase(rightpool_operator_migrations_total{{{_OPERATOR}}}[1h]))",
                    "{{outcome}}",
                ),
                stacked=True,
                empty=NOTHING,
            )
        )
        .with_panel(
            lines(
                "Moves under way",
                "By phase.",
                COUNT,
                Query(f"sum by (phase) ({_gauge('migrations_in_progress')})", "{{phase}}"),
                stacked=True,
                empty=NOTHING,
                whole=True,
            )
        )
        .with_panel(
            bars(
                "Chips that idle",
                "Jobs whose chips are busy least, of all jobs that are scraped.",
                SHARE,
                Query(
                    f"bottomk(10, avg by (namespace, profiledjob) (rightpool_chip_busy_ratio{{{job}}}))",
                    "{{namespace}}/{{profiledjob}}",
                ),
            )
        )
        .with_panel(
            bars(
                "Samples a second",
                "Of the fastest jobs.",
                COUNT,
                Query(
                    "topk(10, sum by (namespace, profiledjob) "
                    f"(rate(rightpool_samples_total{{{job}}}[$__rate_interval])))",
                    "{{namespace}}/{{profiledjob}}",
                ),
            )
        )
        .with_panel(
            bars(
                "Waiting for each other",
                "Jobs with most exposed communication: the share of a step in which chips wait for links.",
                SHARE,
                Query(
                    "topk(10, avg by (namespace, profiledjob) "
                    f'(rightpool_step_share_ratio{{part="exposed_communication",{job}}}))',
                    "{{namespace}}/{{profiledjob}}",
                ),
                empty=NOTHING,
            )
        )
        .with_panel(_requests("Requests a second", "Of each server.", COUNT, "requests_per_second"))
        .with_panel(_requests("Failed requests", "Of each server, as a share.", SHARE, "request_error_ratio"))
        .with_panel(_requests("Duration of requests", "Of each server, in the mean.", SECONDS, "request_mean_seconds"))
        .with_panel(
            _requests(
                "99% of requests within",
                "Of each server whose page has a histogram: the edge above it.",
                SECONDS,
                "request_p99_seconds",
            )
        )
    )


def _requests(title: str, about: str, unit: str, name: str) -> timeseries.Panel:
    query = Query(f"rightpool_job_{name}{{{_OPERATOR}}}", "{{job_namespace}}/{{profiledjob}}")
    return lines(title, about, unit, query, empty="no server")
