"""A fleet in the form of Sia's simulator (SOSP'23).

    PYTHONPATH=operator python -m benchmarks.fleet --sia DIR

DIR has the published profiles, traces and results. First it is shown that the simulator does what the published one
did. Ends with 1 where it does not.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.fleet.application import applications
from benchmarks.fleet.exact import fixed, replayed

REPLAYED = ("philly-1", "philly-2", "saturn-1")


def main() -> int:
    """Print the tables; 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sia", type=Path, required=True, help="the folder of the published data")
    options = parser.parse_args()
    began = time.process_time()
    known = applications(options.sia)
    print(f"{'as published':24} {'jobs':>5} {'off':>4} {'readings':>9} {'epochs off':>11} {'progress off':>13}")
    found = {"fixed placements": fixed(options.sia, known)}
    for trace in REPLAYED:
        found[f"Sia on {trace}"] = replayed(options.sia, known, trace)
    for name, exact in found.items():
        line = f"{exact.jobs:5} {exact.off:4} {exact.readings:9} {exact.epochs:11} {exact.progress:13.1e}"
        print(f"{name:24} {line}")
    print(f"{time.process_time() - began:.0f} s of CPU")
    return 0 if all(exact.ok for exact in found.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
