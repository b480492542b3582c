"""Checks the query of every panel against a real Prometheus."""

from __future__ import annotations

import json
import math
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tools.dashboards import FOLDER

# Values of Grafana's own variables.
_BUILT_IN: Final = {"__rate_interval": "1m", "__range": "6h", "__interval": "15s"}
_EVERYTHING: Final = ".*"


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """One query of one panel.

    required: whether it has data on every fleet with a running job. ranged: whether Grafana queries the whole time
    range and not the present value.
    """

    dashboard: str
    panel: str
    expression: str
    required: bool
    ranged: bool

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel}: {self.expression}"


def panel_queries() -> Iterator[PanelQuery]:
    """All queries of all dashboards, with variables."""
    for path in sorted(FOLDER.glob("*.json")):
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            required = "noValue" not in panel["fieldConfig"]["defaults"]
            for target in panel.get("targets", []):
                yield PanelQuery(board["title"], panel["title"], target["expr"], required, target.get("range", False))


def variable_queries() -> Iterator[tuple[str, str]]:
    """Name and PromQL of every variable with `label_values`."""
    for path in sorted(FOLDER.glob("*.json")):
        board = json.loads(path.read_text())
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
                yield f"{board['title']}: ${variable['name']}", f"count by ({label}) ({selector})"


def filled(expression: str, variables: Mapping[str, str]) -> str:
    """The expression as Grafana sends it. A variable that is not given matches everything; of Grafana's own ones
    `__range` may be given."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        return variables.get(name) or _BUILT_IN.get(name, _EVERYTHING)

    # An exact matcher becomes a pattern if its variable is not given.
    for name in set(re.findall(r'="\$(\w+)"', expression)) - variables.keys():
        expression = re.sub(rf'(?<![=!~])="\${name}"', f'=~"${name}"', expression)
    return re.sub(r"\$(\w+)", value, expression)


def unanswered(
    url: str, variables: Mapping[str, str] | None = None, since: float | None = None
) -> Iterator[tuple[PanelQuery, str]]:
    """Queries that Prometheus rejects, with its message, and those with `no data`.

    variables: `namespace` and `profiledjob` of the job to look at, `operator` the operator's namespace; default: all.
    since: Unix time at which curves begin; default: only present values are checked.
    """
    for query in panel_queries():
        try:
            found = ask(url, filled(query.expression, variables or {}), since if query.ranged else None)
        except ValueError as error:
            yield query, str(error)
            continue
        if not found:
            yield query, "no data"


def check_panels(url: str, *, variables: Mapping[str, str] | None = None) -> list[str]:
    """Problems, a line each: rejected queries, and required queries without data."""
    return [
        f"{query}: {problem}" for query, problem in unanswered(url, variables) if problem != "no data" or query.required
    ]


def ask(url: str, expression: str, since: float | None = None) -> list[Any]:
    """The series of a query with a number, now or since a time. Raises ValueError if it is rejected."""
    asked: dict[str, str | float] = {"query": expression}
    if since is not None:
        now = time.time()
        asked |= {"start": since, "end": now, "step": max(1.0, (now - since) / 1000)}
    path = "query" if since is None else "query_range"
    try:
        with urllib.request.urlopen(
            f"{url.rstrip('/')}/api/v1/{path}?{urllib.parse.urlencode(asked)}", timeout=30
        ) as answer:
            body = json.load(answer)
    except urllib.error.HTTPError as error:
        raise ValueError(str(json.load(error).get("error"))) from None
    return [series for series in body["data"]["result"] if _has_number(series)]


def _has_number(series: Mapping[str, Any]) -> bool:
    """Whether a series has a number. 0/0 is NaN, which Grafana does not show."""
    values = series["values"] if "values" in series else [series["value"]]
    return any(not math.isnan(float(value)) for _, value in values)
