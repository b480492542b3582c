"""`rightpool compare JOB | --profile RUN.json`: which accelerator to take, with what rules one out, what it costs, and
what would change the order.

With `-o json`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, Comparison
    subject            the job, or what was run
    weights            {performance, cost, energy}, of the score
    rows               the best first, each {name, accelerator, chips, rate: {median, low, high}, unit, origin,
                       checks: [{gate, passed, evidence}], passes, dollarsPerMillion, kwhPerMillion,
                       kgCo2PerMillion, score, costs}. origin is measured, measured before or predicted; passed is null
                       where a gate can't be told; score is of 100, and null of what does not pass.
                       costs is {dollarsPerChipHour, bought, rented, watts, load, porting}: bought, rented and watts are
                       {value, source} or null; load is {share, source}; porting is dollars for a million, or null
    changes            what would make another one the first, the nearest first, each {figure, now, at, instead,
                       message}
    notes              sentences

A million is of units: samples, or steps where samples were not counted. What is not known is null, and never 0.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rightpool.cli.connection import add_connection_arguments, connected, exit_status
from rightpool.cli.jobs import job_key
from rightpool.cli.number_range import seconds

if TYPE_CHECKING:
    from rightpool.cli.compare.report import ComparisonReport
    from rightpool.cli.compare.score import Weights
    from rightpool.hardware.ownership import CostBook

_NONE_PASSES: Final = 3
WEIGHTS: Final = "performance=0.3,cost=0.5,energy=0.2"
FORMS: Final = ("table", "json", "markdown")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 compared, 1 the cluster can't be read, 2 wrong input, 3 nothing passes the gates."
    parser.add_argument("name", metavar="JOB", nargs="?", help="a job that runs, also as NAMESPACE/NAME")
    parser.add_argument(
        "--profile",
        metavar="RUN.json",
        type=Path,
        action="append",
        default=[],
        help="in place of a job what `bench run` has written; once for each accelerator that it ran on. Others are "
        "predicted by the first",
    )
    parser.add_argument(
        "--against",
        metavar="NAMES",
        default="",
        help="pools, or accelerators of the catalog, with commas between; default: the pools there are",
    )
    add_scoring_arguments(parser)
    parser.add_argument(
        "--latency",
        metavar="SECONDS",
        type=seconds(0.0001, 3600.0),
        help="within which 99 of 100 steps must end, as --profile has measured it on that accelerator",
    )
    add_connection_arguments(parser, FORMS)


def add_scoring_arguments(parser: argparse.ArgumentParser) -> None:
    """What it costs, and what counts how much."""
    parser.add_argument("--tco", metavar="FILE", type=Path, help="what you pay; default: the catalog's figures")
    parser.add_argument("--weights", metavar="W", default=WEIGHTS, help="of the score; default: %(default)s")


def run(arguments: argparse.Namespace) -> int:
    """The exit status."""
    return exit_status("compare", lambda: _compare(arguments))


def _compare(arguments: argparse.Namespace) -> int:
    from rightpool.cli.compare.comparison import job_comparison, weights_of
    from rightpool.cli.compare.question import NothingToCompare, keys_of
    from rightpool.cli.compare.report import print_compared
    from rightpool.cli.view import ClusterView

    if (arguments.name is None) == (not arguments.profile):
        raise NothingToCompare("name a job, or a run by --profile")
    weights, book = weights_of(arguments.weights), cost_book(arguments.tco)
    against, limit = keys_of(arguments.against), arguments.latency
    if arguments.profile:
        found = _runs(arguments.profile, against, book, weights, limit)
    else:
        with connected(arguments) as connection:
            key = job_key(arguments.name, connection.namespace)
            view = ClusterView(connection.client, key.namespace, arguments.operator_namespace)
            found = job_comparison(view, key, against, book, weights, time.time(), limit)
    print_compared(found, arguments.output)
    return 0 if any(row.passes for row in found.rows) else _NONE_PASSES


def cost_book(path: Path | None) -> CostBook:
    """The catalog's figures where there is no file. Raises FileProblem."""
    from rightpool.cli.compare.question import unknown_costs
    from rightpool.cli.typed_file import FileProblem, read_typed
    from rightpool.hardware.catalog import load_catalog
    from rightpool.hardware.ownership import CostBook

    if path is None:
        return CostBook()
    book = read_typed(path, CostBook, "file of costs")
    for problem in unknown_costs(book, load_catalog()):
        raise FileProblem(f"{path}: {problem}")
    return book


def _runs(
    paths: list[Path], against: tuple[str, ...], book: CostBook, weights: Weights, limit: float | None
) -> ComparisonReport:
    from rightpool.cli.bench.profile import read_profile
    from rightpool.cli.compare.comparison import comparison
    from rightpool.cli.compare.question import of_runs
    from rightpool.hardware.catalog import load_catalog

    runs = {path: read_profile(path) for path in paths}
    asked = of_runs(runs, against, book, load_catalog(), time.time())
    return comparison(runs[paths[0]].name, asked, book, weights, limit=limit)
