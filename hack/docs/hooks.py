"""Called by the build: adds the pages that are made from the code. They are nowhere on disk but in the site."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "operator"), str(ROOT / "profiler_sidecar"), str(ROOT / "hack")]

from properdocs.structure.files import File, Files  # noqa: E402

from chartdocs import alerts, values  # noqa: E402
from docs import api_reference  # noqa: E402

_VALUES = """# Chart values

Values of `charts/rightpool`, from its schema. A value that is not listed is refused. [Operations](../operations.md)
says which of them matter when.

"""


def on_files(files: Files, /, *, config: Any) -> Files:
    """The generated pages beside the written ones."""
    files.append(File.generated(config, "reference/api.md", content=api_reference.page()))
    files.append(File.generated(config, "reference/alerts.md", content=alerts.page()))
    files.append(File.generated(config, "reference/values.md", content=_VALUES + values.table()))
    return files
