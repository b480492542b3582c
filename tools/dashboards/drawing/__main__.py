"""`python -m tools.dashboards.drawing PROMETHEUS FOLDER`: write each dashboard as it is now as a page."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tools.dashboards.drawing.answered import answered_boards
from tools.dashboards.drawing.page import page


def main() -> int:
    """Returns 1 where a query is refused."""
    parser = argparse.ArgumentParser(prog="python -m tools.dashboards.drawing", description=__doc__)
    parser.add_argument("prometheus", help="its address, such as http://127.0.0.1:9090")
    parser.add_argument("folder", type=Path, help="for the pages")
    parser.add_argument("--minutes", type=float, default=60.0, help="that are shown; default: 60")
    parser.add_argument("--operator", metavar="NAMESPACE", help="of the operator; default: all")
    parser.add_argument("--job", metavar="NAMESPACE/NAME", help="for the dashboard Job; default: all jobs together")
    arguments = parser.parse_args()
    variables = {}
    if arguments.operator:
        variables["operator"] = arguments.operator
    if arguments.job:
        variables["namespace"], _, variables["profiledjob"] = arguments.job.partition("/")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    try:
        for name, board in answered_boards(arguments.prometheus, time.time() - 60.0 * arguments.minutes, variables):
            path = arguments.folder / f"{name}.html"
            path.write_text(page(board), encoding="utf-8")
            print(f"wrote {path}")
    except (OSError, ValueError) as error:
        print(f"{arguments.prometheus}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
