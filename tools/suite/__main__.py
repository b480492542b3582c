"""`python -m tools.suite [PART…]`: these parts, or all of them; see tools.suite.parts.

The last line is `N passed, N failed`. Exit code 0 only if nothing failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

from devcluster import host
from devcluster.spec import TEST
from tools.suite.lanes import COMMON, Suite, selected
from tools.suite.parts import BUILD, LANES, Lane
from tools.suite.results import failures, table, tail, total

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = Path("build") / "tests"


def main() -> int:
    parts = [part.name for lane in LANES for part in lane.parts]
    parser = argparse.ArgumentParser(prog="python -m tools.suite", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(parts)} (default: all)")
    names = parser.parse_args().parts
    unknown = [name for name in names if name not in parts]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are: {', '.join(parts)}")
    os.chdir(ROOT)
    lanes = [_with_existing_cluster(lane) for lane in selected(LANES, names)]
    rooted = [part.name for lane in lanes for part in lane.rooted]
    if rooted and not host.is_root():
        others = [part.name for lane in lanes for part in lane.parts if part.name not in (*rooted, BUILD)]
        print(f"suite: only root can run real pods, which these need: {', '.join(rooted)}", file=sys.stderr)
        alternative = f", or python -m tools.suite {' '.join(others)}" if others else ""
        print(f"without root there is `make lint unit`{alternative}", file=sys.stderr)
        return 1
    suite = Suite(lanes, FOLDER, lambda text: print(text, flush=True))
    # Set explicitly: a shell's background job ignores SIGINT, and child processes would inherit that although tests
    # interrupt them.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: suite.stop())
    began = time.monotonic()
    results = suite.run()
    logs = [suite.log(result.part) for result in results if not result.ok]
    if any(str(suite.log(COMMON)) in result.note for result in results):
        logs.append(suite.log(COMMON))
    for log in logs:
        print(f"\n--- the end of {log} ---\n{tail(log)}")
    print(f"\n{table(results)}\n")
    for log in logs:
        print(f"{log}:\n{failures(log)}\n")
    print(f"{time.monotonic() - began:.0f} s, logs in {FOLDER}/\n{total(results)}", flush=True)
    if suite.stopped:
        return 130
    return 0 if all(result.ok for result in results) else 1


def _with_existing_cluster(lane: Lane) -> Lane:
    """The lane without start and removal of a cluster that exists already."""
    theirs = os.environ.get("RIGHTPOOL_TEST_KUBECONFIG")
    if not lane.up or theirs:
        return Lane(lane.parts)
    return Lane(lane.parts, lane.up, () if TEST.kubeconfig.exists() else lane.down)


if __name__ == "__main__":
    raise SystemExit(main())
