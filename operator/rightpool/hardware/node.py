"""A node as hardware sees it: labels, taints and chips."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rightpool.api.value_object import value_object

# Effects that keep a pod away; PreferNoSchedule does not.
REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})

NodeResource = tuple[str, str]
"""Name of a Node and of an extended resource that it offers, such as ("gpu-7", "nvidia.com/mig-1g.10gb")."""


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A taint as in `spec.taints` of a node."""

    key: str
    """What a toleration has to name."""
    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute."""
    value: str = ""
    """Empty where it has none."""


@value_object
class NodeFacts:
    """What discovery and the inventory need of a Node. It is untrusted: nodes and their kubelets may write anything."""

    name: str
    """Name of the Node."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """All its labels."""

    taints: tuple[Taint, ...] = ()
    """All its taints."""

    chips: Mapping[str, int] = field(default_factory=dict)
    """Allocatable extended resources by name, whole numbers (`nvidia.com/gpu` → 8). Not all of them are chips."""

    host: Mapping[str, int] = field(default_factory=dict)
    """Allocatable resources that are no extended ones, such as memory; CPUs in thousandths."""

    ready: bool = True
    """Its condition Ready."""

    unschedulable: bool = False
    """Whether it is cordoned."""


def tolerates(tolerations: Iterable[Mapping[str, Any]], taint: Taint) -> bool:
    """Whether a pod with these tolerations may be scheduled past the taint, by the rules of the Kubernetes scheduler.

    An empty key with operator Exists matches every taint, an empty effect every effect; the operator defaults to Equal.
    """
    if taint.effect not in REPELLING:
        return True
    for toleration in tolerations:
        effect = toleration.get("effect") or ""
        if effect and effect != taint.effect:
            continue
        key = toleration.get("key") or ""
        exists = toleration.get("operator", "Equal") == "Exists"
        if not key:
            if exists:
                return True
            continue
        if key == taint.key and (exists or (toleration.get("value") or "") == taint.value):
            return True
    return False


def repelled_by(node: NodeFacts, tolerations: Iterable[Mapping[str, Any]]) -> Taint | None:
    """The first taint of the node that keeps a pod with these tolerations away, None where there is none."""
    if not node.taints:
        return None
    tolerations = tuple(tolerations)
    return next((taint for taint in node.taints if not tolerates(tolerations, taint)), None)
