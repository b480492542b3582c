"""Text is made last: in the rooms that decide, reasons alone have words, and nothing that decides asks for them. Moves
ask, since a status keeps why one went as it did. What the rooms raise is for programmers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rightpool

PACKAGE = Path(rightpool.__file__).parent
WORDS = 3  # a text with fewer is a key, a unit or a name


def sentences(source: str) -> list[str]:
    """String literals of several words, but for docstrings and what is raised or asserted."""
    tree = ast.parse(source)
    aside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            aside.add(node.value)
        elif isinstance(node, ast.Raise | ast.Assert):
            aside.update(ast.walk(node))
    literals = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in aside)
    return [node.value for node in literals if isinstance(node.value, str) and len(node.value.split()) >= WORDS]


def has_words(source: str) -> bool:
    """Whether it defines reasons, or parts of them, that say themselves."""
    return any(isinstance(node, ast.FunctionDef) and node.name == "text" for node in ast.walk(ast.parse(source)))


def asks_for_words(source: str) -> bool:
    """Whether it calls a `text` of something."""
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Attribute) and called.attr == "text" for called in calls)


@pytest.mark.parametrize("room", ["profiles", "prediction", "planning"])
def test_no_sentence_is_made_where_decisions_are(room: str) -> None:
    paths = sorted((PACKAGE / room).rglob("*.py"))
    assert len(paths) > 10
    sources = {path: path.read_text(encoding="utf-8") for path in paths if not path.stem.endswith("_texts")}
    decide = {str(path.relative_to(PACKAGE)): source for path, source in sources.items() if not has_words(source)}
    assert len(decide) > len(sources) / 2
    assert {path: found for path, source in decide.items() if (found := sentences(source))} == {}
    asking = {path for path, source in decide.items() if asks_for_words(source)}
    assert {path for path in asking if not path.startswith("planning/moves/")} == set()


@pytest.mark.parametrize("source", ['why = "there is no room"', 'why = f"pool {pool} is not there"', '["a b c"]'])
def test_sentences_are_found(source: str) -> None:
    assert len(sentences(source)) == 1


@pytest.mark.parametrize(
    "source", ['"""What it is."""', 'raise ValueError(f"{x} can not be read")', 'KEY = "two words"']
)
def test_others_are_not(source: str) -> None:
    assert sentences(source) == []
