"""The kind `server`: one Deployment for each Revision, behind a Service that stays."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from typing import Any, Final

from rightpool.api.kubernetes import Resource
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.server import ServerWorkload
from rightpool.api.units import unix_time_of
from rightpool.contract import LABEL_ROLE
from rightpool.hardware.pool import Pool
from rightpool.workloads.front import SERVES, beside_of, build_front
from rightpool.workloads.injection import Injection
from rightpool.workloads.kinds.kind import ChildState, Kind, condition_of
from rightpool.workloads.metadata import child_metadata, controller_reference
from rightpool.workloads.metrics_port import name_metrics_port
from rightpool.workloads.names import LABEL_OWNER
from rightpool.workloads.owner import Owner
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.pods import pod_templates
from rightpool.workloads.template import (
    containers_of,
    mapping_in,
    pod_spec,
)
from rightpool.workloads.warm_up import add_warm_up

DEPLOYMENTS: Final = Resource("apps", "v1", "Deployment", "deployments")

_SET: Final = "server"
_HASH: Final = (
    "pod-template-hash"  # which the Deployment's controller gives to pods, and to the name of their ReplicaSet
)


class ServerKind(Kind[ServerWorkload]):
    """Answers requests, for ever."""

    field: Final = "server"
    resource: Final = DEPLOYMENTS
    optional: Final = False
    adoption: Final = None

    def pod_sets(self, workload: ServerWorkload) -> tuple[PodSet, ...]:
        """See Kind."""
        port = None if workload.metrics is None else workload.metrics.port
        warm_up = "" if workload.warm_up is None else f" {workload.warm_up.model_dump_json()}"
        settings = f"{_quiet(workload)} {_grace(workload)} {port}{warm_up}"
        each, chips = workload.chip_container, workload.chips_per_replica
        return (PodSet(_SET, workload.template, each, workload.replicas, chips, settings=settings),)

    def with_template(self, workload: ServerWorkload, template: Mapping[str, Any]) -> ServerWorkload:
        """See Kind."""
        return workload.model_copy(update={"template": template})

    def fronts(
        self, owner: Owner, workload: ServerWorkload, answer: Collection[int], beside: int | None
    ) -> list[dict[str, Any]]:
        """See Kind."""
        name = workload.traffic.service or owner.name
        made = [build_front(owner, name, workload.port, answer)]
        return made if beside is None else [*made, build_front(owner, beside_of(name), workload.port, [beside])]

    def build(
        self,
        owner: Owner,
        workload: ServerWorkload,
        queue_name: str | None,
        ref: Revision,
        pool: Pool,
        injection: Injection | None,
        suspend: bool = False,
    ) -> dict[str, Any]:
        """The manifest of a new Deployment."""
        (template,) = pod_templates(owner, self.pod_sets(workload), ref, pool, injection, None, None).values()
        _drains(template, workload)
        if workload.warm_up is not None:
            add_warm_up(template, workload.port, workload.warm_up)
        if workload.metrics is not None:
            name_metrics_port(template, workload.chip_container, workload.metrics.port)
        metadata = child_metadata(template, owner, ref, queue_name)
        member = f"{owner.uid}.r{ref.revision}"
        template["metadata"]["labels"] |= {LABEL_OWNER: member, **SERVES}
        metadata["labels"] |= {LABEL_ROLE: _SET, LABEL_OWNER: member}
        return {
            "apiVersion": DEPLOYMENTS.api_version,
            "kind": DEPLOYMENTS.kind,
            "metadata": metadata,
            "spec": {
                "replicas": 0 if suspend else ref.placement.replicas,
                "selector": {"matchLabels": {LABEL_OWNER: member}},
                # Whatever rolls its pods, such as `kubectl rollout restart`: as many as before stay ready.
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
                "template": template,
            },
        }

    def observe(self, body: Mapping[str, Any]) -> ChildState:
        """By its spec and whether it is available. It never ends."""
        about, spec, status = (body.get(part) or {} for part in ("metadata", "spec", "status"))
        labels, pods, conditions = about.get("labels") or {}, spec.get("replicas", 1), status.get("conditions") or ()
        available = condition_of(conditions, "Available") or condition_of(conditions, "Available", "False") or {}
        return ChildState(
            suspended=pods == 0,
            succeeded=False,
            failed=False,
            started_at=None
            if pods == 0
            else unix_time_of(available.get("lastTransitionTime") or about.get("creationTimestamp")),
            role=sys.intern(labels.get(LABEL_ROLE, "")),
            members=sys.intern(labels.get(LABEL_OWNER, "")),
            pods=pods,
        )

    def suspension(self, suspend: bool, placement: Placement, unit: int) -> dict[str, Any]:
        """The field that says how many pods there are."""
        return {"spec": {"replicas": 0 if suspend else placement.replicas}}

    def expiry(self, seconds: int) -> dict[str, Any]:
        """See Kind. It has no end, and no such field."""
        return {"spec": {"paused": False}}

    def owner_of(self, pod: Mapping[str, Any], child: str) -> str:
        """See Kind. A ReplicaSet stands between the two, whose name is the Deployment's with the hash, and no label has
        the Deployment's uid: so it is the Revision, which has one Deployment."""
        labels: Mapping[str, str] = pod.get("labels") or {}
        controller = controller_reference(pod)
        group = str(controller.get("apiVersion")).partition("/")[0]
        named = (group, controller.get("kind"), controller.get("name"))
        expected = (DEPLOYMENTS.group, "ReplicaSet", f"{child}-{labels.get(_HASH, '')}")
        return labels.get(LABEL_OWNER, "") if named == expected else ""


SERVER: Final = ServerKind()


def _quiet(workload: ServerWorkload) -> int:
    return math.ceil(workload.drain.quiet.total_seconds())


def _grace(workload: ServerWorkload) -> int:
    """Kubernetes counts it from when a pod leaves the endpoints."""
    return _quiet(workload) + math.ceil(workload.drain.timeout.total_seconds())


def _drains(template: dict[str, Any], workload: ServerWorkload) -> None:
    """A pod that is ended leaves the endpoints, answers on while proxies learn of that, and gets SIGTERM after it."""
    spec, quiet, grace = pod_spec(template), _quiet(workload), _grace(workload)
    own = spec.get("terminationGracePeriodSeconds")
    spec["terminationGracePeriodSeconds"] = max(own, grace) if isinstance(own, int) else grace
    if quiet == 0:
        return
    for container in containers_of(template):
        lifecycle = mapping_in(container, "lifecycle", f"container {container['name']}")
        lifecycle.setdefault("preStop", {"sleep": {"seconds": quiet}})
