"""`rightpool simulate`: what jobs would have cost and how long they would have taken, with other pools, prices or
another policy.

With `-o json` or `-o yaml`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, SimulationReport
    notes              what is not as it should be, and what is left out, sentences
    jobs, from, to     how many were played; the first arrival and the last end, RFC 3339
    check              {jobs, moved, completion, chipHours, nineInTen, planned: {dollars, completion}, holds}: each job
                       placed as it was, and all of them planned anew under the same policy, against what was, as
                       shares: 0.02 is 2% more; null where nothing can be compared
    asItWas            {jobs, unfinished, dollars, completionHoursMean, completionHoursMedian, completionHoursP95,
                       waitHoursMean, waitHoursLongest, moves, restartShare, deadlinesMissed, chipHours}; chipHours by
                       pool
    planned            the same numbers of simulations of the present pools, prices and policy, each {mean, low, high}:
                       80% of them lie within low and high
    whatIf             the same with the changes that were asked for; null where there were none
    difference         whatIf less planned, by the same draws, likewise
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from rightpool.cli.connection import add_connection_arguments, exit_status
from rightpool.cli.number_range import whole_number
from rightpool.cli.plot.file import form_of, plot_file, require_library, save_plot

LOG_FORMATS: Final = ("records", "philly", "helios", "alibaba")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--history", type=Path, metavar="FILE", help="the jobs; default: the cluster's own records")
    parser.add_argument("--format", choices=LOG_FORMATS, default=LOG_FORMATS[0], help="of --history; default: records")
    parser.add_argument("--pools", type=Path, metavar="FILE", help="the pools, in YAML; default: those of the cluster")
    parser.add_argument(
        "--on", metavar="POOL", help="where jobs of a log ran that names no chip; default: the pool with most chips"
    )
    parser.add_argument(
        "--pool", action="append", default=[], metavar="NAME=CHIPS", help="what if it had so many, +N more or -N fewer"
    )
    parser.add_argument(
        "--price", action="append", default=[], metavar="NAME=DOLLARS", help="what if a chip-hour there cost so much"
    )
    parser.add_argument(
        "--policy",
        metavar="FILE|OBJECTIVE",
        help="what if this PlacementPolicy were in force, or all jobs had this objective",
    )
    parser.add_argument("--what-if", type=Path, metavar="FILE", help="such changes in YAML: pools, prices, policy")
    parser.add_argument("--seeds", type=whole_number(1, 50), default=3, help="simulations of each; default: 3")
    parser.add_argument("--plot", type=plot_file, metavar="FILE", help="draw it into FILE, .svg or .png")
    add_connection_arguments(parser, namespace="jobs of this namespace alone; default: all")


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 simulated, 1 not possible, 2 wrong arguments."""
    return exit_status("simulate", lambda: _simulate(arguments))


def _simulate(arguments: argparse.Namespace) -> int:
    from rightpool.cli.simulate.changes import changed, changes_of
    from rightpool.cli.simulate.report import print_report
    from rightpool.cli.simulate.runs import simulated
    from rightpool.cli.simulate.sources import source_of_history

    changes = changes_of(arguments)
    if arguments.plot is not None:
        require_library()
    source = source_of_history(arguments)
    as_is = source.scenario
    what_if = changed(as_is, changes) if changes.any else None
    found = simulated(source, what_if, arguments.seeds)
    if arguments.plot is not None:
        from rightpool.cli.simulate.draw import draw_simulation

        save_plot(draw_simulation(found, form_of(arguments.plot)), arguments.plot)
    print_report(found, arguments.output)
    return 0
