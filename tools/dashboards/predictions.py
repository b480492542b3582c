"""Predictions: accuracy of moves, and the origin of predictions."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from tools.dashboards.panels import COUNT, DOLLARS, NOTHING, SHARE, Query, bars, board, installation, lines, number

_OPERATOR = 'namespace=~"$operator"'
_PROMISED = "Verified|RolledBack|Failed"


def _ended(outcomes: str, window: str = "$__range") -> str:
    return f'increase(rightpool_operator_migrations_total{{{_OPERATOR},outcome=~"{outcomes}"}}[{window}])'


def _error(quantile: float) -> str:
    errors = f"increase(rightpool_operator_prediction_error_ratio_bucket{{{_OPERATOR}}}[$__range])"
    return f"histogram_quantile({quantile}, sum by (le, side) ({errors}))"


def predictions() -> dashboard.Dashboard:
    made = board(
        "predictions", "Predictions", "Whether moves deliver what they promised, and what the predictions rest on."
    ).with_variable(installation())
    for panel in (
        number(
            "Delivered",
            "Share of the moves that promised something and were proven to be no worse, over the whole time range.",
            SHARE,
            Query(f"sum({_ended('Verified')}) / sum({_ended(_PROMISED)})"),
            bad_below=0.7,
            empty="no moves",
            width=5,
        ),
        number(
            "Verified",
            "Moves that were proven.",
            COUNT,
            Query(f"sum({_ended('Verified')})"),
            decimals=0,
            empty="0",
            width=5,
        ),
        number(
            "Rolled back",
            "Moves that were undone.",
            COUNT,
            Query(f"sum({_ended('RolledBack')})"),
            decimals=0,
            empty="0",
            width=5,
        ),
        number(
            "Unproven",
            "Moves that were neither proven nor undone.",
            COUNT,
            Query(f"sum({_ended('Failed')})"),
            decimals=0,
            empty="0",
            width=5,
        ),
        number(
            "Circuit breaker",
            "1 while moves are stopped because too many of the last ones had to be undone.",
            COUNT,
            Query(f"max(rightpool_operator_circuit_breaker_open{{{_OPERATOR}}})"),
            bad_from=1,
        ),
    ):
        made = made.with_panel(panel)
    return (
        made.with_panel(
            lines(
                "Outcomes",
                "Moves that ended within an hour.",
                COUNT,
                Query(f"sum by (outcome) ({_ended('.+', '1h')})", "{{outcome}}"),
                stacked=True,
                empty=NOTHING,
            )
        )
        .with_panel(
            lines(
                "Prediction error",
                "How far measured throughput was from the predicted one, by its side: median and 90th percentile.",
                SHARE,
                Query(_error(0.5), "median, {{side}}"),
                Query(_error(0.9), "90%, {{side}}"),
                empty="no moves",
            )
        )
        .with_panel(
            lines(
                "Not acted on",
                "Decisions of an hour to hold: what looked better and was not certain, not allowed, or not worth it.",
                COUNT,
                Query(
                    "sum by (reason) "
                    f'(increase(rightpool_operator_decisions_total{{{_OPERATOR},action="Hold"}}[1h])) > 0',
                    "{{reason}}",
                ),
                stacked=True,
                empty=NOTHING,
            )
        )
        .with_panel(
            lines(
                "Worth of one more chip",
                "What one more chip of a pool would be worth an hour, beyond its price, with fleet.mode Auto; "
                "and, where that is not 0, cycles of an hour in which no plan of the fleet could be made.",
                DOLLARS,
                Query(
                    f"max by (pool) (rightpool_operator_chip_worth_dollars_per_hour{{{_OPERATOR}}})",
                    "{{pool}}",
                ),
                Query(
                    f"sum(increase(rightpool_operator_fleet_plan_fallbacks_total{{{_OPERATOR}}}[1h])) > 0",
                    "plans that failed",
                ),
                empty=NOTHING,
            )
        )
        .with_panel(
            lines(
                "What predictions rest on",
                "Share of the fields of all profilers that are measured; the rest is derived.",
                SHARE,
                Query(
                    'sum(rightpool_field_quality{quality="measured",profiledjob!=""})'
                    ' / sum(rightpool_field_quality{profiledjob!=""})',
                    "measured",
                ),
                top=1,
            )
        )
        .with_panel(
            bars(
                "Derived fields",
                "Profilers that can't measure the field and derive it.",
                COUNT,
                Query(
                    'count by (field) (rightpool_field_quality{quality="derived",profiledjob!=""} == 1)', "{{field}}"
                ),
                empty=NOTHING,
            )
        )
    )
