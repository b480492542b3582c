"""Pods that are not a job's own in words."""

from rightpool.contract import LABEL_REVISION
from rightpool.planning.foreign_pod import ForeignPod


def foreign_pod_text(pod: ForeignPod) -> str:
    """Which pod it is, and the remedy."""
    return (
        f"pod {pod.name} has the labels of r{pod.revision} and is not its child's, and nothing is started beside it: "
        f"delete the pod, or take the label {LABEL_REVISION} off it"
    )
