"""Panels with common settings: one data source, one palette, a description for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.models import common as choices
from grafana_foundation_sdk.models import dashboard as model

SOURCE: Final = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
DOLLARS: Final = "currencyUSD"
SECONDS: Final = "s"
SHARE: Final = "percentunit"
BYTES: Final = "bytes"
WATTS: Final = "watt"
JOULES: Final = "joule"
PER_SECOND: Final = "cps"
COUNT: Final = "short"
# Text of a panel without data on a healthy fleet. All other panels are expected to have data.
NOTHING: Final = "none"

AnyPanel = TypeVar("AnyPanel", timeseries.Panel, stat.Panel, bargauge.Panel)


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL and the legend of its series."""

    expression: str
    legend: str = ""

    def build(self, position: int, *, instant: bool) -> prometheus.Dataquery:
        query = prometheus.Dataquery().expr(self.expression).ref_id(chr(ord("A") + position)).datasource(SOURCE)
        if self.legend:
            query = query.legend_format(self.legend)
        return query.instant() if instant else query.range()


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    stacked: bool = False,
    top: float | None = None,
    empty: str | None = None,
    width: int = 12,
    whole: bool = False,
) -> timeseries.Panel:
    """Curves over time. top: maximum of the axis. empty: text without data. whole: of things that are not divided."""
    panel = _common(timeseries.Panel(), title, description, unit, queries, empty, instant=False)
    panel = panel.span(width).height(8).min(0).line_width(1).fill_opacity(30 if stacked else 8)
    panel = panel.show_points(choices.VisibilityMode.NEVER)
    panel = panel.legend(_legend()).tooltip(
        common.VizTooltipOptions().mode(choices.TooltipDisplayMode.MULTI).sort(choices.SortOrder.DESCENDING)
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(choices.StackingMode.NORMAL))
    panel = panel.decimals(0) if whole else panel
    return panel if top is None else panel.max(top)


def number(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    decimals: int | None = None,
    bad_below: float | None = None,
    bad_from: float | None = None,
    empty: str | None = None,
    width: int = 4,
) -> stat.Panel:
    """One large value. bad_below: red below, else green. bad_from: red from this value on, else green."""
    panel = _common(stat.Panel(), title, description, unit, (query,), empty, instant=True).span(width).height(4)
    panel = panel.color_mode(choices.BigValueColorMode.VALUE).graph_mode(choices.BigValueGraphMode.NONE)
    steps = [model.Threshold(value=None, color="text")]
    if bad_below is not None:
        steps = [model.Threshold(value=None, color="red"), model.Threshold(value=bad_below, color="green")]
    elif bad_from is not None:
        steps = [model.Threshold(value=None, color="green"), model.Threshold(value=bad_from, color="red")]
    panel = panel.thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
    return panel if decimals is None else panel.decimals(decimals)


def bars(title: str, description: str, unit: str, query: Query, *, empty: str | None = None) -> bargauge.Panel:
    """The present values of several series."""
    panel = _common(bargauge.Panel(), title, description, unit, (query,), empty, instant=True).span(12).height(8)
    panel = panel.orientation(choices.VizOrientation.HORIZONTAL).min(0)
    # Without thresholds Grafana colours everything from 80 on red, and without a maximum the longest bar is full.
    plain = dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE)
    panel = panel.thresholds(plain.steps([model.Threshold(value=None, color="blue")]))
    return panel.max(1) if unit == SHARE else panel


def board(uid: str, title: str, description: str) -> dashboard.Dashboard:
    """An empty dashboard with a variable for the data source and links to the others."""
    source = dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    others = dashboard.DashboardLink("Rightpool").type(model.DashboardLinkType.DASHBOARDS).tags(["rightpool"])
    return (
        dashboard.Dashboard(f"Rightpool / {title}")
        .uid(f"rightpool-{uid}")
        .description(description)
        .tags(["rightpool"])
        .readonly()
        .time("now-6h", "now")
        .refresh("30s")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .with_variable(source)
        .link(others.as_dropdown(True).include_vars(True).keep_time(True))
    )


def choice(name: str, label: str, query: str, *, many: bool = True) -> dashboard.QueryVariable:
    """A variable with the values of a label, newest data first."""
    variable = (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
    )
    return variable.include_all(True).all_value(".*").multi(True) if many else variable


def installation() -> dashboard.QueryVariable:
    """A variable for the namespace of the operator, which identifies an installation."""
    return choice("operator", "Operator", "label_values(rightpool_operator_leader, namespace)")


def _legend() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(choices.LegendDisplayMode.LIST)
        .placement(choices.LegendPlacement.BOTTOM)
    )


def _common(
    panel: AnyPanel,
    title: str,
    description: str,
    unit: str,
    queries: tuple[Query, ...],
    empty: str | None,
    *,
    instant: bool,
) -> AnyPanel:
    panel = panel.title(title).description(description).unit(unit).datasource(SOURCE)
    for position, query in enumerate(queries):
        panel = panel.with_target(query.build(position, instant=instant))
    return panel if empty is None else panel.no_value(empty)
