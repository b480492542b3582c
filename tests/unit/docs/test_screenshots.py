"""Where screenshots belong in the pages, and what the site makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs import hooks

from .pages import WRITTEN

MARKED = {
    found[1]: path.name for path in WRITTEN for found in hooks.SCREENSHOT.finditer(path.read_text(encoding="utf-8"))
}


def test_a_screenshot_is_shown_where_it_was_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hooks, "SCREENSHOTS", tmp_path)
    page = "before\n\n<!-- screenshot fleet: The fleet,\nlarge -->\n\nafter"
    assert hooks.on_page_markdown(page) == "before\n\n\n\nafter"
    (tmp_path / "fleet.png").touch()
    assert hooks.on_page_markdown(page) == "before\n\n![The fleet, large](images/fleet.png)\n\nafter"


def test_every_dashboard_has_its_place() -> None:
    from tools.dashboards import FOLDER

    assert {f"dashboard-{path.stem}" for path in FOLDER.glob("*.json")} <= MARKED.keys()
    assert {"fleet", "job-language-model"} <= MARKED.keys()
