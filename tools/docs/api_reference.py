"""The API reference, from the schemas of the CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rightpool.api.crd import definition
from rightpool.api.resources import RESOURCES, CustomResource
from rightpool.contract import GROUP, VERSION

Schema = Mapping[str, Any]

_RULES: Final = "x-kubernetes-validations"
_HEAD: Final = f"""# API

Group `{GROUP}`, version `{VERSION}`. This page is made from the models that the CustomResourceDefinitions are
made from, so it says what the API server enforces.

- Amounts of money, shares and rates are strings such as `"12.50"`: the API has no floating-point numbers.
- Durations are strings such as `90s`, `5m` or `1h30m`; times are RFC 3339 with a zone.
- What is not known is absent from a status, and never 0.
- *Refused* lists what the API server rejects, with the words that it uses.
"""
# Objects that occur in several places are described at the first one.
_SAME: Final = {"conditions[]": "A condition, as in `metav1.Condition`."}


def page() -> str:
    """The whole document, in Markdown."""
    parts = [_HEAD]
    for resource in RESOURCES:
        parts.append(_kind(resource))
    return "\n".join(parts)


def field_paths(resource: CustomResource) -> set[str]:
    """Every field of the kind, as `spec.elasticity.minChips`; items of a list as `[]`, values of a map as `{}`."""
    return {path for path, _ in _walk(_root(resource))}


def _root(resource: CustomResource) -> Schema:
    schema: Schema = definition(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _walk(schema: Schema, prefix: str = "") -> Iterator[tuple[str, Schema]]:
    """Path and schema of every field below `prefix`, an object before its fields."""
    for name, field in schema.get("properties", {}).items():
        if not prefix and name not in ("spec", "status"):
            continue
        path = f"{prefix}.{name}" if prefix else name
        yield path, field
        inner, suffix = _inner(field)
        yield from _walk(inner, path + suffix)


def _inner(field: Schema) -> tuple[Schema, str]:
    """The schema that holds the fields of a field: its own, its items', or its values'."""
    if isinstance(field.get("items"), Mapping):
        return field["items"], "[]"
    if isinstance(field.get("additionalProperties"), Mapping):
        return field["additionalProperties"], "{}"
    return field, ""


def _kind(resource: CustomResource) -> str:
    scope = "Namespaced" if resource.namespaced else "Cluster-scoped"
    names = ", ".join(f"`{name}`" for name in resource.short_names)
    root = _root(resource)
    lines = [f"## {resource.kind}", "", f"{resource.description} {scope}; short name {names}.", ""]
    lines += ["Refused:", "", *_refusals(root.get(_RULES, ()), "metadata.name")]
    lines += ["| column of `kubectl get` | what it shows |", "|---|---|"]
    for column in resource.columns:
        wide = " (with `-o wide`)" if column.wide else ""
        lines.append(f"| {_cell(column.name)} | {_cell(column.description)}{wide} |")
    lines.append("")
    for path, schema in _objects(root):
        lines += _object(resource, path, schema)
    return "\n".join(lines)


def _objects(root: Schema) -> Iterator[tuple[str, Schema]]:
    """Each object with fields, and the path in its heading."""
    for path, field in _walk(root):
        inner, suffix = _inner(field)
        if inner.get("properties"):
            yield path + suffix, inner


def _object(resource: CustomResource, path: str, schema: Schema) -> list[str]:
    kind = resource.kind
    about = str(_SAME.get(path, schema.get("description", "")))
    lines = [f"### {path} {{ #{anchor(kind, path)} }}", "", about, ""]
    lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
    required = set(schema.get("required", ()))
    for name, field in schema["properties"].items():
        meaning = _cell(field.get("description", ""))
        limits = _limits(field)
        if limits:
            meaning = f"{meaning} {limits}".strip()
        if name in required:
            meaning += " **Required.**"
        lines.append(f"| `{name}` | {_type(kind, path, name, field)} | {_default(field)} | {meaning} |")
    lines.append("")
    rules = [(rule, "") for rule in schema.get(_RULES, ())]
    for name, field in schema["properties"].items():
        rules += [(rule, name) for rule in field.get(_RULES, ()) if not field.get("properties")]
    refusals = []
    for rule, name in rules:
        refusals += _refusals([rule], name)[:-1]
    if refusals:
        lines += ["Refused:", "", *(line for line in refusals if line), ""]
    return lines


def _refusals(rules: Any, name: str) -> list[str]:
    lines: list[str] = []
    for rule in rules:
        where = rule.get("fieldPath", "").removeprefix(".") or name
        lines.append(f"- `{where}` {_cell(rule['message'])}")
    return [*lines, ""]


def anchor(kind: str, path: str) -> str:
    """The fragment of a heading's address."""
    return f"{kind}-{path}".lower().replace(".", "-").replace("[]", "").replace("{}", "")


def _type(kind: str, path: str, name: str, field: Schema) -> str:
    inner, suffix = _inner(field)
    if inner.get("properties"):
        link = f"[object](#{anchor(kind, f'{path}.{name}{suffix}')})"
        return {"": link, "[]": f"list of {link}", "{}": f"map to {link}"}[suffix]
    if suffix == "[]":
        return f"list of {inner.get('type', 'object')}"
    if suffix == "{}":
        return f"map to {inner.get('type', 'string')}"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(field.get("format") if field.get("format") == "date-time" else field.get("type", "object"))


def _default(field: Schema) -> str:
    default = field.get("default")
    if default is None or default in ({}, []):
        return ""
    if isinstance(default, Mapping):
        return ""  # described at the object itself
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _limits(field: Schema) -> str:
    if field.get("enum"):
        return "One of " + ", ".join(f"`{value}`" for value in field["enum"]) + "."
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None and most < 2**31 - 1:
        return f"{least} to {most}."
    return f"At least {least}." if least is not None else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
