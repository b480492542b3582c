"""The picture of the rooms agrees with the code, and the page on architecture names what exists."""

from __future__ import annotations

import re
from pathlib import Path
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


def test_every_file_of_the_table_of_changes_is_in_its_room() -> None:
    """Also those that are named without a folder, as next to what stands before them."""
    table = PAGE.partition("| change | room |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| [^|]+ \| `([\w/]+)/` \| (.+?) \| (.+) \|$", table, flags=re.M)
    assert len(rows) > 15
    for room, write, change in rows:
        folder = next(base / room for base in (OPERATOR, ROOT) if (base / room).is_dir())
        for name in re.findall(r"`([\w.-]+\.(?:py|yaml|json))`", write + change):
            assert list(folder.rglob(name)) or list(OPERATOR.glob(f"**/{name}")), f"{room}: {name}"


@pytest.mark.parametrize("name", ["target", "gate", "allocator", "kind"])
def test_an_invented_one_holds_its_row(name: str) -> None:
    file, test = re.findall(rf"^\| {name} \| `([\w/]+\.py)` \| (.+) \|$", PAGE, flags=re.M)[0]
    module = (ROOT / "tests" / file).read_text(encoding="utf-8")
    held = test.strip("`") if test != "the same" else file
    assert Path(file).stem in (ROOT / "tests" / held).read_text(encoding="utf-8") or held == file
    assert "def test_" in (ROOT / "tests" / held).read_text(encoding="utf-8")
    assert name in module.lower()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", PAGE))))
def test_every_path_of_the_page_exists(name: str) -> None:
    assert any((base / name).exists() for base in (ROOT, OPERATOR, ROOT / "tests")), name
