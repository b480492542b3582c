"""The threat model names existing files and tests for each claim."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from devcluster.recipes import ROOT

TESTS = ROOT / "tests"
TEXT = (ROOT / "docs" / "threat-model.md").read_text()
HEAD = re.compile(r"\| threat \| what (?:stops|bounds) it \| test \|")


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Each row with the last file that was named above it in its table."""
    tables = [part.split("\n\n")[0] for part in HEAD.split(TEXT)[1:]]
    for table in tables:
        last = ""
        for row in table.strip().splitlines()[1:]:
            threat, stopped_by, shown_by = row.strip("| ").split(" | ")
            yield threat, stopped_by, shown_by, last
            last = ([last, *re.findall(r"`([\w/]+\.py)", shown_by)])[-1]


@cache
def functions(file: str) -> frozenset[str]:
    """Tests of a file, those of classes included."""
    nodes = ast.walk(ast.parse(Path(TESTS / file).read_text()))
    return frozenset(n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_test_that_is_named_is_there() -> None:
    named = 0
    for threat, _, shown_by, file in rows():
        for token in re.findall(r"`([^`]*(?:/|\.py|::)[^`]*)`", shown_by):
            path, _, name = token.partition("::")
            file = file if path == "…" else path
            assert (TESTS / file).is_file(), f"{threat}: {token}"
            assert not name or (name.startswith("test_") and name in functions(file)), f"{threat}: {token}"
            named += 1
    assert named > 40


def test_every_threat_has_a_test_or_is_marked_as_not_prevented() -> None:
    threats = list(rows())
    assert len(threats) > 30 and TEXT.count("| threat |") == len(HEAD.findall(TEXT))
    for threat, stopped_by, shown_by, file in threats:
        named = "::test_" in shown_by or ".py`" in shown_by
        as_above = shown_by.startswith("same") and file
        assert named or as_above or (stopped_by.startswith("not stopped") and shown_by == "–"), threat
