"""Spot and on-demand nodes: keeping pods on the kind of capacity that was decided on and paid for.

Clouds mark spot nodes with labels of their own, and a pool may hold nodes of both kinds. On-demand is "none of the
spot labels", which holds on clusters without such labels too. Spot is "any of them": on nodes that no label marks as
spot, nothing may be placed as spot.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from rightpool.hardware.placement import CapacityType
from rightpool.hardware.pool import Pool
from rightpool.workloads.template import InvalidTemplate, mapping_in, objects_in, pod_spec

SPOT_LABELS: Final[Mapping[str, str]] = {
    "karpenter.sh/capacity-type": "spot",
    "cloud.google.com/gke-spot": "true",
    "eks.amazonaws.com/capacityType": "SPOT",
    "kubernetes.azure.com/scalesetpriority": "spot",
}

# Taints that clouds put on spot nodes. Tolerated where spot was decided on.
_SPOT_TOLERATIONS: Final = tuple(
    {"key": key, "operator": "Equal", "value": SPOT_LABELS[key], "effect": "NoSchedule"}
    for key in ("cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority")
)


def _spot_terms() -> list[list[dict[str, Any]]]:
    return [[{"key": key, "operator": "In", "values": [value]}] for key, value in SPOT_LABELS.items()]


def _on_demand_terms() -> list[list[dict[str, Any]]]:
    return [[{"key": key, "operator": "NotIn", "values": [value]} for key, value in SPOT_LABELS.items()]]


def spot_tolerations(capacity: CapacityType) -> list[dict[str, Any]]:
    """Tolerations of the taints that mark spot nodes, for a spot placement."""
    return [dict(toleration) for toleration in _SPOT_TOLERATIONS] if capacity is CapacityType.SPOT else []


def require_capacity(template: dict[str, Any], pool: Pool, capacity: CapacityType) -> None:
    """Adds the node affinity of a kind of capacity to the user's own.

    A pool whose node selector names one of the labels is of one kind as a whole, and needs nothing. A user whose node
    selector contradicts the placement would wait for ever, and is told.
    """
    spec = pod_spec(template)
    wants_spot = capacity is CapacityType.SPOT
    selector = mapping_in(spec, "nodeSelector", "template.spec")
    for key, spot in SPOT_LABELS.items():
        if key in selector and key not in pool.node_selector and (selector[key] == spot) != wants_spot:
            raise InvalidTemplate(
                f"template.spec.nodeSelector asks for {key}={selector[key]}, and the placement is {capacity}: "
                "say which capacity with spec.placement.capacity instead"
            )
    if SPOT_LABELS.keys() & pool.node_selector.keys():
        return
    affinity = mapping_in(mapping_in(spec, "affinity", "template.spec"), "nodeAffinity", "template.spec.affinity")
    path = "template.spec.affinity.nodeAffinity"
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    required = mapping_in(affinity, key, path)
    # Terms are alternatives, and the expressions of one term all hold: "theirs and ours" is every pair of both.
    theirs = objects_in(required, "nodeSelectorTerms", f"{path}.{key}", name="")
    ours = _spot_terms() if wants_spot else _on_demand_terms()
    merged = []
    for term, expressions in product(theirs or [{}], ours):
        existing = objects_in(term, "matchExpressions", f"{path}.{key}.nodeSelectorTerms", name="key")
        added = [expression for expression in expressions if expression not in existing]
        merged.append({**term, "matchExpressions": [*existing, *added]})
    required["nodeSelectorTerms"] = merged
