"""`--watch`: a command that shows what it found again and again, until it is interrupted."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Final

from rightpool.cli.connection import Connection
from rightpool.cli.number_range import seconds

WATCH_SECONDS: Final = 10.0  # a cycle of the operator
_CLEAR: Final = "\x1b[H\x1b[2J"


def add_watch_argument(parser: argparse.ArgumentParser) -> None:
    """The option `--watch`."""
    parser.add_argument(
        "-w",
        "--watch",
        nargs="?",
        type=seconds(1.0, 3600.0),
        const=WATCH_SECONDS,
        metavar="SECONDS",
        help=f"show it every SECONDS, until ctrl-C; default: {WATCH_SECONDS:.0f}",
    )


def repeated(
    look: Callable[[Connection], None], interval: float | None, pause: Callable[[float], None] = time.sleep
) -> Callable[[Connection], None]:
    """`look` as it is, or again every `interval` seconds, on a cleared terminal."""

    def again(connection: Connection) -> None:
        while True:
            if sys.stdout.isatty():
                print(_CLEAR, end="")
            look(connection)
            sys.stdout.flush()
            assert interval is not None
            pause(interval)

    return look if interval is None else again
