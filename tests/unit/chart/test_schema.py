"""The schema of the chart's values: typos, wrong types and values out of bounds are rejected at every level."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from .rendering import CHART, Helm, Refused

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
JUDGE = jsonschema.Draft202012Validator(SCHEMA)

# Objects with fields of others: parent charts, and objects that are passed through.
OPEN = {"values.global", "values.extraObjects[]"}
WRONG: list[tuple[dict[str, Any], str]] = [
    # Typos, from the top to the bottom.
    ({"replicas": 3}, "replicas"),
    ({"planner": {"intervall": 5}}, "intervall"),
    ({"crds": {"instal": False}}, "instal"),
    ({"resources": {"request": {}}}, "request"),
    ({"affinity": {"podAntiAfinity": {}}}, "podAntiAfinity"),
    ({"affinity": {"nodeAffinity": {"preferred": []}}}, "preferred"),
    ({"tolerations": [{"key": "a", "operater": "Exists"}]}, "operater"),
    ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfied": "x"}]}, "whenUnsatisfi"),
    ({"networkPolicy": {"ingressFrom": [{"namespaceselector": {}}]}}, "namespaceselector"),
    ({"networkPolicy": {"profilersFrom": [{"podSelector": {"matchlabels": {}}}]}}, "matchlabels"),
    ({"extraEnv": [{"name": "A", "val": "b"}]}, "val"),
    ({"extraEnv": [{"name": "B", "valueFrom": {"secretRef": {}}}]}, "secretRef"),
    ({"catalog": {"chip": {}}}, "chip"),
    ({"catalog": {"chips": {"X1": {"memoryGB": "48"}}}}, "memoryGB"),
    ({"catalog": {"prices": {"X1": {"perHour": "2"}}}}, "perHour"),
    # Wrong types.
    ({"catalog": {"chips": {"X2": {"watts": 300}}}}, "watts"),
    ({"catalog": {"prices": {"X2": {"perChipHour": 2.5}}}}, "perChipHour"),
    ({"log": {"format": True}}, "format"),
    ({"prometheus": {"scrapeInterval": "10s"}}, "scrapeInterval"),
    ({"prometheus": {"scrapeInterval": 2.5}}, "scrapeInterval"),  # a PodMonitor takes no 2.5s
    ({"podAnnotations": {"a": 1}}, "podAnnotations"),
    ({"watchNamespaces": "research"}, "watchNamespaces"),
    ({"dashboards": {"enabled": "yes"}}, "enabled"),
    # Out of bounds.
    ({"replicaCount": -1}, "replicaCount"),
    ({"planner": {"interval": -5}}, "interval"),
    ({"planner": {"interval": 0}}, "interval"),
    ({"networkPolicy": {"prometheusPort": -1}}, "prometheusPort"),
    ({"networkPolicy": {"apiServer": {"ports": []}}}, "ports"),
    ({"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1"]}}}, "cidrs"),
    ({"resources": {"requests": {"cpu": "-100m"}}}, "cpu"),
    ({"resources": {"limits": {"memory": "1 GB"}}}, "memory"),
    ({"tolerations": [{"effect": "NoRun"}]}, "effect"),
    ({"catalog": {"chips": {"X3": {"teraflops": {"bf16": "fast"}}}}}, "bf16"),
    # Ill-formed texts.
    ({"catalog": {"chips": {"X4": {"memory": "48 GB"}}}}, "memory"),
    ({"serviceMonitor": {"interval": "15 seconds"}}, "interval"),
    ({"serviceMonitor": {"interval": "0s"}}, "interval"),
    ({"image": {"digest": "sha256:short"}}, "digest"),
    ({"image": {"tag": "a tag"}}, "tag"),
    ({"image": {"pullPolicy": "always"}}, "pullPolicy"),
    ({"image": {"repository": "registry.example.com:5000/operator:1.0"}}, "repository"),
    ({"image": {"repository": ""}}, "repository"),
    ({"sidecar": {"image": {"repository": "registry.example.com/profiler@sha256:0123"}}}, "repository"),
    ({"prometheus": {"url": "http://prometheus:9090 "}}, "url"),
    ({"prometheus": {"url": "prometheus:9090"}}, "url"),
    ({"prometheusRule": {"runbookUrl": "docs.example.com"}}, "runbookUrl"),
    ({"watchNamespaces": ["Research"]}, "watchNamespaces"),
    ({"log": {"level": "debug"}}, "level"),
    ({"podLabels": {"team": "two words"}}, "podLabels"),
    ({"priorityClassName": "System Critical"}, "priorityClassName"),
]


@pytest.mark.parametrize(("values", "about"), WRONG, ids=[f"{about}-{n}" for n, (_, about) in enumerate(WRONG)])
def test_a_wrong_value_is_refused_by_name(values: dict[str, Any], about: str) -> None:
    errors = list(JUDGE.iter_errors(values))
    assert len(errors) >= 1
    assert all(about in f"{error.json_path} {error.message}" for error in errors), errors


@pytest.mark.parametrize("name", ["operator", "rightpool/operator", "registry.example.com:5000/team_a/r-p/operator"])
def test_a_registry_may_have_a_port(name: str) -> None:
    assert list(JUDGE.iter_errors({"image": {"repository": name}, "sidecar": {"image": {"repository": name}}})) == []


def test_helm_judges_by_it(helm: Helm) -> None:
    """All at once, since helm takes a while to start; where one document can't hold two, the later one."""
    together: dict[str, Any] = {}
    for values, _ in WRONG:
        _merge(together, values)
    with pytest.raises(Refused) as refused:
        helm.render(together)
    for about in (
        "replicas",
        "intervall",
        "whenUnsatisfi",
        "secretRef",
        "cidrs",
        "cpu",
        "digest",
        "team",
        "runbookUrl",
    ):
        assert about in str(refused.value), str(refused.value)


def _merge(target: dict[str, Any], source: dict[str, Any]) -> None:
    for name, value in source.items():
        if isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        elif isinstance(value, list) and isinstance(target.get(name), list):
            target[name] = target[name] + value
        else:
            target[name] = json.loads(json.dumps(value))


def test_only_foreign_schemas_are_open() -> None:
    """Each object names its fields, or says what all of its values are like; each number has bounds."""
    assert {path for path, node in _nodes(SCHEMA, "values") if _is_open(node)} == OPEN
    for name, node in SCHEMA["$defs"].items():
        assert not [path for path, inner in _nodes(node, name) if _is_open(inner)]
    numbers = [(path, node) for path, node in _nodes(SCHEMA, "values") if node.get("type") in ("integer", "number")]
    assert len(numbers) >= 5
    assert [path for path, node in numbers if "minimum" not in node] == []


def _is_open(node: dict[str, Any]) -> bool:
    return node.get("type") == "object" and node.get("additionalProperties", True) is True


def _nodes(node: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, node
    for name, inner in node.get("properties", {}).items():
        yield from _nodes(inner, f"{path}.{name}")
    if "items" in node:
        yield from _nodes(node["items"], f"{path}[]")


def test_every_value_is_in_the_schema_and_the_other_way_round() -> None:
    _same(SCHEMA, VALUES, "values")


def _same(schema: dict[str, Any], values: dict[str, Any], path: str) -> None:
    named = set(schema["properties"]) - {"global"}
    if path in ("values.resources", "values.affinity"):
        return
    assert named == set(values), f"{path}: {named ^ set(values)}"
    for name, value in values.items():
        if "properties" in schema["properties"][name]:
            _same(schema["properties"][name], value, f"{path}.{name}")
