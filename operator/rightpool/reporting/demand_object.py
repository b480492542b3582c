"""The ConfigMap that holds the record of a server's demand."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from rightpool.contract import ANNOTATION_JOB, ANNOTATION_NAMESPACE, LABEL_DEMAND
from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.demand import DemandRecord

DEMAND_PREFIX: Final = "rightpool-demand."


def recorded_server(body: Mapping[str, Any]) -> JobKey | None:
    """The ProfiledJob that such an object is about; None where it does not say."""
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    namespace, name = annotations.get(ANNOTATION_NAMESPACE), annotations.get(ANNOTATION_JOB)
    return JobKey(namespace, name) if namespace and name else None


def demand_object(own: str, key: JobKey, record: DemandRecord, version: str | None) -> dict[str, Any]:
    """The object that holds a server's record. own: the operator's namespace."""
    about: dict[str, Any] = {
        "name": f"{DEMAND_PREFIX}{key.namespace}.{key.name}",
        "namespace": own,
        "labels": {LABEL_DEMAND: "true"},
        "annotations": {ANNOTATION_NAMESPACE: key.namespace, ANNOTATION_JOB: key.name},
    }
    if version is not None:
        about["resourceVersion"] = version
    packed = {name: base64.b64encode(each).decode() for name, each in record.stored().items()}
    return {"metadata": about, "binaryData": packed}


def read_demand(body: Mapping[str, Any]) -> DemandRecord:
    """What such an object holds. Raises ValueError where it can't be read."""
    return DemandRecord.read({name: base64.b64decode(each) for name, each in (body.get("binaryData") or {}).items()})
