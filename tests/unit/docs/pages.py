"""The written pages: their headings, links and blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
WRITTEN = sorted([*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md")])
"""The pages of the navigation that people write."""

_FENCE = re.compile(r"^```")


@dataclass(frozen=True)
class Heading:
    """level: number of #. parent: the nearest heading of level 2 above."""

    level: int
    text: str
    parent: str | None


def headings(path: Path) -> Iterator[Heading]:
    """Those outside blocks of code, in order."""
    fenced, parent = False, None
    for line in path.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        match = re.match(r"^(#+) (.+?)\s*(?:\{.*\})?$", line)
        if fenced or match is None:
            continue
        level, text = len(match[1]), match[2]
        yield Heading(level, text, parent if level > 2 else None)
        if level == 2:
            parent = text


def marked(path: Path) -> list[tuple[str, str, str]]:
    """Rows of tables that have an anchor: the heading of level 2 above, the anchor, and the name that it stands for."""
    sections = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.M)[1:]
    rows = re.compile(r'^\| <a id="([\w-]+)"></a>`(\w+)` \|', re.M)
    return [(section.partition("\n")[0], *found) for section in sections for found in rows.findall(section)]


def blocks(path: Path, language: str) -> list[str]:
    """The blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def assert_shown(shown: str, printed: str) -> None:
    """A page shows what is printed. A line `…` stands for what is left out."""
    begin, left_out, end = shown.partition("\n…\n")
    assert printed.startswith(begin) and printed.endswith(end.lstrip("\n")) if left_out else printed == shown
