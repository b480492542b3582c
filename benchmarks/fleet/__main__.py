"""What the operator's planner is worth to a fleet, in the form of Sia's simulator (SOSP'23).

    PYTHONPATH=operator python -m benchmarks.fleet --sia DIR [--tier NAME ...] [--trace NAME ...]
    PYTHONPATH=operator python -m benchmarks.fleet --noise [NAME] [--seed N] [--seeds K] [--jobs N] [--days N]

DIR has the published profiles, traces and results. First it is shown that the simulator does what the published one
did; then every trace is played in each tier: with the planner by itself, which is told the true rates of every job and
is not limited; with the whole operator under the limits that every fleet has by default; with the planner that knows
less (learned, sia-free, sia); and with deadlines. benchmarks/fleet/ratios.py has what each knows. Ends with 1 where
something differs, or the mean of the ratios to the published runs misses its bar.

--noise has no published data: jobs come for a week, vary by themselves (NAME: as in benchmarks.decisions), wait, move,
are judged and moved back, with the planner, without it, and with one that knows all rates: benchmarks/fleet/noisy.py.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.decisions.measures import print_table
from benchmarks.fleet.application import Application, applications
from benchmarks.fleet.deadlines import REPLAYED
from benchmarks.fleet.exact import fixed, replayed
from benchmarks.fleet.noisy import DAYS, JOBS, NOISES, USUAL, compared
from benchmarks.fleet.published import TRACES, TUNED_ON, Result, results
from benchmarks.fleet.ratios import TIERS, played, ratios

COLUMNS = ("hours", "dollars", "p99", "makespan", "chip_hours", "restarts", "late")


def main() -> int:
    """Print the tables; 1 where something differs or a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--sia", type=Path, help="the folder of the published data")
    which.add_argument("--noise", choices=NOISES, nargs="?", const=USUAL, help=f"a made fleet; by default {USUAL}")
    parser.add_argument("--seed", type=int, default=1, help="of the made fleet; so the others")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from that one on")
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many come")
    parser.add_argument("--days", type=float, default=DAYS, help="in so many days")
    parser.add_argument("--json", type=Path, help="write its rows here, too")
    parser.add_argument("--trace", choices=TRACES, action="append", help="this one alone, and nothing else")
    parser.add_argument("--tier", choices=tuple(TIERS), action="append", help="this one alone, and nothing else")
    options = parser.parse_args()
    if options.noise is not None:
        seeds = range(options.seed, options.seed + options.seeds)
        table = compared(options.noise, seeds, options.jobs, options.days)
        print_table(table, options.json)
        return 0 if all(line.ok for line in table) else 1
    known, published = applications(options.sia), results(options.sia)
    good = bool(options.trace or options.tier) or _exact(options.sia, known)
    missed = []
    for tier in options.tier or TIERS:
        traces = [trace for trace in TIERS[tier].traces if trace in (options.trace or TRACES)]
        if traces:
            missed += _tier(tier, options.sia, known, published, traces)
    for line in missed:
        print(line)
    return 0 if good and (options.trace or not missed) else 1


def _tier(
    tier: str, folder: Path, known: dict[str, Application], published: dict[str, Result], traces: Sequence[str]
) -> list[str]:
    """Print the ratios of each trace and their means; which bars are missed."""
    print(f"{tier + ' x published Sia':24}" + "".join(f"{name:>11}" for name in COLUMNS) + f"{'CPU s':>8}")
    found = {}
    for trace in traces:
        began = time.process_time()
        found[trace] = ratios(played(folder, known, trace, tier), published[trace])
        _print(trace + (" (tuned on)" if trace in TUNED_ON else ""), found[trace], time.process_time() - began)
    means = {name: sum(row[name] for row in found.values()) / len(found) for name in COLUMNS}
    _print("mean", means)
    bars = TIERS[tier].bars
    return [
        f"MISSED: {tier}, {name} {means[name]:.3f}, bar {bars[name]:.2f}" for name in bars if means[name] > bars[name]
    ]


def _print(name: str, row: dict[str, float], seconds: float | None = None) -> None:
    cpu = "" if seconds is None else f"{seconds:8.1f}"
    print(f"{name:24}" + "".join(f"{row[column]:11.3f}" for column in COLUMNS) + cpu, flush=True)


def _exact(folder: Path, known: dict[str, Application]) -> bool:
    """Whether the simulator does what the published one did."""
    print(f"{'as published':24} {'jobs':>5} {'off':>4} {'readings':>9} {'epochs off':>11} {'progress off':>13}")
    found = {"fixed placements": fixed(folder, known)}
    for trace in REPLAYED:
        found[f"Sia on {trace}"] = replayed(folder, known, trace)
    for name, exact in found.items():
        line = f"{exact.jobs:5} {exact.off:4} {exact.readings:9} {exact.epochs:11} {exact.progress:13.1e}"
        print(f"{name:24} {line}", flush=True)
    return all(exact.ok for exact in found.values())


if __name__ == "__main__":
    raise SystemExit(main())
