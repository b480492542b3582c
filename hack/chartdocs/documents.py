"""Which documents are made, and where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from chartdocs import metrics, values

ROOT: Final = Path(__file__).resolve().parents[2]
README: Final = ROOT / "charts" / "rightpool" / "README.md"
METRICS: Final = ROOT / "docs" / "metrics.md"
_BEGIN: Final = "<!-- values: made by `python -m chartdocs` from values.schema.json and values.yaml -->"
_END: Final = "<!-- /values -->"


def contents() -> dict[Path, str]:
    """Path → what it should say. Of the README only the table is made; the rest is left as it is."""
    before, _, rest = README.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return {README: f"{before}{_BEGIN}\n{values.table()}\n{_END}{after}", METRICS: metrics.page()}


def stale() -> list[Path]:
    """Documents that do not say what they should."""
    return [path for path, text in contents().items() if not path.exists() or path.read_text() != text]


def write() -> list[Path]:
    """Bring them up to date; returns what changed."""
    changed, wanted = stale(), contents()
    for path in changed:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wanted[path])
    return changed
