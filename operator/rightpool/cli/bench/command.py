"""`rightpool bench run`: what a program does on this machine, as a profile in JSON. `rightpool bench compare`: whether
a run is slower than an earlier one, as Markdown.

The profile is a BenchProfile (cli/bench/profile.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from rightpool.cli.number_range import seconds

_SECONDS: Final = 60.0
_PROGRAM_FAILED: Final = 4
_UNKNOWN: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    text = "run a program with the profiler beside it, and write what was measured"
    run_parser = actions.add_parser("run", help=text, description=text.capitalize() + ".")
    run_parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("bench.json"), help="default: bench.json"
    )
    run_parser.add_argument("--name", default="", help="what is measured; default: the command")
    run_parser.add_argument(
        "--seconds",
        type=seconds(5, 3600),
        default=_SECONDS,
        help="how long to measure once it has warmed up; then the program is ended; default: 60",
    )
    run_parser.add_argument(
        "program", metavar="-- COMMAND", nargs=argparse.REMAINDER, help="the program with its arguments"
    )
    text = "say whether a run is slower than an earlier one"
    codes = " Exit status: 0 the same or better, 1 worse, 2 not known."
    compare_parser = actions.add_parser("compare", help=text, description=text.capitalize() + "." + codes)
    compare_parser.add_argument("baseline", metavar="BASELINE.json", type=Path)
    compare_parser.add_argument("candidate", metavar="CANDIDATE.json", type=Path)
    compare_parser.add_argument("--junit", metavar="FILE", type=Path, help="write the verdict as JUnit's XML, too")


def run(arguments: argparse.Namespace) -> int:
    """The exit status."""
    return _compare(arguments) if arguments.action == "compare" else _run(arguments)


def _compare(arguments: argparse.Namespace) -> int:
    """0 the same or better, 1 worse, 2 not known."""
    from rightpool.cli.bench.comparison import compare_runs
    from rightpool.cli.bench.profile import read_profile
    from rightpool.cli.typed_file import FileProblem

    try:
        runs = [read_profile(path) for path in (arguments.baseline, arguments.candidate)]
    except FileProblem as problem:
        print(f"rightpool: {problem}", file=sys.stderr)
        return _UNKNOWN
    found = compare_runs(*runs)
    print(found.markdown(), end="")
    if arguments.junit is not None:
        try:
            arguments.junit.write_text(found.junit())
        except OSError as error:
            print(f"rightpool: {arguments.junit}: {error.strerror}", file=sys.stderr)
            return _UNKNOWN
    return found.exit_status


def _run(arguments: argparse.Namespace) -> int:
    """0 measured, 1 not measured, 4 the program failed."""
    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not words:
        print("rightpool: bench run: name the program behind --", file=sys.stderr)
        return 2
    import asyncio

    from rightpool.cli.bench.beside import CommandFailed, NothingSeen, beside
    from rightpool.cli.bench.profile import bench_profile

    try:
        run = asyncio.run(beside(words, arguments.seconds))
        found = bench_profile(run, arguments.name or " ".join(words))
    except CommandFailed as failed:
        print(f"rightpool: {failed}", file=sys.stderr)
        return _PROGRAM_FAILED
    except NothingSeen as missing:
        print(f"rightpool: {missing}", file=sys.stderr)
        return 1
    try:
        arguments.output.write_text(json.dumps(found.to_wire(), indent=2) + "\n")
    except OSError as error:
        print(f"rightpool: {arguments.output}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{found.text()}; wrote {arguments.output}", file=sys.stderr)
    return 0
