"""What a terminal is shown by a library: styles, and texts that are wrapped or cut to its width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rightpool.cli.table import GAP, Column


class _Console(Console):
    """Raises BrokenPipeError for the command to handle; the library's own console exits with status 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Terminal:
    """A terminal, or a stream that is taken for one."""

    def __init__(self, stream: TextIO, width: int | None) -> None:
        """`width` is that of a line; None for the terminal's."""
        self._console = _Console(file=stream, width=width, highlight=False, emoji=False, markup=False)

    @property
    def width(self) -> int:
        """Of a line, in cells."""
        return self._console.width

    def paragraph(self, text: str, style: str = "", indent: int = 0) -> None:
        """Print a text, wrapped."""
        self._console.print(Padding(Text(text, style=style), (0, 0, 0, indent), expand=False))

    def grid(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: int, *, header: bool) -> None:
        """Print rows whose texts are wrapped, or cut, to fit. Without a header, the first column is one of names."""
        table = Table(box=None, show_header=header, header_style="dim", pad_edge=False, padding=(0, GAP, 0, 0))
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
