"""Tables and paragraphs: fitted and coloured for a terminal, plain text otherwise.

Rows that need no wrapping are laid out here: the library takes two seconds for a thousand of them, and a tenth of a
second to load, which is only done for a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, TextIO
from unicodedata import combining, east_asian_width

from rightpool.api.value_object import value_object
from rightpool.api.wording import dollars

if TYPE_CHECKING:
    from rich.console import Console

# Output that is not a terminal is read by a pager or a program, so nothing is cut or wrapped.
_UNBOUNDED: Final = 100_000
_GAP: Final = 2
_INDENT: Final = 2
NOTHING: Final = "-"


@value_object
class Column:
    """A column of a table."""

    title: str
    """The heading, in capitals."""
    right: bool = False
    """Whether it is right-aligned, as numbers are."""
    wraps: bool = False
    """Whether a cell may take several lines."""
    drop: int = 0
    """Columns are omitted in a narrow terminal, the highest number first; 0 is never omitted."""


class Terminal:
    """A terminal, or a stream that is taken for one: styles, and texts that are wrapped or cut to its width."""

    def __init__(self, stream: TextIO, width: int | None) -> None:
        """`width` is that of a line; None for the terminal's."""
        self._console = _console(stream, width)

    @property
    def width(self) -> int:
        """Of a line, in cells."""
        return self._console.width

    def paragraph(self, text: str, style: str = "", indent: int = 0) -> None:
        """Print a text, wrapped."""
        from rich.padding import Padding
        from rich.text import Text

        self._console.print(Padding(Text(text, style=style), (0, 0, 0, indent), expand=False))

    def grid(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: int, *, header: bool) -> None:
        """Print rows whose texts are wrapped, or cut, to fit. Without a header, the first column is one of names."""
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=header, header_style="dim", pad_edge=False, padding=(0, _GAP, 0, 0))
        for column in columns:
            table.add_column(
                column.title,
                justify="right" if column.right else "left",
                no_wrap=not column.wraps,
                overflow="fold" if column.wraps else "ellipsis",
            )
        for row in rows:
            first = row[0] if header else Text(row[0], style="dim")
            table.add_row(first, *row[1:])
        self._console.print(Padding(table, (0, 0, 0, indent), expand=False))


def _console(stream: TextIO, width: int | None) -> Console:
    from rich.console import Console

    class Pipe(Console):
        """Raises BrokenPipeError for the command to handle; the library's own console exits with status 1."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Pipe(file=stream, width=width, highlight=False, emoji=False, markup=False)


class Page:
    """The output of a command."""

    def __init__(self, stream: TextIO | None = None, width: int | None = None) -> None:
        """`width` is that of a line; None for the terminal's, unbounded if there is no terminal."""
        self._stream = stream or sys.stdout
        self._bounded = width is not None or self._stream.isatty()
        self._given = width

    @cached_property
    def _terminal(self) -> Terminal:
        return Terminal(self._stream, self._given)

    @property
    def _width(self) -> int:
        return self._terminal.width if self._bounded else _UNBOUNDED

    def heading(self, text: str) -> None:
        """Print an empty line and the title of a section."""
        self.line()
        self.line(text, "bold")

    def line(self, text: str = "", style: str = "") -> None:
        """Print a paragraph."""
        if self._bounded:
            self._terminal.paragraph(text, style)
        else:
            self._write(text)

    def indented(self, text: str, style: str = "") -> None:
        """Print an indented paragraph."""
        if self._bounded:
            self._terminal.paragraph(text, style, _INDENT)
        else:
            self._write("\n".join(f"{' ' * _INDENT}{line}" for line in text.split("\n")))

    def notes(self, texts: Sequence[str]) -> None:
        """Print a section of sentences, where there are any."""
        if texts:
            self.heading("Notes")
        for text in texts:
            self.indented(text)

    def remark(self, text: str | None) -> None:
        """Print a sentence after an empty line; nothing of None."""
        if text is not None:
            self.line()
            self.line(text)

    def pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Print names and texts in two columns."""
        self._print((Column(""), Column("", wraps=True)), [list(pair) for pair in pairs], _INDENT, header=False)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indented: bool = False) -> None:
        """Print a table without borders."""
        indent = _INDENT if indented else 0
        widths = _widths(columns, rows)
        kept = _fitting(columns, widths, self._width - indent)
        self._print([columns[index] for index in kept], [[row[index] for index in kept] for row in rows], indent)

    def _print(
        self, columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: int, *, header: bool = True
    ) -> None:
        titles = [column.title for column in columns]
        rows = [parts for row in rows for parts in zip_longest(*(cell.split("\n") for cell in row), fillvalue="")]
        widths = [max(map(_length, cells)) for cells in zip(titles, *rows, strict=True)]
        if self._bounded and (not header or _total(widths) + indent > self._width):
            self._terminal.grid(columns, rows, indent, header=header)
            return
        if header:
            line = _laid_out(columns, titles, widths, indent)
            if self._bounded:
                self._terminal.paragraph(line, "dim")
            else:
                self._write(line)
        for row in rows:
            self._write(_laid_out(columns, row, widths, indent))

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")


def dollar_cell(value: float | None, unit: str = "") -> str:
    """Dollars as a column shows them, without their sign, which is in its title. unit: what stands behind them."""
    return NOTHING if value is None else dollars(value).replace("$", "") + unit


def _laid_out(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], indent: int) -> str:
    parts = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        space = " " * (width - _length(cell))
        parts.append(space + cell if column.right else cell + space)
    return (" " * indent + (" " * _GAP).join(parts)).rstrip()


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """The width that each column needs at least: that of its longest text, or of its longest word if it may wrap."""
    return [
        max(_least(text, column) for text in (column.title, *(row[i] for row in rows)))
        for i, column in enumerate(columns)
    ]


def _least(text: str, column: Column) -> int:
    return max(map(_length, text.split()), default=0) if column.wraps else _length(text)


def _length(text: str) -> int:
    """Cells of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _fitting(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """Indexes of the columns that fit."""
    kept = list(range(len(columns)))
    while _total([widths[index] for index in kept]) > width:
        droppable = [index for index in kept if columns[index].drop]
        if not droppable:
            break
        kept.remove(max(droppable, key=lambda index: columns[index].drop))
    return kept


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)
