"""Every public field of a record has its documentation under it: what it is of, in which unit, when it is None."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rightpool

ROOT = Path(__file__).parents[2]
FOLDERS = (Path(rightpool.__file__).parent, ROOT / "profiler_sidecar")
FILLING = frozenset({"a", "an", "the", "of", "its", "their", "this", "is", "s"})


def name_of(node: ast.expr) -> str:
    """The last name of a decorator or base class, called or not."""
    node = node.func if isinstance(node, ast.Call) else node
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_record(node: ast.ClassDef) -> bool:
    """Whether it is a dataclass or a named tuple, and public."""
    names = map(name_of, [*node.decorator_list, *node.bases])
    made = not {"dataclass", "value_object", "NamedTuple"}.isdisjoint(names)
    return made and not node.name.startswith("_")


def fields(source: str) -> Iterator[tuple[str, int, str | None]]:
    """Class and field, line, and documentation of the public fields of all records; None without documentation."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef) or not is_record(node):
            continue
        for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                continue
            if statement.target.id.startswith("_") or name_of(statement.annotation) == "ClassVar":
                continue
            value = following.value if isinstance(following, ast.Expr) else None
            text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
            yield f"{node.name}.{statement.target.id}", statement.lineno, text


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def says_nothing(field: str, text: str | None) -> bool:
    """Whether the documentation is missing, or has no word that the name has not."""
    return text is None or set(words(text)) <= FILLING.union(words(field.rpartition(".")[2]))


def test_every_public_field_is_documented() -> None:
    paths = [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))]
    found = {path: list(fields(path.read_text(encoding="utf-8"))) for path in paths}
    lacking = [(path, one) for path, all_of in found.items() for one in all_of if says_nothing(one[0], one[2])]
    assert [f"{path}:{at}: {name}: {text}" for path, (name, at, text) in lacking] == []
    assert sum(map(len, found.values())) > 1000


@pytest.mark.parametrize(
    ("body", "lacks"),
    [
        ("    chips: int\n", True),
        ("    chips: int  # of the job\n", True),
        ('    chips: int\n    """The chips."""\n', True),
        ('    chips: int\n    """Of the job, all pods together."""\n', False),
        ("    _chips: int\n", None),
        ("    chips: ClassVar[int]\n", None),
    ],
)
@pytest.mark.parametrize(
    "head", ["@dataclass(frozen=True)\nclass Size:\n", "@value_object\nclass Size:\n", "class Size(NamedTuple):\n"]
)
def test_what_lacks_documentation_is_found(head: str, body: str, lacks: bool | None) -> None:
    found = [says_nothing(name, text) for name, _, text in fields(head + body)]
    assert found == ([] if lacks is None else [lacks])
    assert list(fields(f"class Size:\n{body}")) == []
