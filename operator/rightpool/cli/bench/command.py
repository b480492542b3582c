"""`rightpool bench`: `run` measures a program on this machine, `compare` says whether a run is slower than an earlier
one, `store` and `fetch` keep runs in a folder or on a branch, `history` shows them.

A run is a BenchProfile (cli/bench/profile.py), in JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rightpool.cli.number_range import seconds, whole_number
from rightpool.cli.typed_file import FileProblem

if TYPE_CHECKING:
    from rightpool.cli.bench.comparison import RunComparison
    from rightpool.cli.bench.profile import BenchProfile

_SECONDS: Final = 60.0
_MOST_RUNS: Final = 100
_MOST_CHIPS: Final = 1_000_000
_WORSE: Final = 1
_WRONG: Final = 2
_UNKNOWN: Final = 3
_PROGRAM_FAILED: Final = 4
_PLACE: Final = "a folder, or git:BRANCH of the repository here"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_run(_added(actions, "run", "run a program with the profiler beside it, and write what was measured"))
    _add_read(_added(actions, "read", "write what MLPerf's lines (:::MLLOG) in a program's logs say of its rate"))
    _add_compare(_added(actions, "compare", "say whether a run is slower than an earlier one"))
    store_parser = _added(actions, "store", "keep a run")
    store_parser.add_argument("run", metavar="RUN.json", type=Path)
    store_parser.add_argument("--in", dest="place", metavar="PLACE", required=True, help=_PLACE)
    fetch_parser = _added(actions, "fetch", "write the newest run that was kept; exit status 3 where there is none")
    fetch_parser.add_argument("--from", dest="place", metavar="PLACE", required=True, help=_PLACE)
    fetch_parser.add_argument("--name", required=True, help="what was measured")
    _add_output(fetch_parser, "baseline.json")
    history_parser = _added(actions, "history", "show the runs that were kept, the oldest first, as Markdown")
    history_parser.add_argument("--from", dest="place", metavar="PLACE", required=True, help=_PLACE)
    history_parser.add_argument("--name", required=True, help="what was measured")
    history_parser.add_argument("--svg", metavar="FILE", type=Path, help="draw them, too")


def _added(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    return actions.add_parser(name, help=text, description=text.capitalize() + ".")


def _add_output(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=Path(name), help=f"default: {name}")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 measured, 2 wrong usage, 3 not measured, 4 the program failed."
    _add_output(parser, "bench.json")
    parser.add_argument("--name", default="", help="what is measured; default: the command")
    parser.add_argument(
        "--seconds",
        type=seconds(5, 3600),
        default=_SECONDS,
        help="how long to measure once it has warmed up; then the program is ended; default: 60",
    )
    parser.add_argument(
        "--repeat", type=whole_number(1, _MOST_RUNS), default=1, metavar="N", help="how often; default: once"
    )
    parser.add_argument(
        "--against",
        metavar="REV",
        help="a commit that takes turns with what is here, from a copy that is gone afterwards; needs --baseline",
    )
    parser.add_argument("--baseline", metavar="FILE", type=Path, help="what --against has measured")
    parser.add_argument(
        "--mllog", action="store_true", help="take its samples from MLPerf's lines (:::MLLOG) in what it prints"
    )
    parser.add_argument(
        "program", metavar="-- COMMAND", nargs=argparse.REMAINDER, help="the program with its arguments"
    )


def _add_read(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 written, 2 wrong usage or a file that can't be read, 3 too few lines."
    parser.add_argument("logs", metavar="LOG", type=Path, nargs="+", help="of one run each, of the same program")
    parser.add_argument("--accelerator", required=True, help="the chip, by its key in the catalog")
    parser.add_argument(
        "--chips", type=whole_number(1, _MOST_CHIPS), required=True, metavar="N", help="how many ran it"
    )
    parser.add_argument("--name", default="", help="what was measured; default: the benchmark's name in the log")
    _add_output(parser, "bench.json")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 the same or better, 1 worse, 2 wrong usage or a file that is no run, 3 not known."
    parser.add_argument("baseline", metavar="BASELINE.json", type=Path)
    parser.add_argument("candidate", metavar="CANDIDATE.json", type=Path)
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write the verdict as JUnit's XML, too")
    parser.add_argument(
        "--benchmark", metavar="FILE", type=Path, help="write the candidate for github-action-benchmark, too"
    )
    parser.add_argument("--strict", action="store_true", help="what is not known counts as worse")


def run(arguments: argparse.Namespace) -> int:
    """The exit status."""
    from rightpool.cli.bench.store import StoreProblem

    actions = {
        "run": _run,
        "read": _read,
        "compare": _compare,
        "store": _store,
        "fetch": _fetch,
        "history": _history,
    }
    try:
        return actions[arguments.action](arguments)
    except (FileProblem, StoreProblem) as problem:
        print(f"rightpool: {problem}", file=sys.stderr)
        return _WRONG


def _written(path: Path, text: str) -> None:
    """Raises FileProblem."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileProblem(f"{path}: {error.strerror}") from error


def _compare(arguments: argparse.Namespace) -> int:
    from rightpool.cli.bench.comparison import compare_runs
    from rightpool.cli.bench.profile import read_profile

    found = compare_runs(*(read_profile(path) for path in (arguments.baseline, arguments.candidate)))
    print(found.markdown(), end="")
    if arguments.junit is not None:
        _written(arguments.junit, found.junit())
    if arguments.benchmark is not None:
        _written(arguments.benchmark, json.dumps(found.measures(), indent=2) + "\n")
    _annotate(found)
    return _WORSE if arguments.strict and found.exit_status == _UNKNOWN else found.exit_status


def _annotate(found: RunComparison) -> None:
    """On GitHub's runners, a line that it shows beside the change."""
    levels = {_WORSE: "error", _UNKNOWN: "warning"}
    if os.environ.get("GITHUB_ACTIONS") == "true" and found.exit_status in levels:
        print(f"::{levels[found.exit_status]} title={found.candidate.name}::{found.text()}", file=sys.stderr)


def _run(arguments: argparse.Namespace) -> int:
    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not words:
        print("rightpool: bench run: name the program behind --", file=sys.stderr)
        return _WRONG
    if (arguments.against is None) != (arguments.baseline is None):
        print("rightpool: bench run: --against and --baseline belong together: give both", file=sys.stderr)
        return _WRONG
    from rightpool.cli.bench.beside import CommandFailed, NothingSeen
    from rightpool.cli.bench.turns import Contender, RevisionProblem, Revisions, measured_in_turns

    name = arguments.name or " ".join(words)
    try:
        with Revisions() as revisions:
            contenders = [Contender(Path.cwd(), None)]
            if arguments.against is not None:
                contenders.insert(0, revisions.unpack(arguments.against))
            found = measured_in_turns(
                words, name, arguments.seconds, arguments.repeat, contenders, logged=arguments.mllog
            )
    except RevisionProblem as problem:
        message, status = str(problem), _WRONG
    except CommandFailed as failed:
        message, status = str(failed), _PROGRAM_FAILED
    except NothingSeen as missing:
        message, status = str(missing), _UNKNOWN
    else:
        for one, path in zip(reversed(found), (arguments.output, arguments.baseline), strict=False):
            _written(path, _text(one))
            print(f"{one.text()}; wrote {path}", file=sys.stderr)
        return 0
    print(f"rightpool: {message}", file=sys.stderr)
    return status


def _read(arguments: argparse.Namespace) -> int:
    from rightpool.cli.bench.beside import NothingSeen
    from rightpool.cli.bench.made_profile import logged_profile
    from rightpool.cli.bench.mllog import MlperfLog
    from rightpool.cli.bench.turns import merged
    from rightpool.hardware.catalog import UnknownAcceleratorError, load_catalog

    try:
        load_catalog().get(arguments.accelerator)
    except UnknownAcceleratorError as unknown:
        print(f"rightpool: bench read: {unknown.message}", file=sys.stderr)
        return _WRONG
    runs = []
    for path in arguments.logs:
        log = MlperfLog()
        try:
            with path.open(encoding="utf-8", errors="replace") as lines:
                log.read(lines)
            runs.append(logged_profile(log, arguments.name, arguments.accelerator, arguments.chips))
        except OSError as error:
            raise FileProblem(f"{path}: {error.strerror}") from error
        except NothingSeen as missing:
            print(f"rightpool: {path}: {missing}", file=sys.stderr)
            return _UNKNOWN
    found = merged(runs, session="")
    _written(arguments.output, _text(found))
    print(f"{found.text()}; wrote {arguments.output}", file=sys.stderr)
    return 0


def _text(found: BenchProfile) -> str:
    return json.dumps(found.to_wire(), indent=2) + "\n"


def _store(arguments: argparse.Namespace) -> int:
    from rightpool.cli.bench.store import store

    print(f"kept as {store(arguments.run, arguments.place)}", file=sys.stderr)
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    from rightpool.cli.bench.store import stored

    with tempfile.TemporaryDirectory(prefix="rightpool-runs-") as folder:
        runs = stored(arguments.place, arguments.name, Path(folder))
    if not runs:
        print(f"rightpool: {arguments.place} has no run of {arguments.name}", file=sys.stderr)
        return _UNKNOWN
    _written(arguments.output, _text(runs[-1][1]))
    return 0


def _history(arguments: argparse.Namespace) -> int:
    from rightpool.cli.bench.history import history_svg, history_table
    from rightpool.cli.bench.store import stored

    with tempfile.TemporaryDirectory(prefix="rightpool-runs-") as folder:
        runs = [run for _, run in stored(arguments.place, arguments.name, Path(folder))]
    if not runs:
        print(f"rightpool: {arguments.place} has no run of {arguments.name}", file=sys.stderr)
        return _UNKNOWN
    print(history_table(runs), end="")
    if arguments.svg is not None:
        _written(arguments.svg, history_svg(runs))
    return 0
