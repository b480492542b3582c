"""A dashboard with what Prometheus answers to its queries."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tools.dashboards import FOLDER
from tools.dashboards.answers import ask, filled


@dataclass(frozen=True, slots=True)
class Series:
    """times: Unix seconds, evenly apart. values: NaN where there is none. One value of an instant query."""

    name: str
    times: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class AnsweredPanel:
    """body: the panel's JSON."""

    body: Mapping[str, Any]
    series: tuple[Series, ...]

    @property
    def defaults(self) -> Mapping[str, Any]:
        """How fields are shown."""
        found: Mapping[str, Any] = self.body["fieldConfig"]["defaults"]
        return found


@dataclass(frozen=True, slots=True)
class AnsweredBoard:
    """since, until: Unix seconds. variables: what was chosen."""

    title: str
    description: str
    variables: Mapping[str, str]
    since: float
    until: float
    panels: tuple[AnsweredPanel, ...]


def answered_boards(url: str, since: float, variables: Mapping[str, str]) -> Iterator[tuple[str, AnsweredBoard]]:
    """Each dashboard by the name of its file. Raises ValueError where a query is refused."""
    until = time.time()
    given = {**variables, "__range": f"{math.ceil(until - since)}s"}
    for path in sorted(FOLDER.glob("*.json")):
        board = json.loads(path.read_text(encoding="utf-8"))
        names = {variable["name"] for variable in board["templating"]["list"]}
        chosen = {name: value for name, value in given.items() if name in names}
        panels = tuple(
            AnsweredPanel(body, tuple(_series(url, body, {**chosen, "__range": given["__range"]}, since, until)))
            for body in board["panels"]
        )
        yield path.stem, AnsweredBoard(board["title"], board["description"], chosen, since, until, panels)


def _series(
    url: str, panel: Mapping[str, Any], variables: Mapping[str, str], since: float, until: float
) -> Iterator[Series]:
    for target in panel["targets"]:
        ranged = target.get("range", False)
        for found in ask(url, filled(target["expr"], variables), since if ranged else None):
            points = found["values"] if ranged else [found["value"]]
            times = [float(at) for at, _ in points]
            name = legend(target.get("legendFormat", ""), found["metric"])
            yield Series(name, *_with_gaps(times, [float(value) for _, value in points]))


def legend(template: str, labels: Mapping[str, str]) -> str:
    """The name of a series. Without a template it is its labels."""
    if not template:
        return ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if name != "__name__")
    return re.sub(r"{{\s*(\w+)\s*}}", lambda found: labels.get(found[1], ""), template)


def _with_gaps(times: list[float], values: list[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """NaN where steps are missing: a curve ends there."""
    step = min((after - before for before, after in pairwise(times)), default=0.0)
    filled_times, filled_values = times[:1], values[:1]
    for at, value in zip(times[1:], values[1:], strict=True):
        while step and at - filled_times[-1] > 1.5 * step:
            filled_times.append(filled_times[-1] + step)
            filled_values.append(math.nan)
        filled_times.append(at)
        filled_values.append(value)
    return tuple(filled_times), tuple(filled_values)
