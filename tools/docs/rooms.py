"""The picture of docs/architecture.md: rooms in their layers, what each may import, and what it does import.

Layers come from the contract of import-linter in pyproject.toml, imports from the code, texts from the docstrings of
the packages.
"""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = "rightpool"
SIDECAR: Final = "rightpool_profiler"
SOURCES: Final = {PACKAGE: ROOT / "operator" / PACKAGE, SIDECAR: ROOT / "profiler_sidecar" / SIDECAR}

_WIDTH: Final = 960
_TOP: Final = 112  # of the first layer: the column heads stand above it
_ROW: Final = 46
_COLUMN: Final = 28
_TEXT_CHARACTERS: Final = 62
_STYLE: Final = """
    .paper { fill: #ffffff; stroke: #d0d7de; }
    .room { fill: #eef4fb; stroke: #4a7ebb; stroke-width: 1.2; }
    .name { fill: #1f2328; font-size: 15px; font-weight: 600; }
    .text { fill: #424a53; font-size: 12px; }
    .head { fill: #1f2328; font-size: 12px; }
    .grid { stroke: #d0d7de; }
    .used { fill: #4a7ebb; stroke: #4a7ebb; }
    .allowed { fill: none; stroke: #8c959f; }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #161b22; stroke: #30363d; }
      .room { fill: #1c2a3d; stroke: #6ea3dd; }
      .name, .head { fill: #f0f3f6; }
      .text { fill: #c2c9d1; }
      .grid { stroke: #30363d; }
      .used { fill: #6ea3dd; stroke: #6ea3dd; }
      .allowed { stroke: #8b949e; }
    }
"""


@dataclass(frozen=True)
class Room:
    """A package of the operator, or the package of the sidecar."""

    name: str
    purpose: str
    """First sentence of its docstring."""
    allowed: frozenset[str]
    """Rooms that it may import."""
    imports: frozenset[str]
    """Rooms that it does import."""


def layers() -> list[list[str]]:
    """Names of rooms by layer, the highest layer first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (contract,) = (c for c in contracts if c["type"] == "layers" and c["containers"] == [PACKAGE])
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def rooms() -> list[Room]:
    """Every room, the highest layer first, and the sidecar last."""
    imports = _imports()
    above: list[Room] = []
    remaining = layers()
    while remaining:
        layer, *remaining = remaining
        lower = frozenset(name for names in remaining for name in names)
        above += [Room(name, _purpose(name), lower, imports.get(name, frozenset()) & lower) for name in layer]
    allowed = frozenset({"contract"})
    return [*above, Room(SIDECAR, _purpose(SIDECAR), allowed, imports.get(SIDECAR, frozenset()) & allowed)]


def svg() -> str:
    """The picture."""
    listed = rooms()
    columns = [room.name for room in listed[1:-1]]
    left = _WIDTH - 24 - _COLUMN * len(columns)
    height = _TOP + _ROW * len(listed) + 56
    body = [*_heads(columns, left), *(line for row in enumerate(listed) for line in _row(*row, columns, left))]
    legend = height - 26
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
            'aria-labelledby="title desc" font-family="system-ui, -apple-system, \'Segoe UI\', Roboto, sans-serif">',
            '<title id="title">Rooms of Rightpool and their imports</title>',
            f'<desc id="desc">{escape(_description(listed))}</desc>',
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" x="1" y="1" width="{_WIDTH - 2}" height="{height - 2}" rx="10"/>',
            *body,
            f'<circle class="used" cx="36" cy="{legend - 4}" r="6"/>',
            f'<text class="text" x="50" y="{legend}">imports</text>',
            f'<circle class="allowed" cx="130" cy="{legend - 4}" r="4"/>',
            f'<text class="text" x="144" y="{legend}">may import and does not; no circle: must not import</text>',
            "</svg>\n",
        )
    )


def _heads(columns: list[str], left: int) -> Iterator[str]:
    for number, name in enumerate(columns):
        x = left + _COLUMN * number + _COLUMN // 2 + 4
        yield f'<text class="head" transform="translate({x} {_TOP - 10}) rotate(-60)">{name}</text>'


def _row(number: int, room: Room, columns: list[str], left: int) -> Iterator[str]:
    y = _TOP + _ROW * number
    yield f'<path class="grid" d="M24 {y + _ROW - 3}H{_WIDTH - 24}"/>'
    yield f'<rect class="room" x="24" y="{y}" width="164" height="{_ROW - 6}" rx="6"/>'
    yield f'<text class="name" x="106" y="{y + 25}" text-anchor="middle">{room.name}</text>'
    lines = textwrap.wrap(room.purpose, _TEXT_CHARACTERS, max_lines=2, placeholder=" …")
    for line, words in enumerate(lines):
        yield f'<text class="text" x="200" y="{y + (16 if len(lines) > 1 else 24) + 15 * line}">{escape(words)}</text>'
    for position, name in enumerate(columns):
        if name in room.allowed:
            kind, radius = ("used", 6) if name in room.imports else ("allowed", 4)
            x = left + _COLUMN * position + _COLUMN // 2
            yield f'<circle class="{kind}" cx="{x}" cy="{y + 20}" r="{radius}"/>'


def _description(listed: list[Room]) -> str:
    return " ".join(f"{room.name} imports {', '.join(sorted(room.imports)) or 'nothing'}." for room in listed)


def _imports() -> dict[str, frozenset[str]]:
    graph = grimp.build_graph(PACKAGE, SIDECAR, cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            found.setdefault(_room_of(module), set()).add(_room_of(imported))
    return {name: frozenset(others - {name}) for name, others in found.items()}


def _room_of(module: str) -> str:
    root, *inner = module.split(".")
    return inner[0] if root == PACKAGE and inner else root


def _purpose(name: str) -> str:
    folder = SOURCES.get(name, SOURCES[PACKAGE] / name)
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    documented = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=\.)\s", documented, maxsplit=1)[0]
