"""The commands by name, and how one of them is run.

A command is a module of this package with `add_arguments(parser)` and `run(arguments) -> int`. Only the given command
is imported, so that `rightpool pools` does not load the modules of the operator.
"""

from __future__ import annotations

import argparse
import errno
import gc
import importlib
import os
import select
import sys
from collections.abc import Collection, Sequence
from typing import Final, Protocol, cast

from rightpool.contract import GROUP, VERSION

# Module and help text by name of the command.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "operator": ("rightpool.cli.operator", "run the operator"),
    "explain": ("rightpool.cli.explain", "why a job is where it is, and every place it could be"),
    "profile": ("rightpool.cli.profile", "what a job does to its chips, number by number, and what limits it"),
    "pools": ("rightpool.cli.pools", "the pools, with chips, prices and what is free"),
    "calibrate": ("rightpool.cli.calibrate.command", "measure what the chips of a pool can do"),
    "recommend": ("rightpool.cli.recommend", "which jobs should be moved where, the largest saving first"),
    "release": ("rightpool.cli.release", "put an adopted object back as it was, and let go of it"),
    "approve": ("rightpool.cli.approve", "approve a recommendation, so that the operator carries it out"),
    "trial": ("rightpool.cli.trial", "try a job's program elsewhere now, and say what that costs and shows"),
    "trace": ("rightpool.cli.trace", "what a step spends its time on, operation by operation"),
    "history": ("rightpool.cli.history", "what was moved, what it promised and what it delivered"),
    "report": ("rightpool.cli.report", "what namespaces, teams, jobs or pools have spent and saved"),
    "simulate": ("rightpool.cli.simulate.command", "what jobs would have cost with other pools, prices or policy"),
    "ui": ("rightpool.cli.ui.command", "the fleet and its jobs as a page in the browser"),
    "completion": ("rightpool.cli.completion", "a script that lets a shell complete these commands"),
    "bench": ("rightpool.cli.bench.command", "measure a program on this machine, without a cluster"),
    "compare": ("rightpool.cli.compare.command", "which accelerator to take, by speed, gates, cost and energy"),
    "advise": ("rightpool.cli.advise.command", "to which partition of a Slurm cluster a measured program belongs"),
    "top": ("rightpool.cli.top", "the fleet: what runs where, what limits it, what it costs"),
}


class Command(Protocol):
    """The interface of a command's module."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, arguments: argparse.Namespace) -> int: ...


def run_command(tokens: Sequence[str]) -> int:
    """Run the command that these words name; the exit status."""
    chosen = next((token for token in tokens if token in COMMANDS), None)
    gc.disable()
    try:
        arguments = command_parser([] if chosen is None else [chosen]).parse_args(tokens)
    finally:
        # What was loaded stays to the end: to look through it for garbage, also at that end, is a quarter of `explain`.
        gc.freeze()
        gc.enable()
    try:
        status = _load(arguments.command).run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        if not _unread():
            raise  # of a connection, and no command may hide that
        _drop_output()
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _drop_output()
        print(f"rightpool: not all is written: {error.strerror}", file=sys.stderr)
        return 1
    return status


def command_parser(known: Collection[str]) -> argparse.ArgumentParser:
    """All commands by name, and those in `known` with their arguments."""
    parser = argparse.ArgumentParser(
        prog="rightpool", description="Puts every ML job on the accelerators that suit it."
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (_, text) in COMMANDS.items():
        subparser = commands.add_parser(name, help=text, description=text.capitalize() + ".")
        if name in known:
            _load(name).add_arguments(subparser)
    return parser


class _PrintVersion(argparse.Action):
    """Asks for the version only where it is printed: the packages' metadata take a tenth of a second to read."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"rightpool {_version()}")
        parser.exit()


def _drop_output() -> None:
    """What is not written yet goes nowhere: else the interpreter fails at it once more, at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unread() -> bool:
    """Whether nobody reads standard output any more, such as `head` after its last line."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return bool(output.poll(0))


def _version() -> str:
    """Of the installed package; of a checkout, the API's."""
    from importlib import metadata

    try:
        return metadata.version("rightpool")
    except metadata.PackageNotFoundError:
        return f"not installed ({GROUP}/{VERSION})"


def _load(name: str) -> Command:
    return cast(Command, importlib.import_module(COMMANDS[name][0]))
