"""Documentation of fields: the text under each, as `kubectl explain` shows it.

Only definitions and references need it. Pydantic would read the sources whenever a program starts, which takes a third
of the time that a command needs.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, get_type_hints

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from rightpool.api.record import wire_name


class DocumentedSchema(GenerateJsonSchema):
    """The JSON schema with the text under each field as its description, whatever its type is described as."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Of an ApiModel."""
        return _documented(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Of a Record."""
        return _documented(super().dataclass_schema(schema), schema["cls"])


def _documented(document: JsonSchemaValue, kind: type[Any]) -> JsonSchemaValue:
    hints = get_type_hints(kind, include_extras=True)
    texts = {wire_name(name, hints[name]): text for name, text in attribute_docstrings(kind).items()}
    properties: dict[str, JsonSchemaValue] = document.get("properties", {})
    for name in properties.keys() & texts.keys():
        properties[name]["description"] = texts[name]
    return document


def attribute_docstrings(kind: type[Any]) -> dict[str, str]:
    """The text under each annotated field of a class and its bases; fields without one are left out."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.partition(".")[0] == __name__.partition(".")[0]:
            found |= _of_module(inspect.getmodule(each)).get(each.__qualname__, {})
    return found


@cache
def _of_module(module: Any) -> Mapping[str, Mapping[str, str]]:
    """By qualified name of the class."""
    return dict(_classes(ast.parse(inspect.getsource(module)).body, ""))


def _classes(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, dict(_fields(node.body))
            yield from _classes(node.body, f"{prefix}{node.name}.")


def _fields(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            yield field.target.id, inspect.cleandoc(below.value.value)
