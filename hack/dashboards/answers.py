"""Every panel's query, asked of a real Prometheus."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dashboards import FOLDER

# What Grafana puts in place of its own variables.
_BUILT_IN: Final = {"__rate_interval": "1m", "__range": "6h", "__interval": "15s"}
_EVERYTHING: Final = ".*"


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """One query of one panel. required: whether it has data on every fleet with a running job."""

    dashboard: str
    panel: str
    expression: str
    required: bool

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel}: {self.expression}"


def panel_queries(folder: Path = FOLDER) -> Iterator[PanelQuery]:
    """All queries of all dashboards, with their variables in them."""
    for path in sorted(folder.glob("*.json")):
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            required = "noValue" not in panel["fieldConfig"]["defaults"]
            for target in panel.get("targets", []):
                yield PanelQuery(board["title"], panel["title"], target["expr"], required)


def filled(expression: str, variables: Mapping[str, str]) -> str:
    """The expression as Grafana would send it; a variable that is not given matches everything."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        return _BUILT_IN.get(name) or variables.get(name, _EVERYTHING)

    # An exact matcher can't match everything: it becomes a pattern where its variable is not given.
    for name in set(re.findall(r'="\$(\w+)"', expression)) - variables.keys():
        expression = re.sub(rf'(?<![=!~])="\${name}"', f'=~"${name}"', expression)
    return re.sub(r"\$(\w+)", value, expression)


def check_panels(
    prometheus_url: str, *, variables: Mapping[str, str] | None = None, require_data: bool = True
) -> list[str]:
    """What is wrong, a line each: queries that Prometheus refuses, and, where data are required, those without any.

    variables: `namespace` and `profiledjob` of the job to look at, `operator` the operator's namespace; default: all.
    """
    failures = []
    for query in panel_queries():
        try:
            result = ask(prometheus_url, filled(query.expression, variables or {}))
        except ValueError as error:
            failures.append(f"{query}: {error}")
            continue
        if require_data and query.required and not result:
            failures.append(f"{query}: no data")
    return failures


def ask(url: str, expression: str) -> list[Any]:
    """The series of an instant query. Raises ValueError where Prometheus refuses it."""
    query = urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/api/v1/query?{query}", timeout=30) as answer:
            body = json.load(answer)
    except urllib.error.HTTPError as error:
        raise ValueError(str(json.load(error).get("error"))) from None
    return list(body["data"]["result"])
