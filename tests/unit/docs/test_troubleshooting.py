"""The page on troubleshooting has exactly one entry for each condition and reason."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from rightpool.api.conditions import ConditionType, PolicyConditionType, PoolConditionType, Reason
from rightpool.planning.offers.rejection import RejectionReason

from .pages import DOCS, ROOT, headings, marked

PAGE = DOCS / "troubleshooting.md"
CONDITIONS = {str(kind) for kind in (*ConditionType, *PolicyConditionType, *PoolConditionType)}


def test_every_condition_has_a_section() -> None:
    found = {heading.text for heading in headings(PAGE) if heading.level == 2}
    assert found >= CONDITIONS


def test_every_reason_has_one_entry_and_nothing_else_has() -> None:
    long = [h.text for h in headings(PAGE) if h.level == 3 and h.parent in CONDITIONS]
    entries = Counter([*long, *(name for section, _, name in marked(PAGE) if section in CONDITIONS)])
    assert set(entries) == {str(reason) for reason in Reason}
    assert [reason for reason, count in entries.items() if count > 1] == []


def test_every_row_has_the_anchor_of_its_reason_and_says_what_to_do() -> None:
    assert [(anchor, name) for _, anchor, name in marked(PAGE) if anchor != name.lower()] == []
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| <a id=")]
    assert len(rows) == len(marked(PAGE))
    assert [
        row for row in rows if not all(cell.strip() for cell in row.strip("|").split("|")) or row.count("|") != 5
    ] == []


def test_no_entry_is_empty() -> None:
    for entry in re.split(r"^#{2,3} ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        title, _, body = entry.partition("\n")
        assert body.strip(), title


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_given_somewhere(reason: Reason) -> None:
    """Every documented reason is used by the code."""
    assert reason.name in _used()


def _used() -> set[str]:
    if not _USED:
        for path in (ROOT / "operator" / "rightpool").rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason":
                    _USED.add(node.attr)
    return _USED


_USED: set[str] = set()


def test_every_verdict_is_explained() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## Why a candidate was not taken")[2]
    found = re.findall(r"^\| `(\w+)` \|", table, flags=re.M)
    assert Counter(found) == Counter(["Eligible", *(str(reason) for reason in RejectionReason)])
