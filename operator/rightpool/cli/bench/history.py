"""Runs of a program one after the other: a table with what each changed, and a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Final

from rightpool.api.wording import number
from rightpool.cli.bench.comparison import RunComparison, compare_runs
from rightpool.cli.bench.profile import BenchProfile

_WIDTH: Final = 800.0
_HEIGHT: Final = 240.0
_LEFT: Final = 70.0
_EDGE: Final = 24.0
_COLOURS: Final = {1: "#c0392b", 0: "#2c7a4b", 3: "#888888"}


def history_table(runs: Sequence[BenchProfile]) -> str:
    """Markdown, the oldest first, each against the one before it."""
    rows = ["| run | commit | chip | rate | against the one before |", "|---|---|---|---:|---|"]
    for run, found in zip(runs, _steps(runs), strict=True):
        words = "" if found is None else found.text()
        rate = f"{number(run.rate)} {run.unit.plural}/s"
        cells = (run.at, (run.commit or "–")[:12], f"{run.chips} × {run.chip}", rate, words)
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(rows) + "\n"


def history_svg(runs: Sequence[BenchProfile]) -> str:
    """Rates over runs, from zero. A regression is red, what can't be told grey."""
    highest = max(run.rate for run in runs) * 1.05
    step = (_WIDTH - _LEFT - _EDGE) / max(1, len(runs) - 1)
    points = [
        (_LEFT + index * step, _EDGE + (_HEIGHT - 2 * _EDGE) * (1.0 - run.rate / highest))
        for index, run in enumerate(runs)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{_COLOURS[0 if found is None else found.exit_status]}">'
        f"<title>{escape(f'{(run.commit or run.at)[:12]}: {number(run.rate)}')}"
        f"{'' if found is None else escape(f'; {found.text()}')}</title></circle>"
        for (x, y), run, found in zip(points, runs, _steps(runs), strict=True)
    ]
    base = _HEIGHT - _EDGE
    title = f"{runs[-1].name}, {runs[-1].unit.plural}/s"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" '
            'font-family="sans-serif" font-size="12">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{_WIDTH:g}" height="{_HEIGHT:g}" fill="#ffffff"/>',
            f'<text x="{_LEFT:g}" y="15">{escape(title)}</text>',
            f'<line x1="{_LEFT:g}" y1="{base:g}" x2="{_WIDTH - _EDGE:g}" y2="{base:g}" stroke="#cccccc"/>',
            f'<text x="{_LEFT - 8:g}" y="{base:g}" text-anchor="end">0</text>',
            f'<text x="{_LEFT - 8:g}" y="{_EDGE + 10:g}" text-anchor="end">{number(highest)}</text>',
            f'<polyline points="{line}" fill="none" stroke="#34495e" stroke-width="1.5"/>',
            *dots,
            "</svg>\n",
        ]
    )


def _steps(runs: Sequence[BenchProfile]) -> list[RunComparison | None]:
    return [None, *(compare_runs(before, after) for before, after in pairwise(runs))]
