"""A page that is not printed: what a command would print, in sections, for a template to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rightpool.cli.table import Column, Page


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text."""

    text: str
    """One or more sentences, without markup."""
    style: str = ""
    """bold, dim, or empty."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names with texts."""

    pairs: tuple[tuple[str, str], ...]
    """Each name with its text, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts. Each has as many cells as there are columns."""

    columns: tuple[Column, ...]
    """From left to right."""
    rows: tuple[tuple[str, ...], ...]
    """From top to bottom."""


@dataclass(slots=True)
class Section:
    """What stands under one heading."""

    title: str
    """Empty of the first section alone."""
    blocks: list[Paragraph | Pairs | Table] = field(default_factory=list)
    """In the order in which they are shown."""


class Sheet(Page):
    """Takes what a Page takes, and keeps it."""

    def __init__(self) -> None:
        self.sections = [Section("")]

    def heading(self, text: str) -> None:
        """Begin a section."""
        self.sections.append(Section(text))

    def line(self, text: str = "", style: str = "") -> None:
        """Add a paragraph; an empty line is none."""
        if text:
            self._add(Paragraph(text, style))

    def indented(self, text: str, style: str = "") -> None:
        """Add a paragraph."""
        self.line(text, style)

    def pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add names with texts."""
        self._add(Pairs(tuple(pairs)))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indented: bool = False) -> None:
        """Add a table."""
        self._add(Table(tuple(columns), tuple(tuple(row) for row in rows)))

    def _add(self, block: Paragraph | Pairs | Table) -> None:
        self.sections[-1].blocks.append(block)
