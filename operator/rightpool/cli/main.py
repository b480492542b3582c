"""`rightpool`, and `kubectl rightpool`: one word for what is to be done, and its options.

A command is a module of this package with `add_arguments(parser)` and `run(arguments) -> int`. It is imported only
when it is named, so that `rightpool pools` does not load what the operator needs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Final, Protocol, cast

# Name of the command → its module and what `rightpool --help` says of it.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "operator": ("rightpool.cli.operator", "run the operator"),
    "explain": ("rightpool.cli.explain", "why a job is where it is, and every place it could be"),
    "pools": ("rightpool.cli.pools", "the pools, with chips, prices and what is free"),
    "top": ("rightpool.cli.top", "the fleet: what runs where, what limits it, what it costs"),
}


class Command(Protocol):
    """What a command's module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0 done, 1 it could not be done, 2 it was asked for in a wrong way."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="rightpool", description="Puts every ML job on the accelerators that suit it."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    named = next((word for word in words if word in COMMANDS), None)
    for name, (_, told) in COMMANDS.items():
        subparser = commands.add_parser(name, help=told, description=told.capitalize() + ".")
        if name == named:
            _load(name).add_arguments(subparser)
    arguments = parser.parse_args(words)
    try:
        return _load(arguments.command).run(arguments)
    except KeyboardInterrupt:
        return 130


def _load(name: str) -> Command:
    return cast(Command, importlib.import_module(COMMANDS[name][0]))


if __name__ == "__main__":
    sys.exit(main())
