"""The chip model that ships with the operator, and the form in which it is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from rightpool.prediction.chip_model import ChipModel
from rightpool.prediction.scales import Scales

DIGITS = 5


def write(model: ChipModel, provenance: Mapping[str, Any]) -> str:
    """JSON of a model. Numbers are rounded, so that the same data give the same file on every machine."""
    lower = [[_rounded(value) for value in row[: number + 1]] for number, row in enumerate(model.covariance)]
    body = {
        "provenance": dict(provenance),
        "scales": asdict(model.scales),
        "names": list(model.names),
        "mean": [_rounded(value) for value in model.mean],
        "covariance": lower,
    }
    head = json.dumps({key: body[key] for key in ("provenance", "scales")}, indent=1)[:-2]
    rows = ",\n  ".join(json.dumps(row) for row in lower)
    names, mean = json.dumps(body["names"]), json.dumps(body["mean"])
    lines = [f"{head},", f' "names": {names},', f' "mean": {mean},', ' "covariance": [', f"  {rows}", " ]", "}", ""]
    return "\n".join(lines)


def read(text: str) -> ChipModel:
    """A model from its JSON."""
    body = json.loads(text)
    size = len(body["names"])
    covariance = np.zeros((size, size))
    for number, row in enumerate(body["covariance"]):
        covariance[number, : number + 1] = row
        covariance[: number + 1, number] = row
    return ChipModel(Scales(**body["scales"]), tuple(body["names"]), np.array(body["mean"]), covariance)


def _rounded(value: float) -> float:
    rounded = round(float(value), DIGITS)
    return 0.0 if rounded == 0 else rounded


@cache
def shipped() -> ChipModel:
    """What a fleet starts with. Read once."""
    text = resources.files("rightpool.prediction").joinpath("data", "chips.json").read_text(encoding="utf-8")
    return read(text).of_a_fleet()
