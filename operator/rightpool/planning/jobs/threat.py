"""Pods that Kubernetes is about to end, though nobody here asked for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Threat:
    """To the current Revision: a node is drained, or a pod is evicted or preempted."""

    pods: int
    """How many are about to be lost, 1 or more."""

    node: str | None = None
    """The first by name of the nodes that are drained; None where the pods themselves are evicted."""

    cause: str | None = None
    """Kubernetes' words about who evicts or preempts a pod; None where it has none."""
