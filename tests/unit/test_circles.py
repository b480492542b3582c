"""No file of the operator imports itself by way of others, also not for types alone."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import rightpool

PACKAGE = Path(rightpool.__file__).parent


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


def imports(path: Path, modules: set[str]) -> set[str]:
    """The operator's modules that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= members & modules or {node.module}
    return found & modules


def circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of them; none where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_files_import_each_other_in_one_direction() -> None:
    paths = {module_of(path): path for path in PACKAGE.rglob("*.py")}
    graph = {name: imports(path, set(paths)) for name, path in paths.items()}
    assert sum(map(len, graph.values())) > 1000
    assert circle(graph) == []


def test_a_circle_would_be_seen() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == {"b", "c"}
