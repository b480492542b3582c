"""What the corpus consists of: programs, what each of them is like, and where it needs more than the framework."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROGRAMS: Final = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Recipe:
    """One program.

    name: its file in programs/. like: the public program of which it has the shape. modules: imported before it runs.
    quick: part of the fast suite.
    """

    name: str
    like: str
    modules: str
    quick: bool = False

    @property
    def path(self) -> Path:
        return PROGRAMS / f"{self.name}.py"


def read() -> tuple[Recipe, ...]:
    """All recipes: the first line of a program says what it is like, and its second line what it imports."""
    found = []
    for path in sorted(PROGRAMS.glob("[a-z]*.py")):
        like, modules, *_ = path.read_text().splitlines()
        words = modules.removeprefix("#").split()
        found.append(Recipe(path.stem, like.removeprefix("#").strip(), words[0], "quick" in words[1:]))
    return tuple(found)
