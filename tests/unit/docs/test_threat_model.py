"""The threat model names what shows each claim: files and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

from devcluster.recipes import ROOT

TESTS = ROOT / "tests"
TEXT = (ROOT / "docs" / "threat-model.md").read_text()
FUNCTIONS = {
    name
    for path in TESTS.rglob("test_*.py")
    for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
}


def test_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"::(test_\w+)`", TEXT)
    assert len(named) > 15
    assert [name for name in named if name not in FUNCTIONS] == []


def test_every_file_that_is_named_is_there() -> None:
    named = set(re.findall(r"`((?:unit|integration|fuzz|e2e)/[^`:]*)", TEXT))
    assert len(named) > 8
    assert [name for name in sorted(named) if not (TESTS / name).exists()] == []


def test_a_named_file_holds_the_named_test() -> None:
    for file, name in re.findall(r"`((?:unit|integration|fuzz|e2e)/[^`:]*\.py)::(test_\w+)`", TEXT):
        assert f"def {name}(" in Path(TESTS / file).read_text(), f"{file}::{name}"


def test_every_threat_has_a_test_or_says_that_it_is_not_stopped() -> None:
    tables = TEXT[TEXT.index("| threat |") :]
    rows = [row.strip("| ").split(" | ") for row in tables.splitlines() if row.startswith("| ")]
    threats = [row for row in rows if row[0] != "threat"]
    assert len(threats) > 25
    for threat, stopped_by, shown_by in threats:
        assert "`" in shown_by or shown_by.startswith("same") or stopped_by.startswith("not stopped"), threat
