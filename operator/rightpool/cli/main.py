"""The command line: `rightpool COMMAND`, also as `kubectl rightpool COMMAND`.

A command is a module of this package with `add_arguments(parser)` and `run(arguments) -> int`. Only the given command
is imported, so that `rightpool pools` does not load the modules of the operator.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import select
import signal
import sys
from collections.abc import Collection, Sequence
from typing import Final, NoReturn, Protocol, cast

from rightpool.contract import GROUP, VERSION

# Module and help text by name of the command.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "operator": ("rightpool.cli.operator", "run the operator"),
    "explain": ("rightpool.cli.explain", "why a job is where it is, and every place it could be"),
    "profile": ("rightpool.cli.profile", "what a job does to its chips, number by number, and what limits it"),
    "pools": ("rightpool.cli.pools", "the pools, with chips, prices and what is free"),
    "calibrate": ("rightpool.cli.calibrate.command", "measure what the chips of a pool can do"),
    "recommend": ("rightpool.cli.recommend", "what should be moved where, the most dollars first"),
    "approve": ("rightpool.cli.approve", "have a recommendation carried out"),
    "trace": ("rightpool.cli.trace", "what the time of a step goes to, operation by operation"),
    "history": ("rightpool.cli.history", "what was moved, what it promised and what it delivered"),
    "report": ("rightpool.cli.report", "what namespaces, teams, jobs or pools have spent and saved"),
    "ui": ("rightpool.cli.ui.command", "the fleet and its jobs as a page in the browser"),
    "completion": ("rightpool.cli.completion", "a script that has a shell complete these commands"),
    "top": ("rightpool.cli.top", "the fleet: what runs where, what limits it, what it costs"),
}

# Of what is read of a fleet next to nothing is garbage in circles. With Python's own thresholds, looking for it takes a
# fifth of `top` at 1,000 jobs, and a third of a first plan of 10,000.
_THRESHOLDS: Final = (50_000, 20, 100)
_INTERRUPTED: Final = 130


class Command(Protocol):
    """The interface of a command's module."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status: 0 success, 1 error, 2 wrong arguments, 130 interrupted."""
    gc.set_threshold(*_THRESHOLDS)
    tokens = list(sys.argv[1:] if argv is None else argv)
    chosen = next((token for token in tokens if token in COMMANDS), None)
    try:
        arguments = command_parser([] if chosen is None else [chosen]).parse_args(tokens)
        status = _load(arguments.command).run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        if not _unread():
            raise  # of a connection, and no command may hide that
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def program() -> NoReturn:
    """Run a command as this process, and end with its exit status."""
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt of what Python does at its end prints no traceback
    if status == _INTERRUPTED:
        # Where KeyboardInterrupt has passed through `exec` of a text, by which dataclasses are made, `python -m` ends
        # itself by SIGINT whatever the exit status, although the exception was caught.
        os._exit(status)
    sys.exit(status)


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


if __name__ == "__main__":
    program()
