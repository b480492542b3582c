"""Called by the build of the site: adds the pages that are generated from the code and the screenshots, and links to
them.

In a checkout the pages link to the files that the references are made from: the references are on the site alone. So
are the screenshots that `make screenshots` has taken: `<!-- screenshot NAME: TEXT -->` in a page is where one belongs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "operator"), str(ROOT / "profiler_sidecar")]

from properdocs.structure.files import File, Files  # noqa: E402

from tools.chartdocs import alerts, values  # noqa: E402
from tools.docs import api_reference  # noqa: E402
from tools.screenshots import FOLDER as SCREENSHOTS  # noqa: E402

_VALUES = """# Chart values

Values of `charts/rightpool`, from its schema. A value that is not listed is refused.
[Install](../how-to/install.md) says which of them matter when.

"""
# Page on the site by what it is made from.
REFERENCES: Final = {
    "crds": "reference/api.md",
    "crds/rightpool.dev_profiledjobs.yaml": "reference/api.md#profiledjob",
    "crds/rightpool.dev_acceleratorpools.yaml": "reference/api.md#acceleratorpool",
    "crds/rightpool.dev_placementpolicies.yaml": "reference/api.md#placementpolicy",
    "charts/rightpool/README.md": "reference/values.md",
    "charts/rightpool/files/alerts.yaml": "reference/alerts.md",
}


SCREENSHOT: Final = re.compile(r"<!-- screenshot ([\w-]+): (.*?) -->", re.DOTALL)


def on_files(files: Files, /, *, config: Any) -> Files:
    """Add the generated files, and the screenshots that there are."""
    files.append(File.generated(config, "reference/api.md", content=api_reference.page()))
    files.append(File.generated(config, "reference/alerts.md", content=alerts.page()))
    files.append(File.generated(config, "reference/values.md", content=_VALUES + values.table()))
    for picture in sorted(SCREENSHOTS.glob("*.png")):
        files.append(File.generated(config, f"images/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, /, page: Any = None, **_: Any) -> str:
    """Link to the generated pages, and show the screenshots that there are."""
    up = "" if page is None else "../" * page.file.src_uri.count("/")
    for source, reference in REFERENCES.items():
        markdown = markdown.replace(f"]({up}../{source})", f"]({up}{reference})")
    return SCREENSHOT.sub(lambda found: _picture(found[1], " ".join(found[2].split()), up), markdown)


def _picture(name: str, text: str, up: str) -> str:
    return f"![{text}]({up}images/{name}.png)" if (SCREENSHOTS / f"{name}.png").is_file() else ""
