"""The generated CRDs. tests/integration/api tests them in an API server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import Field, WithJsonSchema

from rightpool.api.crd import definition, drift, file_name, main, render
from rightpool.api.ledger import MAX_HISTORY
from rightpool.api.model import ApiModel
from rightpool.api.resources import MAX_NAME, PROFILED_JOB, RESOURCES, CustomResource
from rightpool.api.schema import UnstructuralSchemaError, structural_schema

CRDS = Path(__file__).parents[3] / "crds"
CLIENT_SIDE_APPLY_LIMIT = 262_144  # bytes of an annotation, which holds the whole object as JSON

each_resource = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)


@cache
def version(resource: CustomResource) -> dict[str, Any]:
    return definition(resource)["spec"]["versions"][0]


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from nodes(schema[keyword], f"{path}[]")


def field(resource: CustomResource, path: str) -> dict[str, Any]:
    schema = version(resource)["schema"]["openAPIV3Schema"]
    return dict(nodes(schema))[path]


def test_committed_files_match_the_models() -> None:
    assert drift(CRDS) == [], "run: python -m rightpool.api.crd crds"


def test_drift_is_found_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    jobs = tmp_path / file_name(PROFILED_JOB)
    jobs.write_text(jobs.read_text().replace("maxMoves", "mostMoves"))
    (tmp_path / "rightpool.dev_others.yaml").write_text("{}")
    assert main(["--check", str(tmp_path)]) == 1
    output = capsys.readouterr().err
    assert "rightpool.dev_profiledjobs.yaml differs" in output
    assert "rightpool.dev_others.yaml belongs to no model" in output
    assert "python -m rightpool.api.crd" in output


@each_resource
def test_output_is_the_same_every_time(resource: CustomResource) -> None:
    text = render(resource)
    assert render(resource) == text
    assert yaml.safe_load(text) == definition(resource)


@each_resource
def test_client_side_apply_can_carry_it(resource: CustomResource) -> None:
    """It keeps the object as JSON in an annotation. A third of the limit is left for what is to come."""
    assert len(json.dumps(definition(resource))) < CLIENT_SIDE_APPLY_LIMIT * 2 / 3


@each_resource
def test_a_column_shows_a_plain_value(resource: CustomResource) -> None:
    """Of an object kubectl would print JSON."""
    known = dict(nodes(version(resource)["schema"]["openAPIV3Schema"]))
    for column in resource.columns:
        path = re.sub(r"\[\?\(.*?\)\]", "[]", column.path)
        if not path.startswith(".metadata."):
            shown = known[path]
            assert shown.get("type") in ("string", "integer", "number") or shown["x-kubernetes-int-or-string"], path


@each_resource
def test_every_field_of_the_spec_is_explained(resource: CustomResource) -> None:
    schema = version(resource)["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert [path for path, node in nodes(schema) if not path.endswith("[]") and not node.get("description")] == []


@each_resource
def test_every_string_and_list_of_the_spec_that_a_rule_may_read_is_bounded(resource: CustomResource) -> None:
    schema = version(resource)["schema"]["openAPIV3Schema"]["properties"]["spec"]
    unbounded = [
        path
        for path, node in nodes(schema)
        if node.get("x-kubernetes-validations")
        and (
            (node.get("type") == "string" and "maxLength" not in node)
            or (node.get("type") == "array" and "maxItems" not in node)
            or ("additionalProperties" in node and "maxProperties" not in node)
        )
    ]
    assert unbounded == []


@each_resource
def test_every_rule_has_a_message_that_ends_in_a_remedy(resource: CustomResource) -> None:
    schema = version(resource)["schema"]["openAPIV3Schema"]
    rules = [rule for _, node in nodes(schema) for rule in node.get("x-kubernetes-validations", ())]
    assert rules
    for rule in rules:
        assert ": " in rule["message"], rule
        assert "\n" not in rule["message"], rule


def test_there_are_no_floats() -> None:
    for resource in RESOURCES:
        assert all(node.get("type") != "number" for _, node in nodes(version(resource)["schema"]["openAPIV3Schema"]))


@pytest.mark.parametrize(
    ("resource", "narrow", "wide"),
    [
        (
            "ProfiledJob",
            [
                *("Status", "Pool", "Chips", "Bottleneck", "$/h", "$/M", "Saved", "Targets", "Done"),
                *("Would-go-to", "Saves", "Phase", "Age"),
            ],
            ["Samples/s", "Steps/s", "Scaling", "Requests/s", "P99", "Target", "Finish", "LastMove", "Queue"],
        ),
        (
            "AcceleratorPool",
            ["Accelerator", "Nodes", "Chips", "Free", "$/chip-h", "Ready", "Age"],
            ["Max", "Slice", "Resource"],
        ),
        ("PlacementPolicy", ["Mode", "Concurrent", "PerHour", "Ready", "Trusted", "Age"], []),
    ],
)
def test_columns(resource: str, narrow: list[str], wide: list[str]) -> None:
    kind = next(candidate for candidate in RESOURCES if candidate.kind == resource)
    columns = version(kind)["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == narrow
    assert [column["name"] for column in columns if column.get("priority")] == wide


@each_resource
def test_columns_point_to_fields_of_their_type(resource: CustomResource) -> None:
    schema = version(resource)["schema"]["openAPIV3Schema"]
    known = dict(nodes(schema))
    # A small object is shown as JSON.
    types = {"string": ({"string", "object"}, None), "integer": ({"integer"}, None), "date": ({"string"}, "date-time")}
    for column in resource.columns:
        if column.path.startswith(".metadata") or "[?" in column.path:
            continue
        kind, form = types[column.type]
        assert known[column.path]["type"] in kind, column
        assert form is None or known[column.path]["format"] == form, column


def test_scale_points_to_integers_and_a_selector() -> None:
    assert version(PROFILED_JOB)["subresources"]["scale"] == {
        "specReplicasPath": ".spec.workload.server.replicas.min",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    assert field(PROFILED_JOB, ".spec.workload.server.replicas.min")["type"] == "integer"
    assert field(PROFILED_JOB, ".status.replicas")["type"] == "integer"
    assert field(PROFILED_JOB, ".status.selector")["type"] == "string"


def test_names() -> None:
    assert {resource.kind: definition(resource)["spec"]["names"]["shortNames"] for resource in RESOURCES} == {
        "ProfiledJob": ["pj"],
        "AcceleratorPool": ["apool"],
        "PlacementPolicy": ["ppol"],
    }
    assert {definition(resource)["spec"]["names"]["categories"][0] for resource in RESOURCES} == {"ml"}


def test_conditions_are_a_map_by_type_and_history_is_atomic() -> None:
    conditions = field(PROFILED_JOB, ".status.conditions")
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert sorted(conditions["items"]["required"]) == ["lastTransitionTime", "message", "reason", "status", "type"]
    assert field(PROFILED_JOB, ".status.history")["x-kubernetes-list-type"] == "atomic"
    assert field(PROFILED_JOB, ".status.history")["maxItems"] == MAX_HISTORY


def test_inlined_records_have_no_name_of_their_own() -> None:
    status = field(PROFILED_JOB, ".status")
    assert "state" not in status["properties"] and {"placement", "cost", "ledgerCount"} <= status["properties"].keys()
    placement = field(PROFILED_JOB, ".status.placement")
    assert placement["required"] == ["revision", "pool", "chips", "replicas"]
    assert "placement" not in placement["properties"]
    assert field(PROFILED_JOB, ".status.migration.from") == placement | {"description": "The Revision before."}
    assert "x-rightpool" not in render(PROFILED_JOB)


def test_the_interval_of_an_estimate_is_in_the_schema() -> None:
    estimate = field(PROFILED_JOB, ".status.migration.predicted")
    assert list(estimate["properties"]) == ["median", "low", "high", "sd", "basis", "shared"]
    assert estimate["required"] == ["median", "sd"]


def test_the_template_keeps_fields_that_rules_do_not_read() -> None:
    template = ".spec.workload.job.template"
    for path in ("", ".metadata", ".spec", ".spec.containers[]", ".spec.containers[].resources"):
        assert field(PROFILED_JOB, template + path)["x-kubernetes-preserve-unknown-fields"] is True
    assert field(PROFILED_JOB, template + ".spec.containers")["maxItems"] == 16


def test_defaults_are_in_the_spec_and_not_in_the_status() -> None:
    assert field(PROFILED_JOB, ".spec.checkpoint")["default"] == {}
    assert field(PROFILED_JOB, ".spec.checkpoint.timeout")["default"] == "120s"
    assert "default" not in field(PROFILED_JOB, ".spec.adaptation.mode"), "the policy's default holds"
    assert "default" not in field(PROFILED_JOB, ".spec.elasticity.maxChips"), "it is worked out"
    status = version(PROFILED_JOB)["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert [path for path, node in nodes(status) if "default" in node] == []


def test_the_longest_child_name_is_63() -> None:
    assert len("x" * MAX_NAME + "-r99999-9999") == 63


class _Unbounded(ApiModel):
    """A model with a keyword that CRDs do not know."""

    size: int = Field(gt=0)
    """Size."""


class _Undocumented(ApiModel):
    """A model with an undocumented field."""

    size: int


class _Ambiguous(ApiModel):
    """A model with a field of two types."""

    size: int | str
    """Size."""


class _Untyped(ApiModel):
    """A model with a field of any type."""

    size: Any
    """Size."""


class _Opaque(ApiModel):
    """A model with an object of unknown fields."""

    size: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]
    """Size."""


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (_Unbounded, "_Unbounded.size: exclusiveMinimum has no counterpart"),
        (_Undocumented, "_Undocumented.size has no description"),
        (_Ambiguous, "_Ambiguous.size may have several types"),
        (_Untyped, "_Untyped.size has no type"),
        (_Opaque, "_Opaque.size declares no properties"),
    ],
)
def test_unsupported_schema_is_an_error(model: type[ApiModel], message: str) -> None:
    with pytest.raises(UnstructuralSchemaError, match=message):
        structural_schema(model, defaults=True)


def test_no_job_may_hold_a_move_or_a_profile_open_for_ever() -> None:
    for path in (".spec.checkpoint.timeout", ".spec.profiling.window"):
        rules = [rule["rule"] for rule in field(PROFILED_JOB, path)["x-kubernetes-validations"]]
        assert any("duration(self) <= duration('6h')" in rule for rule in rules), path
