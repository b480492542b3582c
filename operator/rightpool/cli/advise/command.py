"""`rightpool advise --profile RUN.json`: to which partition of a Slurm cluster a measured program belongs.

It asks neither Slurm nor a cluster, and starts nothing: it reads what `sinfo --json` prints. Rates, gates and costs are
those of `rightpool compare`. With `-o json`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, Advice
    better             whether a partition with other chips is better, by the threshold
    sbatch             options of sbatch; null where no partition passes the gates
    comparison         as of `rightpool compare`; rows are named by their partition
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rightpool.cli.compare.command import add_scoring_arguments, cost_book
from rightpool.cli.connection import exit_status

if TYPE_CHECKING:
    from rightpool.cli.advise.advice import Advice
    from rightpool.cli.compare.report import ComparisonReport

_STAY: Final = 3
_THRESHOLD: Final = 0.1
_STDIN: Final = Path("/dev/stdin")
FORMS: Final = ("table", "json", "markdown", "sbatch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0 a partition with other chips is better, 2 wrong input, 3 none is, or none passes the gates."
    )
    parser.add_argument(
        "--profile",
        metavar="RUN.json",
        type=Path,
        action="append",
        required=True,
        help="what `bench run` has written; once for each accelerator that it ran on. Others are predicted by "
        "the first",
    )
    parser.add_argument(
        "--inventory",
        metavar="FILE",
        type=Path,
        default=_STDIN,
        help="what `sinfo --json` prints, or a list of partitions in YAML; default: standard input",
    )
    parser.add_argument(
        "--chip",
        metavar="NAME=KEY",
        action="append",
        default=[],
        help="which accelerator of the catalog Slurm's name for a GPU means, where several are called so",
    )
    add_scoring_arguments(parser)
    parser.add_argument(
        "-o", "--output", choices=FORMS, default="table", help="sbatch: its options alone; default: %(default)s"
    )


def run(arguments: argparse.Namespace) -> int:
    """The exit status."""
    return exit_status("advise", lambda: _advise(arguments))


def _advise(arguments: argparse.Namespace) -> int:
    found, advice = _advised(arguments)
    _print(found, advice, arguments.output)
    return 0 if advice.better else _STAY


def _advised(arguments: argparse.Namespace) -> tuple[ComparisonReport, Advice]:
    from rightpool.cli.advise.advice import advised
    from rightpool.cli.advise.inventory import read_inventory
    from rightpool.cli.bench.profile import read_profile
    from rightpool.cli.compare.comparison import comparison, weights_of
    from rightpool.cli.compare.question import NothingToCompare, free_pool, of_runs
    from rightpool.hardware.catalog import load_catalog

    weights, book, catalog = weights_of(arguments.weights), cost_book(arguments.tco), load_catalog()
    runs = {path: read_profile(path) for path in arguments.profile}
    partitions, notes = read_inventory(arguments.inventory, _chips(arguments.chip), catalog)
    if not partitions:
        raise NothingToCompare("; ".join(notes))
    pools = [free_pool(one.name, one.chip, one.chips_per_node, one.nodes, book) for one in partitions]
    asked = of_runs(runs, (), book, catalog, time.time(), pools)
    first = runs[arguments.profile[0]]
    found = comparison(first.name, asked, book, weights, notes)
    named = {one.name: one for one in partitions}
    return found, advised(found, named, first.accelerator or "", _THRESHOLD)


def _chips(pairs: list[str]) -> dict[str, str]:
    from rightpool.cli.compare.question import NothingToCompare

    found = {}
    for pair in pairs:
        name, sign, key = pair.partition("=")
        if not (name and sign and key):
            raise NothingToCompare(f"--chip: {pair!r} is not NAME=KEY, such as a100=A100-SXM4-80GB")
        found[name] = key
    return found


def _print(found: ComparisonReport, advice: Advice, form: str) -> None:
    from rightpool.cli.advise.advice import document
    from rightpool.cli.compare.report import print_compared
    from rightpool.cli.documents import print_document

    line = advice.sbatch
    if form == "json":
        print_document(document(found, advice), form)
    elif form == "sbatch":
        print(line or "")
    else:
        print_compared(found, form)
        verdict = "Better" if advice.better else "Stay" if line else "No partition passes the gates"
        options = "" if line is None else f": sbatch {line}" if form == "table" else f": `sbatch {line}`"
        print(f"\n{verdict}{options}")
