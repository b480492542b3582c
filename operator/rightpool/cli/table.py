"""Tables and paragraphs for a terminal: as wide as it is, in colour where it is one, plain text where it is not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

# Where output is no terminal nothing is cut or wrapped: whoever reads it has a pager, or is a program.
_UNBOUNDED: Final = 100_000
_GAP: Final = 2
_INDENT: Final = 2
NOTHING: Final = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """right: numbers. wraps: may take several lines. drop: left out where the line is too short, the highest first; 0:
    never."""

    title: str
    right: bool = False
    wraps: bool = False
    drop: int = 0


class _Console(Console):
    """One that leaves it to the command what a reader who went away means; the library's own would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Page:
    """What a command prints."""

    def __init__(self, stream: TextIO | None = None, width: int | None = None) -> None:
        """width: of the line; None: the terminal's, and none where it is no terminal."""
        stream = stream or sys.stdout
        self._bounded = width is not None or stream.isatty()
        self._console = _Console(
            file=stream, width=width if self._bounded else _UNBOUNDED, highlight=False, emoji=False, markup=False
        )

    def heading(self, text: str) -> None:
        """A section begins, after an empty line."""
        self.line()
        self.line(text, "bold")

    def line(self, text: str = "", style: str = "") -> None:
        """One paragraph."""
        self._console.print(Text(text, style=style))

    def indented(self, text: str, style: str = "") -> None:
        """A paragraph of a section."""
        self._console.print(Padding(Text(text, style=style), (0, 0, 0, _INDENT), expand=False))

    def pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names and what they are, one below the other."""
        table = self._grid([Column(""), Column("", wraps=True)], header=False)
        for name, text in pairs:
            table.add_row(Text(name, style="dim"), text)
        self._console.print(Padding(table, (0, 0, 0, _INDENT), expand=False))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indented: bool = False) -> None:
        """Rows under their titles, without lines."""
        indent = _INDENT if indented else 0
        kept = self._fitting(columns, rows, self._console.width - indent)
        table = self._grid([columns[index] for index in kept], header=True)
        for row in rows:
            table.add_row(*(row[index] for index in kept))
        self._console.print(Padding(table, (0, 0, 0, indent), expand=False))

    @staticmethod
    def _fitting(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
        """Indexes of the columns that are shown."""
        wide = [
            max(_least(text, column) for text in (column.title, *(row[i] for row in rows)))
            for i, column in enumerate(columns)
        ]
        kept = list(range(len(columns)))
        while sum(wide[index] + _GAP for index in kept) - _GAP > width:
            droppable = [index for index in kept if columns[index].drop]
            if not droppable:
                break
            kept.remove(max(droppable, key=lambda index: columns[index].drop))
        return kept

    def _grid(self, columns: Sequence[Column], *, header: bool) -> Table:
        table = Table(box=None, show_header=header, header_style="dim", pad_edge=False, padding=(0, _GAP, 0, 0))
        for column in columns:
            table.add_column(
                column.title,
                justify="right" if column.right else "left",
                no_wrap=not (column.wraps and self._bounded),
                overflow="fold" if column.wraps else "ellipsis",
            )
        return table


def _least(text: str, column: Column) -> int:
    """Columns of the terminal that a text needs: all of it, or its longest word where it may wrap."""
    return max(map(len, text.split()), default=0) if column.wraps else len(text)


def print_json(document: Any, stream: TextIO | None = None) -> None:
    """For programs: keys in the documented order, numbers as numbers, what is not known as null."""
    stream = stream or sys.stdout
    json.dump(document, stream, indent=2, ensure_ascii=False, allow_nan=False)
    stream.write("\n")
