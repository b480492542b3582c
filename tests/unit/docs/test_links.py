"""Links between the pages of a plain checkout: every file and every section is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .pages import ROOT, headings, marked

PAGES = sorted(
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    if name
)


def _kept() -> set[Path]:
    """Files and folders of a clean checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = {ROOT / name for name in listed.stdout.split("\0") if name}
    return files | {parent for file in files for parent in file.parents}


KEPT = _kept()


def _links(path: Path) -> list[str]:
    """Relative links outside blocks of code."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    found: list[str] = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def _anchor(text: str) -> str:
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _anchors(path: Path) -> set[str]:
    """What a link may lead to on a page."""
    return {_anchor(h.text) for h in headings(path)} | {anchor for _, anchor, _ in marked(path)}


def broken(path: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    wrong = []
    for link in _links(path):
        file, _, section = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        anchors = _anchors(target) if section and target.suffix == ".md" else {section}
        if target not in KEPT or section not in anchors:
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    assert broken(path) == []


def test_there_are_links_to_check() -> None:
    assert sum(len(_links(path)) for path in PAGES) > 60


def test_the_site_links_to_its_references() -> None:
    from tools.docs.hooks import REFERENCES

    assert all((ROOT / source) in KEPT for source in REFERENCES)
    linked = {link.replace("../", "") for page in (ROOT / "docs").rglob("*.md") for link in _links(page)}
    assert REFERENCES.keys() <= linked
