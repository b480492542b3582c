"""Files of users, in JSON or YAML: what is wrong with one is told by its line and field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from rightpool.cli.connection import WrongInput

T = TypeVar("T")


class FileProblem(WrongInput):
    """A file can't be used; the message names it, and the line where that is known."""


def read_typed(path: Path, kind: type[T], what: str) -> T:
    """What the file says. what: the file should be, for messages, such as `file of costs`. Raises FileProblem."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileProblem(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileProblem(f"{path} is no {what}: it is no text") from error
    try:
        body = _body(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise FileProblem(f"{path}{line} is no {what}: {getattr(error, 'problem', None) or error}") from error
    try:
        return TypeAdapter(kind).validate_json(json.dumps({} if body is None else body, default=str))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        why = first["msg"].removeprefix("Value error, ")
        number = _line(yaml.compose(text, Loader=yaml.SafeLoader), first["loc"])
        raise FileProblem(f"{path}, line {number}, is no {what}: {f'{place}: ' if place else ''}{why}") from error


def _body(text: str) -> Any:
    """As JSON where it is some, which is a hundred times faster than to read it as YAML."""
    try:
        return json.loads(text)
    except ValueError:
        return yaml.safe_load(text)


def _line(node: Any, place: Sequence[int | str]) -> int:
    """Of the field, or of what should have it."""
    line: int = 1 if node is None else node.start_mark.line + 1
    for part in place:
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == str(part)), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line
