"""How numbers and placements are written in messages: few digits, with their unit."""

from collections.abc import Collection
from difflib import get_close_matches
from math import floor
from typing import Final

from rightpool.api.placement import CapacityType, Placement
from rightpool.api.units import DAY, HOUR, write_unix_time

MESSAGE: Final = 160
"""Characters of a condition's message, and of an Event's: a line that is read at once."""

_PREFIXES: Final = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: float) -> str:
    """Three significant digits below 100, whole above: 0.217, 8.05, 1180."""
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:.3g}"


def prefixed(value: float) -> str:
    """Three digits and a prefix before a unit, such as `312 T`; without a prefix below a thousand, such as `0.1 `."""
    for size, prefix in _PREFIXES:
        if value >= size * 0.9995:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


def dollars(value: float) -> str:
    """Cents from one dollar on, three significant digits below: $8.05, $0.00123, -$0.5."""
    sign, amount = "-" if value < 0.0 else "", abs(value)
    return f"{sign}${amount:.2f}" if amount >= 1.0 else f"{sign}${amount:.3g}"


def cents(value: float) -> str:
    """What adds up, to the cent: $0.00, -$12.30."""
    return dollars(value) if abs(value) >= 1.0 else f"{'-' if value <= -0.005 else ''}${abs(value):.2f}"


def share(value: float) -> str:
    """A whole percentage; below 10% one decimal where it says something: 36%, 4.5%, 0%."""
    percent = value * 100.0
    if abs(percent) >= 9.95 or abs(percent - round(percent)) < 0.05:
        return f"{percent:.0f}%"
    return f"{percent:.1f}%"


def percent(ratio: float) -> str:
    """A whole percentage: what is measured of shares is not known better."""
    return f"{100.0 * ratio:.0f}%"


def gibibytes(value: float) -> str:
    """Memory: 13.2 GiB."""
    return f"{value / 2**30:.1f} GiB"


def memory_size(value: float) -> str:
    """Memory that may be little: 13.2 GiB, 512 MiB, 0.8 MiB."""
    mebibytes = value / 2**20
    return gibibytes(value) if mebibytes >= 1023.5 else f"{mebibytes:.{0 if mebibytes >= 9.95 else 1}f} MiB"


def span(seconds: float) -> str:
    """A duration in its largest sensible unit: 45 s, 12 min, 3.5 h, 2.1 days."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    if seconds < 5400.0:
        return f"{seconds / 60.0:.0f} min"
    if seconds < 2.0 * DAY:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:.1f} days"


def moment(seconds: float) -> str:
    """How long a request takes: 7.5 ms, 1.2 s."""
    return f"{number(seconds * 1000.0)} ms" if seconds < 1.0 else f"{number(seconds)} s"


def instant(seconds: float) -> str:
    """A time, of Unix seconds, for what is stored and read later: 2026-11-21T12:00:00Z."""
    return write_unix_time(floor(seconds))


def how_many(count: float, noun: str) -> str:
    """A whole number of something: 1 move, 3 moves."""
    return f"{count:.0f} {noun}{'' if count == 1 else 's'}"


def chips(count: int) -> str:
    """1 chip, 8 chips."""
    return how_many(count, "chip")


def brief(words: str, most: int = MESSAGE) -> str:
    """The words of others, such as Kubernetes', in one line of at most so many characters."""
    line = " ".join(words.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def both_ends(words: str, most: int) -> str:
    """At most so many characters of a long line that programs write: a kind of error is named at its beginning, and
    what it is about at its end."""
    begin = most // 4
    return words if len(words) <= most else f"{words[:begin]}…{words[begin + 1 - most :]}"


def sentence(*clauses: str, remedy: str = "") -> str:
    """A message: clauses in the order what, by how much and why, as many as fit, and the remedy in any case.

    What is left out is in `rightpool explain`. A clause within a text ends at a semicolon.
    """
    first, *others = "; ".join(filter(None, clauses)).split("; ")
    end = f": {remedy}" if remedy else ""
    text = brief(first, max(0, MESSAGE - len(end)))
    for clause in others:
        if len(text) + len(clause) + len(end) + 2 > MESSAGE:
            break
        text += f"; {clause}"
    return text + end


def meant(name: str, known: Collection[str]) -> str:
    """What may have been meant by a name that is not among those that are known; empty where none is near."""
    near = get_close_matches(name, known)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def pool_of(placement: Placement) -> str:
    """a10g (spot)."""
    return f"{placement.pool} (spot)" if placement.capacity is CapacityType.SPOT else placement.pool


def place(placement: Placement) -> str:
    """8 chips of a10g (spot)."""
    return f"{chips(placement.chips)} of {pool_of(placement)}"


def short_place(placement: Placement) -> str:
    """8×a10g (spot), for columns."""
    return f"{placement.chips}×{pool_of(placement)}"
