"""`rightpool completion SHELL`: prints a script that has the shell complete commands and options.

It asks no cluster.
"""

from __future__ import annotations

import argparse
from typing import Final

_SHELLS: Final = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=_SHELLS, help="the shell to complete in")


def run(arguments: argparse.Namespace) -> int:
    """The exit status is 0."""
    import shtab

    from rightpool.cli.commands import COMMANDS, command_parser

    print(shtab.complete(command_parser(COMMANDS), arguments.shell))
    return 0
