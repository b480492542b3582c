"""The JSON schema of the contract's metrics: which there are, their labels, and what their values can be.

A page is described as an object from names of metrics to lists of series, each with `labels` and a `value`.
"""

from __future__ import annotations

import json
from typing import Any

from rightpool import contract
from tools.chartdocs.metrics import names_of_jobs

_TEXT: Any = {"type": "string"}
_DEGREE: Any = {"type": "string", "pattern": "^[0-9]+$"}
_CHIP: Any = {contract.LABEL_CHIP: _TEXT}


def _one_of(*values: str) -> Any:
    return {"enum": list(values)}


_LABELS: dict[str, Any] = {
    contract.CHIP_PIPE: _CHIP | {contract.LABEL_PIPE: _one_of(*contract.PIPES)},
    contract.CHIP_THROTTLE: _CHIP | {contract.LABEL_REASON: _one_of(*contract.REASONS)},
    contract.CHIP_ERRORS: _CHIP | {contract.LABEL_KIND: _one_of(*contract.ERRORS)},
    contract.CHIP_INFO: _CHIP
    | {
        contract.LABEL_NAME: _TEXT,
        contract.LABEL_RANK: _DEGREE,
        contract.LABEL_SHARING: _one_of(*contract.SHARINGS),
    },
    contract.LINK_BYTES: _CHIP
    | {
        contract.LABEL_LINK: _one_of(*contract.LINKS_PEER, contract.LINK_PCIE),
        contract.LABEL_DIRECTION: _one_of(contract.DIRECTION_SENT, contract.DIRECTION_RECEIVED),
    },
    contract.STEP_SHARE: {contract.LABEL_PART: _one_of(*contract.PARTS), contract.LABEL_RANK: _DEGREE},
    contract.MODEL_INFO: dict.fromkeys(contract.MODEL_WORDS, _TEXT) | dict.fromkeys(contract.MODEL_DEGREES, _DEGREE),
    contract.SOURCE_UP: {"source": _TEXT},
    contract.FIELD_QUALITY: {
        "field": _TEXT,
        "quality": _one_of(contract.QUALITY_MEASURED, contract.QUALITY_DERIVED, contract.QUALITY_MISSING),
    },
    "rightpool_profiler_datagrams_total": {"result": _TEXT},
}
# Labels that a series of the metric may lack.
_OPTIONAL = {
    contract.CHIP_INFO: {contract.LABEL_NAME, contract.LABEL_RANK, contract.LABEL_SHARING},
    contract.STEP_SHARE: {contract.LABEL_RANK},
    contract.MODEL_INFO: {*contract.MODEL_WORDS, *contract.MODEL_DEGREES},
}


def schema() -> dict[str, Any]:
    """The schema of a sidecar's page."""
    metrics: dict[str, Any] = {}
    for name in names_of_jobs():
        if name == contract.STEP_SECONDS:
            metrics[f"{name}_bucket"] = _series({"le": _TEXT}, set(), {"minimum": 0})
            metrics[f"{name}_sum"] = metrics[f"{name}_count"] = _series({}, set(), {"minimum": 0})
            continue
        labels = _LABELS.get(name, _CHIP if name.startswith("rightpool_chip_") else {})
        metrics[name] = _series(labels, _OPTIONAL.get(name, set()), _values(name))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Metrics of a pod's profiler",
        "type": "object",
        "properties": metrics,
        "additionalProperties": False,
    }


def _values(name: str) -> dict[str, Any]:
    if name.endswith("_ratio"):
        return {"minimum": 0, "maximum": 1}
    if name.endswith("_info") or name == contract.FIELD_QUALITY:
        return {"const": 1}
    if name == contract.CHIP_REPAIR:
        return {"enum": [0, 1, 2]}
    return {"minimum": 0}


def _series(labels: dict[str, Any], optional: set[str], value: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "labels": {
                    "type": "object",
                    "properties": labels,
                    "required": sorted(labels.keys() - optional),
                    "additionalProperties": False,
                },
                "value": {"type": "number", **value},
            },
            "required": ["labels", "value"],
            "additionalProperties": False,
        },
    }


def text() -> str:
    """As it is written to docs/metrics.schema.json."""
    return json.dumps(schema(), indent=2) + "\n"
