"""The dashboards as files: current, complete, and about metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import deps
from rightpool import contract
from tools.dashboards import FOLDER, files
from tools.dashboards.answers import filled, panel_queries

from .rendering import Helm
from .test_alerts import exported, of_leader

BOARDS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}

Board = dict[str, Any]


def test_files_match_the_generated_ones() -> None:
    assert files.stale() == [], "python -m tools.dashboards"


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_a_board_is_complete(board: Board) -> None:
    assert board["uid"].startswith("rightpool-")
    assert [link["type"] for link in board["links"]] == ["dashboards"]
    names = {variable["name"] for variable in board["templating"]["list"]}
    assert "datasource" in names
    for panel in board["panels"]:
        assert panel["description"] and panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        for target in panel["targets"]:
            assert set(re.findall(r"\$(?!__)(\w+)", target["expr"])) <= names


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_panels_do_not_overlap(board: Board) -> None:
    cells = [
        (x, y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))


def test_boards_and_panels_can_be_linked_to() -> None:
    uids = [board["uid"] for board in BOARDS.values()]
    assert len(uids) == len(set(uids)) == 5
    for board in BOARDS.values():
        identities = [panel["id"] for panel in board["panels"]]
        assert len(identities) == len(set(identities))


def test_only_metrics_that_exist() -> None:
    histogram = {contract.STEP_SECONDS + part for part in ("_bucket", "_sum", "_count")}
    known = exported() | histogram
    known |= {value for value in vars(contract).values() if isinstance(value, str)}
    used = {name for query in panel_queries() for name in re.findall(r"\brightpool_\w+", query.expression)}
    assert used <= known, used - known


def test_every_metric_of_the_operator_is_on_a_board() -> None:
    used = {name for query in panel_queries() for name in re.findall(r"\brightpool_\w+", query.expression)}
    bases = {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in used}
    assert {family.name for family in of_leader().registry.collect()} <= bases


def test_every_query_is_promql(tmp_path: Path) -> None:
    """By promtool, as recording rules: no server is needed to parse them."""
    rules = [
        {"record": "x", "expr": filled(query.expression, {}), "labels": {"n": str(n)}}
        for n, query in enumerate(panel_queries())
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    program = deps.find("promtool")
    assert program is not None
    result = subprocess.run([program, "check", "rules", str(file)], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr


def test_variables_are_filled_in() -> None:
    asked = 'a{namespace="$namespace",x!="$y",pod=~"$pod"}[$__rate_interval]'
    assert filled(asked, {"namespace": "research"}) == 'a{namespace="research",x!=".*",pod=~".*"}[1m]'
    assert filled('a{namespace="$namespace"}', {}) == 'a{namespace=~".*"}'


def test_grafanas_sidecar_finds_them(helm: Helm) -> None:
    maps = [item for item in helm.render() if item["kind"] == "ConfigMap"]
    assert len(maps) == len(BOARDS)
    for item in maps:
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((name, text),) = item["data"].items()
        assert json.loads(text) == BOARDS[name.removeprefix("rightpool-").removesuffix(".json")]
    assert not [item for item in helm.render({"dashboards": {"enabled": False}}) if item["kind"] == "ConfigMap"]
