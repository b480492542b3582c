"""Tables: what is laid out here looks as the library lays it out."""

from __future__ import annotations

import io
import string

from hypothesis import given
from hypothesis import strategies as st

from rightpool.cli.table import Column, Page, Terminal

COLUMNS = (Column("NAME"), Column("CHIPS", right=True), Column("WHY", wraps=True))
CELLS = st.text(string.ascii_letters + string.digits + "-×√ü日本", max_size=12)


def page(columns: tuple[Column, ...], rows: list[list[str]], width: int | None = None) -> list[str]:
    stream = io.StringIO()
    Page(stream, width).table(columns, rows, indented=True)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


@given(st.lists(st.tuples(CELLS, CELLS, CELLS).map(list), max_size=6))
def test_it_looks_as_the_library_would_have_it(rows: list[list[str]]) -> None:
    stream = io.StringIO()
    Terminal(stream, 200).grid(COLUMNS, rows, 2, header=True)
    theirs = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert page(COLUMNS, rows) == page(COLUMNS, rows, 200) == theirs


def test_columns_are_left_out_where_a_terminal_is_narrow_and_texts_wrap() -> None:
    columns = (*COLUMNS[:2], Column("RATE", right=True, drop=1), COLUMNS[2])
    rows = [["bert", "4", "1000000000", "there is no room"]]
    assert page(columns, rows, 30) == [
        "  NAME  CHIPS  WHY",
        "  bert      4  there is no",
        "               room",
    ]
    assert "RATE" in page(columns, rows)[0] and len(page(columns, rows)) == 2


def test_a_text_of_several_lines_stays_in_its_column() -> None:
    rows = [["bert", "4", "Traceback\nKeyError"], ["t5", "8", "fine"]]
    assert page(COLUMNS, rows) == [
        "  NAME  CHIPS  WHY",
        "  bert      4  Traceback",
        "               KeyError",
        "  t5        8  fine",
    ]
