"""Chargeback: what namespaces and teams have spent and saved, whether their jobs still exist or not."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from tools.dashboards.panels import (
    COUNT,
    DOLLARS,
    JOULES,
    NOTHING,
    SHARE,
    Query,
    bars,
    board,
    installation,
    lines,
    number,
)

_OPERATOR = 'namespace=~"$operator"'


def _grown(name: str) -> str:
    """How much a counter has grown over the time shown. One that begins in it counts from 0."""
    series = f"rightpool_chargeback_{name}_total{{{_OPERATOR}}}"
    return f"({series} - ({series} offset $__range or {series} * 0))"


def _job(name: str) -> str:
    return f"rightpool_job_{name}{{{_OPERATOR}}}"


def chargeback() -> dashboard.Dashboard:
    made = board("chargeback", "Chargeback", "What namespaces and teams have spent and saved in the time shown.")
    made = made.with_variable(installation())
    goodput = f"sum({_grown('useful_chip_seconds')}) / sum({_grown('chip_seconds')})"
    numbers = (
        number("Spent", "In the time shown.", DOLLARS, Query(f"sum({_grown('spent_dollars')})"), decimals=2, width=6),
        number(
            "Saved",
            "By moves in the time shown, less what moves that did not pay have lost.",
            DOLLARS,
            Query(f"sum({_grown('saved_dollars')}) - sum({_grown('lost_dollars')})"),
            decimals=2,
            width=6,
        ),
        number(
            "Chip-hours", "Held by pods.", COUNT, Query(f"sum({_grown('chip_seconds')}) / 3600"), decimals=1, width=6
        ),
        number("Goodput", "Useful share of the paid chip time.", SHARE, Query(goodput), decimals=0, width=6),
    )
    panels = (
        bars(
            "Spent by namespace",
            "In the time shown.",
            DOLLARS,
            Query(f"topk(15, sum by (job_namespace) ({_grown('spent_dollars')}))", "{{job_namespace}}"),
        ),
        bars(
            "Spent by team",
            "By the label rightpool.dev/team, else team, of the ProfiledJob.",
            DOLLARS,
            Query(
                f'topk(15, label_replace(sum by (team) ({_grown("spent_dollars")}), "team", "no team", "team", ""))',
                "{{team}}",
            ),
        ),
        bars(
            "Spent by pool",
            "And capacity type.",
            DOLLARS,
            Query(f"topk(15, sum by (pool, capacity) ({_grown('spent_dollars')}))", "{{pool}} {{capacity}}"),
        ),
        bars(
            "Goodput by namespace",
            "Useful share of the paid chip time, the lowest first: the rest was loading, waiting and repeating.",
            SHARE,
            Query(
                f"bottomk(15, sum by (job_namespace) ({_grown('useful_chip_seconds')}) "
                f"/ sum by (job_namespace) ({_grown('chip_seconds')}))",
                "{{job_namespace}}",
            ),
        ),
        lines(
            "Dollars an hour",
            "By namespace, over ten minutes.",
            DOLLARS,
            Query(
                f"sum by (job_namespace) (rate(rightpool_chargeback_spent_dollars_total{{{_OPERATOR}}}[10m])) * 3600",
                "{{job_namespace}}",
            ),
            stacked=True,
        ),
        bars(
            "Jobs that have saved most",
            "Of those that exist.",
            DOLLARS,
            Query(f"topk(15, {_job('saved_dollars')})", "{{job_namespace}}/{{profiledjob}}"),
        ),
        bars(
            "Jobs that have spent most",
            "Of those that exist.",
            DOLLARS,
            Query(f"topk(15, {_job('spent_dollars')})", "{{job_namespace}}/{{profiledjob}}"),
        ),
        bars(
            "Jobs with the lowest goodput",
            "The least useful shares of paid time.",
            SHARE,
            Query(
                f"bottomk(15, {_job('goodput_ratio')} and {_job('chip_seconds')} > 0)",
                "{{job_namespace}}/{{profiledjob}}",
            ),
        ),
        bars(
            "Slower since an edit",
            "Throughput ÷ that before the last edit of the template, on the same chips, the lowest first.",
            SHARE,
            Query(f"bottomk(15, {_job('regression_ratio')})", "{{job_namespace}}/{{profiledjob}}"),
            empty=NOTHING,
        ),
        bars(
            "Jobs that an edit made worse",
            "Slower on the same chips, doing nothing, or failing more requests, by namespace.",
            COUNT,
            Query(f"sum by (job_namespace) ({_job('regressed')})", "{{job_namespace}}"),
            empty=NOTHING,
        ),
        bars(
            "Energy a sample",
            "Joules of the chips for one sample, the highest first.",
            JOULES,
            Query(f"topk(15, {_job('joules_per_sample')})", "{{job_namespace}}/{{profiledjob}}"),
            empty=NOTHING,
        ),
        bars(
            "Energy a step",
            "Joules of the chips for one optimizer step, of jobs whose samples are not seen, the highest first.",
            JOULES,
            Query(f"topk(15, {_job('joules_per_step')})", "{{job_namespace}}/{{profiledjob}}"),
            empty=NOTHING,
        ),
    )
    for panel in (*numbers, *panels):
        made = made.with_panel(panel)
    return made
