"""The dashboards as the files that the chart ships."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import FOLDER
from dashboards.fleet import fleet
from dashboards.job import job
from dashboards.operator_health import operator
from dashboards.predictions import predictions

_BUILDERS: Final = {"fleet": fleet, "job": job, "predictions": predictions, "operator": operator}


def contents() -> Mapping[str, str]:
    """File name → JSON, the same bytes every time."""
    made = {}
    for name, builder in _BUILDERS.items():
        board = json.loads(JSONEncoder().encode(builder().build()))
        for position, panel in enumerate(board["panels"], start=1):
            panel["id"] = position  # Grafana numbers panels without one anew at every load, and links to them break
        made[f"{name}.json"] = json.dumps(board, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return made


def stale() -> list[str]:
    """Names of files that are not what they should be."""
    wanted = contents()
    found = {path.name: path.read_text() for path in FOLDER.glob("*")}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def write() -> list[str]:
    """Bring the files up to date; returns what changed."""
    changed, wanted = stale(), contents()
    FOLDER.mkdir(exist_ok=True)
    for name in changed:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name])
        else:
            (FOLDER / name).unlink()
    return changed
