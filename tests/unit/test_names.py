"""Names and files: a public name of the operator has one meaning, no class or module-level function is defined in two
modules; a name says what a value is; and a file holds one noun, so that it is short."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import rightpool

PACKAGE = Path(rightpool.__file__).parent
ROOT = Path(__file__).parents[2]
FOLDERS = ("operator", "profiler_sidecar", "hack", "tools", "tests", "benchmarks", "charts")
LONGEST = 450  # lines
# They name no thing: a message, a condition, a result, a printed line and an answer are all of them.
SAYS_NOTHING = frozenset({"told", "said", "stands"})
ANY = re.compile("|".join(SAYS_NOTHING), re.IGNORECASE)

# Every module with a command line, or of one command of it, has these.
ENTRY_POINTS = frozenset({"add_arguments", "document", "main", "run"})


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def definitions() -> dict[str, list[str]]:
    """Modules by the public names that they define."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in parsed(path).body:
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if named and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(PACKAGE).as_posix())
    return found


def test_no_public_name_is_defined_twice() -> None:
    duplicates = {name: modules for name, modules in definitions().items() if len(set(modules)) > 1}
    assert {name: duplicates[name] for name in duplicates.keys() - ENTRY_POINTS} == {}


def test_definitions_are_found() -> None:
    found = definitions()
    assert found["Placement"] == ["api/placement.py"]
    assert len(found) > 100


def sources() -> Iterator[Path]:
    """All Python files of the repository."""
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def says_nothing(path: Path) -> list[str]:
    """Where a file has such a name: alone, in capitals or with an underscore in front."""
    if not ANY.search(path.read_text(encoding="utf-8")):
        return []  # as of most
    return [
        f"{path}:{getattr(node, 'lineno', 1)}: {name}"
        for node in ast.walk(parsed(path))
        for name in (getattr(node, field, None) for field in ("id", "attr", "arg", "name", "asname"))
        if isinstance(name, str) and name.lower().strip("_") in SAYS_NOTHING
    ]


def test_names_say_what_a_value_is() -> None:
    assert [at for path in sources() for at in says_nothing(path)] == []


@pytest.mark.parametrize("line", ["said = 1", "def told(): ...", "class Told: ...", "self._said = {}", "SAID = 1"])
def test_such_names_are_found(tmp_path: Path, line: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(f'"""What is said."""\n{line}  # as told\n', encoding="utf-8")
    (found,) = says_nothing(path)
    assert found.startswith(f"{path}:2: ")


def test_no_file_is_too_long() -> None:
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_bytes().splitlines()) for path in sources()}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST} == {}
    assert len(lengths) > 500
