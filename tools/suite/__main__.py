"""`python -m tools.suite [PART…]`: these parts, or all of them; see tools.suite.parts.

The last line is `N passed, N failed`. Exit code 0 only if nothing failed. One suite at a time uses the clusters of this
machine; another one waits for its end.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

from devcluster import host, locks
from devcluster.spec import TEST, state_home
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
    lanes = selected(LANES, names)
    if os.environ.get("RIGHTPOOL_TEST_KUBECONFIG"):  # an existing cluster is neither started nor removed
        lanes = [Lane(lane.parts) for lane in lanes]
    rooted = [part.name for lane in lanes for part in lane.rooted]
    if rooted and not host.is_root():
        others = [part.name for lane in lanes for part in lane.parts if part.name not in (*rooted, BUILD)]
        print(f"suite: only root can run real pods, which these need: {', '.join(rooted)}", file=sys.stderr)
        alternative = f", or python -m tools.suite {' '.join(others)}" if others else ""
        print(f"without root there is `make lint unit`{alternative}", file=sys.stderr)
        return 1
    try:
        with _clusters_reserved(lanes):
            return _run([_with_existing_cluster(lane) for lane in lanes])
    except KeyboardInterrupt:  # while it waited; later, interrupts are handled
        return 130


def _clusters_reserved(lanes: list[Lane]) -> contextlib.AbstractContextManager[None]:
    """The clusters have the same names everywhere: two suites would use and remove those of each other."""
    if not any(lane.clustered for lane in lanes):
        return contextlib.nullcontext()

    def tell(holder: str) -> None:
        print(f"suite: {holder} uses the test clusters of this machine; waiting for its end", flush=True)

    return locks.held_by_name(state_home() / "suite.lock", tell)


def _run(lanes: list[Lane]) -> int:
    """The exit code."""
    suite = Suite(lanes, FOLDER, lambda text: print(text, flush=True))
    # Set explicitly: a shell's background job ignores SIGINT, and child processes would inherit that although tests
    # interrupt them.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: suite.stop())
    began = time.monotonic()
    results = suite.run()
    logs = [suite.log(result.part) for result in results if not result.ok or result.unsteady]
    if any(str(suite.log(COMMON)) in result.note for result in results):
        logs.append(suite.log(COMMON))
    for log in logs:
        print(f"\n--- the end of {log} ---\n{tail(log)}")
    print(f"\n{table(results)}\n")
    for log in logs:
        print(f"{log}:\n{failures(log)}\n")
    unsteady = sum(result.unsteady for result in results)
    if unsteady:
        print(f"{unsteady} passed only when they were run again: a fault of the test, or a rare one of the product\n")
    print(f"{time.monotonic() - began:.0f} s, logs in {FOLDER}/\n{total(results)}", flush=True)
    if suite.stopped:
        return 130
    return 0 if all(result.ok for result in results) else 1


def _with_existing_cluster(lane: Lane) -> Lane:
    """The lane without removal of a cluster that exists already. To be asked when no other suite can have made it."""
    return Lane(lane.parts, lane.up, () if lane.up and TEST.kubeconfig.exists() else lane.down)


if __name__ == "__main__":
    raise SystemExit(main())
