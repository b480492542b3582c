"""Pods that are not a job's own in words."""

from rightpool.contract import LABEL_REVISION
from rightpool.planning.foreign_pod import ForeignPod


def foreign_pod_text(pod: ForeignPod) -> str:
    """Which pod it is, and the remedy."""
    return (
        f"pod {pod.name} has the labels of r{pod.revision}, but does not belong to its child. Nothing is started "
        f"beside it: delete the pod, or remove its label {LABEL_REVISION}"
    )
