"""Restricts pods to nodes of their placement's capacity type, spot or on-demand.

Each cloud has its own label for spot nodes, and a pool may hold nodes of both types. On-demand pods require that a node
has none of these labels, which also works in clusters without spot nodes. Spot pods require one of them.
"""

from itertools import product
from typing import Any, Final

from rightpool.api.placement import CapacityType
from rightpool.hardware.clouds import SPOT_LABELS, SPOT_TAINTS
from rightpool.hardware.pool import Pool
from rightpool.workloads.template import InvalidTemplate, mapping_in, objects_in, pod_spec

_SPOT_TOLERATIONS: Final = tuple(
    {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"} for key, value in SPOT_TAINTS.items()
)


def _spot_terms() -> list[list[dict[str, Any]]]:
    return [[{"key": key, "operator": "In", "values": [value]}] for key, value in SPOT_LABELS.items()]


def _on_demand_terms() -> list[list[dict[str, Any]]]:
    return [[{"key": key, "operator": "NotIn", "values": [value]} for key, value in SPOT_LABELS.items()]]


def spot_tolerations(capacity: CapacityType) -> list[dict[str, Any]]:
    """Tolerations of the taints that mark spot nodes, for a spot placement."""
    return [dict(toleration) for toleration in _SPOT_TOLERATIONS] if capacity is CapacityType.SPOT else []


def require_capacity(template: dict[str, Any], pool: Pool, capacity: CapacityType) -> None:
    """Add the node affinity of a capacity type to the user's own affinity.

    A pool whose node selector has one of the labels is of one type, and its pods need no affinity. A user's node
    selector that contradicts the placement is an error, because the pods would stay pending.
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
    # Terms are alternatives, and all expressions of a term must match. So each user term is combined with each of ours.
    theirs = objects_in(required, "nodeSelectorTerms", f"{path}.{key}", name="")
    ours = _spot_terms() if wants_spot else _on_demand_terms()
    merged = []
    for term, expressions in product(theirs or [{}], ours):
        existing = objects_in(term, "matchExpressions", f"{path}.{key}.nodeSelectorTerms", name="key")
        added = [expression for expression in expressions if expression not in existing]
        merged.append({**term, "matchExpressions": [*existing, *added]})
    required["nodeSelectorTerms"] = merged
