"""Warm-up of a server: the profiler asks it over loopback, and is ready once it is warm, so that the pod is.

Kubernetes then keeps the pod out of the endpoints, whatever made it: a move, an edit, or more replicas.
"""

from __future__ import annotations

import json
from typing import Any, Final

from rightpool import contract
from rightpool.api.warm_up import WarmUp
from rightpool.workloads.template import InvalidTemplate, init_containers_of, objects_in, pod_spec

_LOOK_SECONDS: Final = 5
# A program of the pod's own, since it can't be kept from an answer by others that connect to the sidecar. Only the
# third look in a row that finds a server cold takes its pod out of the endpoints: a busy node may fail one.
_PROBE: Final = {
    "exec": {"command": ["test", "-e", f"{contract.KEPT_DIR}/{contract.WARM_MARK}"]},
    "periodSeconds": _LOOK_SECONDS,
    "timeoutSeconds": _LOOK_SECONDS,
    "failureThreshold": 3,
}


def add_warm_up(template: dict[str, Any], port: int, wanted: WarmUp) -> None:
    """What the profiler needs for it. port: of the server. Raises InvalidTemplate where the profiler is left out."""
    sidecar = next((one for one in init_containers_of(template) if one["name"] == contract.SIDECAR_CONTAINER), None)
    if sidecar is None:
        raise InvalidTemplate(
            "workload.server.warmUp is done by the profiler, which is left out of pods with hostNetwork: remove either"
        )
    settings = {
        "port": port,
        "method": wanted.method.value,
        "path": wanted.path,
        "content_type": wanted.content_type,
        "requests": wanted.requests,
        "body": None if wanted.body_from is None else f"{contract.WARM_UP_DIR}/{contract.WARM_UP_BODY}",
    }
    sidecar["env"].append({"name": contract.ENV_WARM_UP, "value": json.dumps(settings)})
    sidecar["readinessProbe"] = _PROBE
    sidecar["terminationMessagePolicy"] = "FallbackToLogsOnError"
    if wanted.body_from is None:
        return
    source = wanted.body_from.config_map_key_ref
    sidecar["volumeMounts"].append(
        {"name": contract.WARM_UP_VOLUME, "mountPath": contract.WARM_UP_DIR, "readOnly": True}
    )
    volumes = objects_in(pod_spec(template), "volumes", "template.spec")
    if any(volume["name"] == contract.WARM_UP_VOLUME for volume in volumes):
        raise InvalidTemplate(f"the volume name {contract.WARM_UP_VOLUME} is the profiler's: choose another")
    items = [{"key": source.key, "path": contract.WARM_UP_BODY}]
    # Optional, so that the pod starts and says that it is missing.
    volume = {"name": source.name, "items": items, "optional": True}
    volumes.append({"name": contract.WARM_UP_VOLUME, "configMap": volume})
