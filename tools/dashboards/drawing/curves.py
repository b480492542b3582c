"""Curves over time, as SVG."""

from __future__ import annotations

import io
import math
from typing import Any, Final

import matplotlib
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from tools.dashboards.drawing.answered import AnsweredBoard, AnsweredPanel
from tools.dashboards.drawing.units import written

TEXT: Final = "#ccccdc"
GRID: Final = "#34363c"
# Grafana's, in the order of the series.
PALETTE: Final = (
    "#7EB26D",
    "#EAB839",
    "#6ED0E0",
    "#EF843C",
    "#E24D42",
    "#1F78C1",
    "#BA43A9",
    "#705DA0",
    "#508642",
    "#CCA300",
)
_DOTS: Final = 100  # an inch


def colour(position: int) -> str:
    """Of a series."""
    return PALETTE[position % len(PALETTE)]


def curves(panel: AnsweredPanel, board: AnsweredBoard, width: float, height: float) -> str:
    """The SVG of a panel of this size, in pixels."""
    custom = panel.defaults["custom"]
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    opacity = custom["fillOpacity"] / 100.0
    with matplotlib.rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 8}):
        figure = Figure(figsize=(width / _DOTS, height / _DOTS), layout="constrained")
        axes = figure.add_subplot()
        below: dict[float, float] = {}
        for position, series in enumerate(panel.series):
            days = [_day(at) for at in series.times]
            floor = [below.get(at, 0.0) if stacked else 0.0 for at in series.times]
            top = [low + value for low, value in zip(floor, series.values, strict=True)]
            if stacked:
                below |= {at: value for at, value in zip(series.times, top, strict=True) if not math.isnan(value)}
            axes.plot(days, top, color=colour(position), linewidth=custom["lineWidth"])
            axes.fill_between(days, floor, top, color=colour(position), alpha=opacity, linewidth=0)
        _lay_out(axes, panel, board)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True)
    return stream.getvalue()


def _lay_out(axes: Any, panel: AnsweredPanel, board: AnsweredBoard) -> None:
    unit, bottom, top = panel.defaults["unit"], panel.defaults.get("min"), panel.defaults.get("max")
    axes.set_xlim(_day(board.since), _day(board.until))
    if bottom is not None:
        axes.set_ylim(bottom=bottom)
    if top is not None:
        axes.set_ylim(top=top)
    locator = AutoDateLocator(maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))
    if unit == "bytes":
        highest = axes.get_ylim()[1]
        axes.yaxis.set_major_locator(MultipleLocator(2.0 ** math.ceil(math.log2(highest / 5.0))))
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=panel.defaults.get("decimals") == 0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value, unit)))
    axes.grid(color=GRID, linewidth=0.6)
    axes.tick_params(colors=TEXT, length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _day(at: float) -> float:
    """Days, in which matplotlib counts time."""
    return at / 86400.0
