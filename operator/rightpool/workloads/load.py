"""The load of a server's trial: its profiler sends the sample request over loopback, more and more of them at once.

What it is to send stands in an annotation of the trial's template: the trial is a Job, which no client knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rightpool import contract
from rightpool.api.server import ServerWorkload
from rightpool.api.trial_run import TrialRun
from rightpool.api.warm_up import WarmUp
from rightpool.workloads.template import InvalidTemplate, init_containers_of
from rightpool.workloads.warm_up import add_warm_up


def load_annotation(server: ServerWorkload, run: TrialRun) -> dict[str, str]:
    """Of the pods of its trial."""
    assert server.warm_up is not None
    sample = server.warm_up.model_dump(mode="json", by_alias=True, exclude_none=True)
    load = {"port": server.port, "sample": sample, "atOnce": run.load, "seconds": run.measures}
    return {contract.ANNOTATION_LOAD: json.dumps(load)}


def gets_load(template: Mapping[str, Any]) -> bool:
    """Whether these pods are of a server's trial."""
    return contract.ANNOTATION_LOAD in _annotations(template)


def add_load(template: dict[str, Any]) -> None:
    """What the profiler needs for it, in the template of a trial's pods that has the profiler; nothing where nothing is
    to be sent. Raises InvalidTemplate where the profiler is left out, or the annotation can't be read."""
    if not gets_load(template):
        return
    try:
        load = json.loads(_annotations(template)[contract.ANNOTATION_LOAD])
        port, sample = int(load["port"]), WarmUp.model_validate(load["sample"])
        settings = {"at_once": int(load["atOnce"]), "seconds": float(load["seconds"])}
    except (ValueError, KeyError, TypeError):
        raise InvalidTemplate(f"the annotation {contract.ANNOTATION_LOAD} is the operator's: remove it") from None
    add_warm_up(template, port, sample)
    sidecar = next(one for one in init_containers_of(template) if one["name"] == contract.SIDECAR_CONTAINER)
    sidecar["env"].append({"name": contract.ENV_LOAD, "value": json.dumps(settings)})


def _annotations(template: Mapping[str, Any]) -> Mapping[str, str]:
    return (template.get("metadata") or {}).get("annotations") or {}
