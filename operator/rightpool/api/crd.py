"""Writes the CustomResourceDefinitions: `python -m rightpool.api.crd [--check] DIR`.

The files are generated and committed. `--check` writes nothing and fails where a file differs from the models.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from rightpool.api.resources import RESOURCES, CustomResource, PrinterColumn
from rightpool.api.schema import structural_schema
from rightpool.contract import GROUP, VERSION

_HEADER: Final = "# Generated from operator/rightpool/api by `python -m rightpool.api.crd crds`. Do not edit.\n"
_API_VERSION_DOC: Final = "Version of the schema, such as rightpool.dev/v1alpha1."
_KIND_DOC: Final = "Kind of the object."


class _Dumper(yaml.SafeDumper):
    """Without anchors: two equal lists are two lists."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def definition(resource: CustomResource) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in resource.columns],
        "schema": {"openAPIV3Schema": _root(resource)},
    }
    subresources: dict[str, Any] = {"status": {}}
    if resource.scale is not None:
        subresources["scale"] = {
            "specReplicasPath": resource.scale.spec_replicas,
            "statusReplicasPath": resource.scale.status_replicas,
            "labelSelectorPath": resource.scale.selector,
        }
    version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "categories": list(resource.categories),
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "shortNames": list(resource.short_names),
                "singular": resource.singular,
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _root(resource: CustomResource) -> dict[str, Any]:
    spec = structural_schema(resource.spec, defaults=True)
    properties: dict[str, Any] = {
        "apiVersion": {"description": _API_VERSION_DOC, "type": "string"},
        "kind": {"description": _KIND_DOC, "type": "string"},
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},  # so that rules can point to it
        "spec": spec,
    }
    properties["status"] = structural_schema(resource.status, defaults=False)
    return {
        "description": resource.description,
        "type": "object",
        "required": ["spec"],
        "x-kubernetes-validations": [rule.to_dict() for rule in resource.rules],
        "properties": properties,
    }


def _column(column: PrinterColumn) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "description": column.description,
        "jsonPath": column.path,
    }
    if column.wide:
        entry["priority"] = 1
    return entry


def file_name(resource: CustomResource) -> str:
    return f"{GROUP}_{resource.plural}.yaml"


def render(resource: CustomResource) -> str:
    """The file of one kind."""
    body = yaml.dump(definition(resource), Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
    return _HEADER + body


def drift(directory: Path, resources: Iterable[CustomResource] = RESOURCES) -> list[str]:
    """What in the directory differs from the models: one line for each file."""
    wanted = {file_name(resource): render(resource) for resource in resources}
    found = {path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.yaml")}
    lines = [f"{name} is missing" for name in wanted.keys() - found.keys()]
    lines += [f"{name} belongs to no model" for name in found.keys() - wanted.keys()]
    lines += [f"{name} differs from the models" for name in wanted.keys() & found.keys() if wanted[name] != found[name]]
    return sorted(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m rightpool.api.crd", description=__doc__)
    parser.add_argument("directory", type=Path, help="where the files are")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    options = parser.parse_args(arguments)
    directory: Path = options.directory
    if options.check:
        lines = drift(directory)
        for line in lines:
            print(f"{directory / line}", file=sys.stderr)
        if lines:
            print(f"To update them: python -m rightpool.api.crd {directory}", file=sys.stderr)
        return 1 if lines else 0
    directory.mkdir(parents=True, exist_ok=True)
    for resource in RESOURCES:
        (directory / file_name(resource)).write_text(render(resource), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
