"""What the values say of chips and prices reaches the operator: by the ConfigMap, its mount and its environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from rightpool.contract import CATALOG_KEY, LABEL_CATALOG
from rightpool.hardware.accelerator import FigureSource
from rightpool.hardware.chart_values import ChipValues, PriceValues
from rightpool.runtime.observe.catalog_file import read_catalog
from rightpool.settings import OperatorSettings

from .rendering import CHART, Helm, Object, one

VALUES: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "values" / "catalog.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())["properties"]["catalog"]["properties"]
COMMENTS = (CHART / "values.yaml").read_text()


def pod_of(rendered: list[Object]) -> Object:
    template: Object = one(rendered, "Deployment")["spec"]["template"]
    return template


def test_the_operator_reads_what_the_chart_was_given(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = helm.render(VALUES)
    (stored,) = (item for item in rendered if LABEL_CATALOG in (item["metadata"].get("labels") or {}))
    pod = pod_of(rendered)["spec"]
    (container,) = pod["containers"]
    (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "catalog")
    (volume,) = (volume for volume in pod["volumes"] if volume["name"] == "catalog")
    assert volume["configMap"]["name"] == stored["metadata"]["name"]
    for variable in container["env"]:
        if "value" in variable:
            monkeypatch.setenv(variable["name"], variable["value"])
    file = OperatorSettings().catalog_file
    assert file is not None and str(file.parent) == mount["mountPath"] and file.name == CATALOG_KEY
    mounted = tmp_path / CATALOG_KEY
    mounted.write_text(stored["data"][CATALOG_KEY])
    catalog = read_catalog(mounted)
    assert not catalog.problems
    assert catalog.get("L30-48GB").peak_flops["bf16"] == 119.5e12
    assert catalog.get("L4-24GB").power_watts == 60.0
    price = catalog.get("A100-SXM4-80GB").list_price
    assert (price.on_demand, price.spot, price.source) == (2.1, 1.05, FigureSource.VALUES)


def test_other_values_start_the_operator_anew(helm: Helm) -> None:
    cheaper = {**VALUES, "catalog": {"prices": {"T4-16GB": {"perChipHour": "0.2"}}}}
    before, after = (pod_of(helm.render(values))["metadata"]["annotations"] for values in (VALUES, cheaper))
    assert before != after and before["team"] == after["team"] == "platform"


def test_without_values_there_is_nothing_to_read(helm: Helm) -> None:
    rendered = helm.render()
    assert not any(LABEL_CATALOG in (item["metadata"].get("labels") or {}) for item in rendered)
    assert "annotations" not in pod_of(rendered)["metadata"]
    assert "catalog" not in json.dumps(pod_of(rendered))


@pytest.mark.parametrize(("place", "model"), [("chips", ChipValues), ("prices", PriceValues)])
def test_the_schema_has_the_fields_that_the_operator_reads(place: str, model: type[ChipValues | PriceValues]) -> None:
    fields = {field.alias for field in model.model_fields.values()}
    assert SCHEMA[place]["additionalProperties"]["properties"].keys() == fields


@pytest.mark.parametrize("memory", ["48Gi", "48e9", "80G", "1.5Ti"])
def test_the_schema_takes_the_memory_that_the_operator_takes(memory: str) -> None:
    jsonschema.Draft202012Validator(SCHEMA["chips"]).validate({"X1": {"memory": memory}})
    assert ChipValues.model_validate({"memory": memory}).memory


def test_the_example_in_the_values_holds() -> None:
    lines = [line.removeprefix("  #   ") for line in COMMENTS.splitlines() if line.startswith("  #   ")]
    chips = yaml.safe_load("\n".join(lines))
    assert chips
    jsonschema.Draft202012Validator(SCHEMA["chips"]).validate(chips)
