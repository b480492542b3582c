"""The pods of a Revision: the user's template with the placement's changes, common to all kinds of children."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.contract import FIELD_MANAGER
from rightpool.hardware.pool import Pool
from rightpool.workloads.capacity import require_capacity, spot_tolerations
from rightpool.workloads.names import LABEL_MANAGED_BY, labels
from rightpool.workloads.owner import Owner
from rightpool.workloads.resources import add_chips
from rightpool.workloads.template import (
    InvalidTemplate,
    chip_container_of,
    containers_of,
    init_containers_of,
    mapping_in,
    normalised,
    objects_in,
    pod_spec,
)

# Tells autoscalers not to evict these pods: only the planner empties a partly used node, by a migration with a
# checkpoint.
_KEEP_RUNNING: Final = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}


class Template(Protocol):
    """The user's part of a child. Chips and replicas come from the placement."""

    @property
    def template(self) -> Mapping[str, Any]: ...

    @property
    def chip_container(self) -> str | None: ...

    @property
    def backoff_limit(self) -> int | None: ...

    @property
    def active_deadline_seconds(self) -> int | None: ...

    @property
    def failure_rules(self) -> Sequence[Mapping[str, Any]]: ...


def pod_template(owner: Owner, workload: Template, ref: Revision, pool: Pool) -> dict[str, Any]:
    """A copy of the user's template with labels, the pool's node selector and tolerations, and chips."""
    placement = ref.placement
    template = normalised(workload.template)
    container = chip_container_of(template, workload.chip_container)
    metadata = mapping_in(template, "metadata", "template")
    pod_labels = mapping_in(metadata, "labels", "template.metadata")
    pod_labels.setdefault(LABEL_MANAGED_BY, FIELD_MANAGER)
    pod_labels.update(labels(owner.name, ref.revision, placement.pool))
    annotations = mapping_in(metadata, "annotations", "template.metadata")
    for key, value in _KEEP_RUNNING.items():
        annotations.setdefault(key, value)

    _place(template, pool, placement)
    add_chips(template, container, pool.resource_name, placement.chips_per_replica)
    for each in (*containers_of(template), *init_containers_of(template)):
        # The kubelet then keeps the end of the log of a container that failed, where the status can show it.
        each.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    return template


def _place(template: dict[str, Any], pool: Pool, placement: Placement) -> None:
    """Restrict the pods to the pool's nodes and the placement's capacity type."""
    spec = pod_spec(template)
    require_capacity(template, pool, placement.capacity)
    selector = mapping_in(spec, "nodeSelector", "template.spec")
    for key, value in pool.node_selector.items():
        if selector.setdefault(key, value) != value:
            raise InvalidTemplate(
                f"template.spec.nodeSelector asks for {key}={selector[key]}, and nodes of pool {pool.name} have "
                f"{key}={value}: remove it, and choose pools with spec.placement.pools"
            )
    tolerations = objects_in(spec, "tolerations", "template.spec", name="")
    added = [dict(toleration) for toleration in pool.tolerations]
    if "/" in pool.resource_name:
        # Nodes with chips are tainted with the resource's name, so that other pods stay away.
        added.append({"key": pool.resource_name, "operator": "Exists", "effect": "NoSchedule"})
    added += spot_tolerations(placement.capacity)
    for toleration in added:
        if toleration not in tolerations:
            tolerations.append(toleration)
