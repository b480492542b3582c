"""A dashboard as one HTML page without a script: panels where Grafana puts them, in its dark colours."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from tools.dashboards.drawing.answered import AnsweredBoard, AnsweredPanel, Series
from tools.dashboards.drawing.curves import TEXT, colour, curves
from tools.dashboards.drawing.units import written

# Pixels, as in page.css.
WIDTH: Final = 1600.0
_COLUMNS: Final = 24
_ROW: Final = 30.0
_GAP: Final = 8.0
_LEGEND: Final = 44.0
_HEAD: Final = 30.0
_COLOURS: Final = {"text": TEXT, "green": "#73BF69", "red": "#F2495C", "blue": "#5794F2"}
_STYLE: Final = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def page(board: AnsweredBoard) -> str:
    """The whole document."""
    chosen = ", ".join(f"{name} {value}" for name, value in board.variables.items())
    shown = f"{_moment(board.since)} to {_moment(board.until)} UTC{f'; {chosen}' if chosen else ''}"
    panels = "\n".join(_panel(panel, board) for panel in board.panels)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(board.title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(board.title)}</h1><p>{escape(board.description)} "
        f"Shown: {escape(shown)}</p><main>\n{panels}\n</main></body></html>\n"
    )


def _panel(panel: AnsweredPanel, board: AnsweredBoard) -> str:
    place = panel.body["gridPos"]
    across, down = f"{place['x'] + 1} / span {place['w']}", f"{place['y'] + 1} / span {place['h']}"
    content = _KINDS[panel.body["type"]](panel, board) if panel.series else _nothing(panel)
    title = f'<h2 title="{escape(panel.body["description"])}">{escape(panel.body["title"])}</h2>'
    return f'<section style="grid-column: {across}; grid-row: {down}">{title}{content}</section>'


def _nothing(panel: AnsweredPanel) -> str:
    return f'<div class="none">{escape(panel.defaults.get("noValue", "No data"))}</div>'


def _stat(panel: AnsweredPanel, _: AnsweredBoard) -> str:
    values = [series.values[-1] for series in panel.series]
    texts = [(written(value, panel.defaults["unit"], panel.defaults.get("decimals")), value) for value in values]
    return "".join(
        f'<div class="stat" style="color: {_threshold(panel, value)}">{escape(text)}</div>' for text, value in texts
    )


def _bars(panel: AnsweredPanel, _: AnsweredBoard) -> str:
    values = [series.values[-1] for series in panel.series]
    most = panel.defaults.get("max", max((value for value in values if not math.isnan(value)), default=1.0)) or 1.0
    return f'<div class="bars">{"".join(_bar(panel, series, most) for series in panel.series)}</div>'


def _bar(panel: AnsweredPanel, series: Series, most: float) -> str:
    value = series.values[-1]
    width = 0.0 if math.isnan(value) else 100.0 * min(1.0, max(0.0, value / most))
    text = "No data" if math.isnan(value) else written(value, panel.defaults["unit"], panel.defaults.get("decimals"))
    paint = _threshold(panel, value)
    return (
        f'<span>{escape(series.name)}</span><div><b style="width: {width:.1f}%; background: {paint}"></b></div>'
        f'<span style="color: {paint}">{escape(text)}</span>'
    )


def _threshold(panel: AnsweredPanel, value: float) -> str:
    """The colour of the highest step that the value reaches."""
    steps = panel.defaults["thresholds"]["steps"]
    return _COLOURS[[step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]]


def _curves(panel: AnsweredPanel, board: AnsweredBoard) -> str:
    place = panel.body["gridPos"]
    width = place["w"] * (WIDTH + _GAP) / _COLUMNS - _GAP - 22.0
    height = place["h"] * (_ROW + _GAP) - _GAP - _HEAD - _LEGEND
    drawing = base64.b64encode(curves(panel, board, width, height).encode()).decode()
    names = "".join(
        f'<span><i style="background: {colour(position)}"></i>{escape(series.name)}</span>'
        for position, series in enumerate(panel.series)
    )
    image = f'<img alt="" width="{width:.0f}" height="{height:.0f}" src="data:image/svg+xml;base64,{drawing}">'
    return f'{image}<div class="legend">{names}</div>'


_KINDS: Final[dict[str, Callable[[AnsweredPanel, AnsweredBoard], str]]] = {
    "stat": _stat,
    "bargauge": _bars,
    "timeseries": _curves,
}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
