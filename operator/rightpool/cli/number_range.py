"""The numbers that an option takes: of any other value argparse says the option and the range."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def whole_number(first: int, last: int) -> Callable[[str], int]:
    """Reads a whole number of the option's value. Both ends are included."""

    def read(text: str) -> int:
        # No more digits than any range has: Python does not convert thousands of them.
        if not (text.isascii() and text.isdecimal() and len(text) < 19 and first <= int(text) <= last):
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {first} to {last}")
        return int(text)

    return read


def seconds(first: float, last: float) -> Callable[[str], float]:
    """Reads seconds of the option's value. Both ends are included."""
    return _number(first, last, "number of seconds")


def per_second(first: float, last: float) -> Callable[[str], float]:
    """Reads how often a second something comes. Both ends are included."""
    return _number(first, last, "number a second")


def _number(first: float, last: float, what: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = float("nan")
        if not first <= found <= last:
            raise argparse.ArgumentTypeError(f"{text} is not a {what} from {first:g} to {last:g}")
        return found

    return read
