"""The picture of the rooms agrees with the code, and the page on architecture names what exists."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tools.docs import rooms

from .pages import DOCS, ROOT

OPERATOR = ROOT / "operator" / "rightpool"
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


def test_every_package_is_in_a_layer() -> None:
    packages = {path.parent.name for path in OPERATOR.glob("*/__init__.py")}
    assert packages <= {name for layer in rooms.layers() for name in layer}


def test_imports_are_those_of_the_code() -> None:
    found = {room.name: room for room in rooms.rooms()}
    assert {"cluster", "planning", "contract"} <= found["runtime"].imports
    assert found["contract"].imports == frozenset()
    assert found["rightpool_profiler"].imports == {"contract"}
    assert all(room.imports <= room.allowed for room in found.values())
    assert "runtime" not in found["planning"].allowed


def test_the_picture_shows_every_room_and_every_import() -> None:
    picture = ElementTree.fromstring(rooms.svg())
    listed = rooms.rooms()
    texts = {text.text for text in picture.iter(f"{SVG}text")}
    assert {room.name for room in listed} <= texts
    circles = [circle.get("class") for circle in picture.iter(f"{SVG}circle")]
    assert circles.count("used") == sum(len(room.imports) for room in listed) + 1  # one in the legend
    assert len(circles) == sum(len(room.allowed) for room in listed) + 2


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", PAGE))))
def test_every_path_of_the_page_exists(name: str) -> None:
    assert any((base / name).exists() for base in (ROOT, OPERATOR, ROOT / "tests")), name
