"""From pydantic's JSON schema to the structural OpenAPI schema of a CRD.

Structural means: no references, one type for each node, and nothing that the API server does not know. A keyword that
this module does not know is an error here, so that no bound is lost on the way without being noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from rightpool.api.docstrings import DocumentedSchema
from rightpool.api.record import INLINE_KEYWORD, PACKED_KEYWORD

Schema = dict[str, Any]

_RULES: Final = "x-kubernetes-validations"
# Keywords that are taken as they are, in the order in which they are written.
_COPIED: Final = (
    "description",
    "type",
    "format",
    "enum",
    "default",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    _RULES,
)
_ORDER: Final = (*_COPIED, "items", "additionalProperties", "anyOf", "properties")
_INT32_MAX: Final = 2**31 - 1


class UnstructuralSchemaError(Exception):
    """A model cannot be expressed as a CRD."""


def structural_schema(model: type[Any], *, defaults: bool) -> Schema:
    """The structural schema of a model.

    With `defaults` the API server fills in defaults: in a spec, so that users see them, but not in a status, which only
    the operator writes.
    """
    document = TypeAdapter(model).json_schema(
        by_alias=True, mode="validation", ref_template="{model}", schema_generator=DocumentedSchema
    )
    definitions = document.pop("$defs", {})
    return _Converter(definitions, defaults).convert(document, model.__name__)


class _Converter:
    """Walks one document. `path` names the place in errors."""

    def __init__(self, definitions: Mapping[str, Schema], defaults: bool) -> None:
        self._definitions = definitions
        self._defaults = defaults

    def convert(self, node: Schema, path: str) -> Schema:
        node = self._spread(self._flatten(node, path), path)
        result = _copied(node, path)
        if "description" in result:
            result["description"] = _described(" ".join(result["description"].split()), result, self._defaults)
        if result.get("x-kubernetes-int-or-string"):
            result["anyOf"] = node["anyOf"]
        elif "type" not in result:
            raise UnstructuralSchemaError(f"{path} has no type")
        kind = result.get("type")
        if kind == "object":
            self._object(node, result, path)
        elif kind == "array":
            result["items"] = self.convert(node["items"], f"{path}[]")
        elif kind == "integer" and "format" not in result:
            result["format"] = "int32" if 0 < result.get("maximum", 0) <= _INT32_MAX else "int64"
        empty = {keyword for keyword in ("required", _RULES) if not result.get(keyword, True)}
        if not self._defaults or result.get("default") in (None, []):
            empty.add("default")
        return {keyword: result[keyword] for keyword in _ORDER if keyword in result and keyword not in empty}

    def _object(self, node: Schema, result: Schema, path: str) -> None:
        if "minLength" in result:  # pydantic counts the entries of a dict by the keywords of strings
            result["minProperties"] = result.pop("minLength")
        if "maxLength" in result:
            result["maxProperties"] = result.pop("maxLength")
        properties = node.get("properties")
        if properties:  # stored without, where there are none
            result["properties"] = {
                name: self._property(name, value, node, f"{path}.{name}") for name, value in properties.items()
            }
        elif isinstance(node.get("additionalProperties"), dict):
            result["additionalProperties"] = self.convert(node["additionalProperties"], f"{path}.*")
        elif not result.get("x-kubernetes-preserve-unknown-fields"):
            raise UnstructuralSchemaError(f"{path} declares no properties")

    def _property(self, name: str, value: Schema, parent: Schema, path: str) -> Schema:
        """An optional object with defaults has the default {}, because the API server fills in defaults only inside an
        existing object."""
        schema = self.convert(value, path)
        if not schema.get("description"):
            raise UnstructuralSchemaError(f"{path} has no description, so kubectl explain would show nothing")
        inner = schema.get("properties", {}).values()
        optional = name not in parent.get("required", ())
        if (
            self._defaults
            and optional
            and "default" not in schema
            and not schema.get("required")
            and any("default" in property_ for property_ in inner)
            and not _may_be_null(value)
        ):
            schema["default"] = {}
            schema = {keyword: schema[keyword] for keyword in _ORDER if keyword in schema}
        return schema

    def _spread(self, node: Schema, path: str) -> Schema:
        """An object with the properties of its inlined ones in their place, and without those that are packed."""
        properties: Schema = {}
        required = [*node.get("required", ())]
        for name, value in node.get("properties", {}).items():
            if value.get(PACKED_KEYWORD):
                continue
            if not value.get(INLINE_KEYWORD):
                properties[name] = value
                continue
            inlined = self._spread(self._flatten(value, path), path)
            properties |= inlined["properties"]
            if name in required:
                required[required.index(name) : required.index(name) + 1] = inlined.get("required", ())
        if properties == node.get("properties", {}):
            return node
        return node | {"properties": properties, "required": required}

    def _flatten(self, node: Schema, path: str) -> Schema:
        """Resolves references and `X | None`. Keywords of the property override those of the type; rules of both are
        kept."""
        if "x-kubernetes-int-or-string" in node:
            return node
        outer = dict(node)
        if "$ref" in outer:
            inner = self._flatten(self._definitions[outer.pop("$ref")], path)
        elif "anyOf" in outer:
            choices = [choice for choice in outer.pop("anyOf") if choice.get("type") != "null"]
            if len(choices) != 1:
                raise UnstructuralSchemaError(f"{path} may have several types")
            inner = self._flatten(choices[0], path)
        else:
            return node
        merged = {**inner, **outer}
        rules = [*inner.get(_RULES, ()), *outer.get(_RULES, ())]
        if rules:
            merged[_RULES] = rules
        return merged


def _copied(node: Schema, path: str) -> Schema:
    """What of a node stands in a CRD as it is."""
    result: Schema = {}
    for keyword, value in node.items():
        if keyword in ("title", "additionalProperties", "properties", "items", "anyOf"):
            continue
        if keyword not in _COPIED:
            raise UnstructuralSchemaError(f"{path}: {keyword} has no counterpart in a CRD")
        result[keyword] = value
    return result


def _described(description: str, node: Schema, defaults: bool) -> str:
    """With its default, which `kubectl explain` does not show by itself."""
    default = node.get("default")
    if not defaults or default is None or isinstance(default, list | dict) or "efault" in description:
        return description
    shown = str(default).lower() if isinstance(default, bool) else default
    return f"{description} Default: {shown}."


def _may_be_null(node: Schema) -> bool:
    return any(choice.get("type") == "null" for choice in node.get("anyOf", ()))
