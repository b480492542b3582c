"""The registry: one kind for each field of spec.workload, found by field, by resource and by its pods."""

from __future__ import annotations

import ast
from pathlib import Path

import rightpool
from rightpool.api.workload import Workload
from rightpool.cluster.resources import PODS
from rightpool.runtime.observe.watched import watched
from rightpool.workloads.kinds.registry import KINDS, child_owning, child_resources, kind_at, kind_of
from tests.unit.workloads.samples import plain


def test_every_kind_of_workload_becomes_a_child() -> None:
    assert set(KINDS) == {field.alias for field in Workload.model_fields.values()}
    assert {field: kind.field for field, kind in KINDS.items()} == {field: field for field in KINDS}
    assert kind_of(Workload.model_validate({"job": {"template": plain()}})) is KINDS["job"]


def test_a_resource_belongs_to_one_kind() -> None:
    assert len(set(child_resources())) == len(KINDS)
    assert [kind_at(resource) for resource in child_resources()] == list(KINDS.values())
    assert kind_at(PODS) is None
    assert set(child_resources()) < set(watched())


def test_a_pod_belongs_to_the_child_that_controls_it() -> None:
    def owner(version: str, kind: str, name: str = "bert-r1", controller: bool = True) -> str:
        reference = {"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": controller}
        return child_owning({"ownerReferences": [reference]}, "bert-r1")

    assert owner("batch/v1", "Job") == owner("batch/v2", "Job") == "u"
    assert owner("batch/v1", "Job", "bert-r2") == ""
    assert owner("batch/v1", "Job", controller=False) == ""
    assert owner("batch/v1", "CronJob") == ""
    assert owner("batch.example/v1", "Job") == ""
    assert child_owning({}, "bert-r1") == ""


def imports(path: Path) -> set[str]:
    """The modules that a file imports."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return named


def test_nothing_else_knows_a_kind_by_name() -> None:
    package = Path(rightpool.__file__).parent
    rooms = package / "workloads" / "kinds"
    kinds = {f"rightpool.workloads.kinds.{path.stem}" for path in rooms.glob("*.py")}
    kinds -= {f"rightpool.workloads.kinds.{shared}" for shared in ("__init__", "kind", "registry")}
    assert "rightpool.workloads.kinds.job" in kinds and kinds & imports(rooms / "registry.py") == kinds
    others = [path for path in package.rglob("*.py") if rooms not in path.parents and "kinds" in path.read_text()]
    assert {str(path): found for path in others if (found := imports(path) & kinds)} == {}
