"""The dashboards as the files that the chart ships."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tools.dashboards import FOLDER
from tools.dashboards.chargeback import chargeback
from tools.dashboards.fleet import fleet
from tools.dashboards.job import job
from tools.dashboards.operator_health import operator
from tools.dashboards.predictions import predictions

_BUILDERS: Final = {
    "fleet": fleet,
    "chargeback": chargeback,
    "job": job,
    "predictions": predictions,
    "operator": operator,
}


def contents() -> Mapping[str, str]:
    """File name → JSON, the same bytes every time."""
    made = {}
    for name, builder in _BUILDERS.items():
        board = json.loads(JSONEncoder().encode(builder().build()))
        for position, panel in enumerate(board["panels"], start=1):
            panel["id"] = (
                position  # Grafana assigns new numbers to panels without one at every load, which breaks links
            )
        made[f"{name}.json"] = json.dumps(board, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return made


def stale() -> list[str]:
    """Names of files that are out of date."""
    wanted = contents()
    found = {path.name: path.read_text() for path in FOLDER.glob("*")}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def write() -> list[str]:
    """Write files that are out of date, and return their names."""
    changed, wanted = stale(), contents()
    FOLDER.mkdir(exist_ok=True)
    for name in changed:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name])
        else:
            (FOLDER / name).unlink()
    return changed
