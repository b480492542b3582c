"""The generated documents and their paths."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.chartdocs import cli_schema, metric_schema, metrics, values
from tools.docs import rooms

ROOT: Final = Path(__file__).resolve().parents[2]
README: Final = ROOT / "charts" / "rightpool" / "README.md"
METRICS: Final = ROOT / "docs" / "metrics.md"
METRIC_SCHEMA: Final = ROOT / "docs" / "metrics.schema.json"
CLI_SCHEMA: Final = ROOT / "docs" / "cli.schema.json"
ROOMS: Final = ROOT / "docs" / "images" / "rooms.svg"
_BEGIN: Final = "<!-- values: made by `python -m tools.chartdocs` from values.schema.json and values.yaml -->"
_END: Final = "<!-- /values -->"


def contents() -> dict[Path, str]:
    """Path → content. Only the table of the README is generated."""
    before, _, rest = README.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return {
        README: f"{before}{_BEGIN}\n{values.table()}\n{_END}{after}",
        METRICS: metrics.page(),
        METRIC_SCHEMA: metric_schema.text(),
        CLI_SCHEMA: cli_schema.text(),
        ROOMS: rooms.svg(),
    }


def stale() -> list[Path]:
    """Documents that are out of date."""
    return [path for path, text in contents().items() if not path.exists() or path.read_text() != text]


def write() -> list[Path]:
    """Write documents that are out of date, and return their paths."""
    changed, wanted = stale(), contents()
    for path in changed:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wanted[path])
    return changed
