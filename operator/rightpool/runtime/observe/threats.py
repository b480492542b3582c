"""Which pods of a Revision are about to be lost: by their nodes, and by what is known of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rightpool.hardware.clouds import REMOVAL_TAINTS
from rightpool.hardware.node import NodeFacts, Taint, tolerates
from rightpool.planning.jobs.threat import Threat
from rightpool.runtime.observe.facts import PodFacts

# Nodes that do not answer: nobody there could be asked to save, and the taint comes and goes with the network.
_UNREACHABLE: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


def drained_nodes(nodes: Iterable[NodeFacts]) -> Mapping[str, tuple[Taint, ...]]:
    """The nodes that pods are taken from, with the taints that a pod must tolerate to stay; without any, none stays."""
    found: dict[str, tuple[Taint, ...]] = {}
    for node in nodes:
        if node.unschedulable or any(taint.key in REMOVAL_TAINTS for taint in node.taints):
            found[node.name] = ()
        elif evicting := tuple(t for t in node.taints if t.effect == "NoExecute" and t.key not in _UNREACHABLE):
            found[node.name] = evicting
    return found


def threat_to(pods: Iterable[PodFacts], drained: Mapping[str, tuple[Taint, ...]]) -> Threat | None:
    """The threat to these pods of one Revision that nobody ends on purpose; None where there is none."""
    nodes: list[str] = []
    evicted = 0
    causes: list[str] = []
    for pod in pods:
        if pod.done or pod.node is None:
            continue
        if pod.node in drained and _leaves(pod, drained[pod.node]):
            nodes.append(pod.node)
        elif pod.deleting or pod.disrupted:
            evicted += 1
            causes += [] if pod.disruption is None else [pod.disruption]
    if not nodes and not evicted:
        return None
    return Threat(len(nodes) + evicted, min(nodes, default=None), min(causes, default=None))


def _leaves(pod: PodFacts, taints: tuple[Taint, ...]) -> bool:
    return not taints or any(not tolerates(pod.tolerations, taint) for taint in taints)
