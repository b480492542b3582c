"""Pictures of the page and of the dashboards, taken in a real Chromium of a cluster on which the demo has run.

`python -m tools.screenshots` writes them into build/screenshots, where the site of the documentation finds them. They
are not kept in the repository.
"""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[2] / "build" / "screenshots"
