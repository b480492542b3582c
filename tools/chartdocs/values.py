"""The table of the chart's values, from its schema and its defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).resolve().parents[2] / "charts" / "rightpool"

# Values whose schema repeats a part of the pod specification: one row each.
_WHOLE: Final = frozenset({"resources", "affinity"})


def table() -> str:
    """Markdown: one row for each value, in the order of values.yaml."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    lines = ["| value | what it is | allowed | default |", "|---|---|---|---|"]
    lines += [
        f"| `{path}` | {_escaped(node['description'])} | {_allowed(node)} | {_default(default)} |"
        for path, node, default in _rows(schema, values, "")
    ]
    return "\n".join(lines)


def _rows(schema: dict[str, Any], values: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any], Any]]:
    for name, default in values.items():
        node = schema["properties"][name]
        if "properties" in node and name not in _WHOLE:
            yield from _rows(node, default, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", node, default


def _allowed(node: dict[str, Any]) -> str:
    if "enum" in node:
        return ", ".join(f"`{one}`" for one in node["enum"])
    kind = {"array": "list", "object": "map", "boolean": "`true`, `false`"}.get(node["type"], node["type"])
    if "minimum" in node and "maximum" in node:
        return f"{kind}, {node['minimum']} to {node['maximum']}"
    return str(kind)


def _default(value: Any) -> str:
    return "" if value == "" else f"`{_escaped(json.dumps(value, ensure_ascii=False))}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
