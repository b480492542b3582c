"""Every alert, by `promtool test rules`: when it fires and with which text, and when it does not."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import deps
from rightpool import contract
from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.runtime.metrics import OperatorMetrics
from tools.chartdocs import alerts

from ..docs.test_pages import GENERATED
from .rendering import CHART, Helm, one

RULES = CHART / "files" / "alerts.yaml"
ALERTS_PAGE = next(page for page in GENERATED if "alerts" in page)
CASES = Path(__file__).parent / "alerts"

Rule = dict[str, Any]


def rules() -> dict[str, Rule]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def promtool(*arguments: str) -> None:
    program = deps.find("promtool")
    assert program is not None, "promtool comes with the Debian package prometheus: python -m devcluster deps"
    result = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr


def of_leader() -> OperatorMetrics:
    """All metrics of an operator that leads and has measured."""
    metrics = OperatorMetrics(lambda: True)
    metrics.fleet.measured = True
    metrics.chargeback.charged = {}
    return metrics


def exported() -> set[str]:
    """Names as they are scraped: those of a histogram's parts and the suffix of counters included."""
    names = set()
    for family in of_leader().registry.collect():
        if family.type == "histogram":
            names |= {family.name + part for part in ("_bucket", "_count", "_sum")}
        else:
            names.add(family.name + ("_total" if family.type == "counter" else ""))
    return names


def test_rules_are_valid() -> None:
    promtool("check", "rules", str(RULES))


def test_every_alert_has_cases_and_every_case_an_alert() -> None:
    assert {path.stem for path in CASES.iterdir()} == set(rules())


@pytest.mark.parametrize("alert", sorted(rules()))
def test_fires_when_it_should_and_not_otherwise(alert: str, tmp_path: Path) -> None:
    cases = yaml.safe_load((CASES / f"{alert}.yaml").read_text())
    assert any(case["fires"] for case in cases) and not all(case["fires"] for case in cases)
    rule = rules()[alert]
    fixed = {name: rule["annotations"][name] for name in ("summary", "runbook")}
    tests = [
        {
            "name": case["case"],
            "interval": "1m",
            "input_series": [{"series": series, "values": str(values)} for series, values in case["series"].items()],
            "alert_rule_test": [
                {
                    "eval_time": case["at"],
                    "alertname": alert,
                    "exp_alerts": [
                        {
                            "exp_labels": {**fired["labels"], **rule["labels"]},
                            "exp_annotations": {**fixed, "description": fired["description"]},
                        }
                        for fired in case["fires"]
                    ],
                }
            ],
        }
        for case in cases
    ]
    # By itself: promtool would evaluate all the others with it, every minute of every case.
    alone, file = tmp_path / "rules.yaml", tmp_path / "tests.yaml"
    alone.write_text(yaml.safe_dump({"groups": [{"name": "alone", "rules": [rule]}]}))
    file.write_text(yaml.safe_dump({"rule_files": [str(alone)], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", str(file))


@pytest.mark.parametrize("alert", sorted(rules()))
def test_alerts_have_a_summary_and_a_remedy(alert: str) -> None:
    rule = rules()[alert]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert "{{" not in rule["annotations"]["summary"] + rule["annotations"]["runbook"]
    assert len(rule["annotations"]["runbook"]) > 100


def test_only_metrics_that_exist() -> None:
    known = exported() | {
        value for name, value in vars(contract).items() if isinstance(value, str) and value.startswith("rightpool_")
    }
    used = {name for rule in rules().values() for name in re.findall(r"\brightpool_\w+", rule["expr"])}
    assert used <= known, used - known


@pytest.mark.parametrize(("label", "values"), [("reason", Reason), ("outcome", Outcome), ("action", Action)])
def test_only_values_that_exist(label: str, values: Any) -> None:
    used = {
        value
        for rule in rules().values()
        for found in re.findall(rf'\b{label}=~?"([^"]*)"', rule["expr"])
        for value in found.split("|")
    }
    assert used <= {str(value) for value in values}


def test_runbooks_name_only_reasons_that_exist() -> None:
    named = {
        name for rule in rules().values() for name in re.findall(r"\breason=(\w+)", rule["annotations"]["runbook"])
    }
    assert named
    assert named <= {reason.value for reason in Reason}


def test_the_rule_object_carries_them_unchanged(helm: Helm) -> None:
    """`{{ $labels }}` is Prometheus' template, not Helm's."""
    rendered = one(helm.render({"prometheusRule": {"enabled": True}}), "PrometheusRule")
    assert rendered["spec"] == yaml.safe_load(RULES.read_text())


def test_every_alert_leads_to_its_place_in_the_documentation(helm: Helm) -> None:
    values = {"prometheusRule": {"enabled": True, "runbookUrl": "https://docs.example.com/rightpool/"}}
    headings = re.findall(r"^## (\w+)$", alerts.page(), flags=re.MULTILINE)
    page = f"https://docs.example.com/rightpool/{ALERTS_PAGE.removesuffix('.md')}.html"
    found = {
        rule["alert"]: rule["annotations"]["runbook_url"]
        for group in one(helm.render(values), "PrometheusRule")["spec"]["groups"]
        for rule in group["rules"]
    }
    assert found == {heading: f"{page}#{heading.lower()}" for heading in headings}
