"""Grafana dashboards as code. `python -m tools.dashboards` writes the JSON files that the chart ships."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[2] / "charts" / "rightpool" / "files" / "dashboards"
