"""Pods that hold up a job in words: those that are not its own, and those that have not ended."""

from rightpool.api.wording import instant
from rightpool.contract import LABEL_REVISION
from rightpool.planning.jobs.foreign_pod import ForeignPod
from rightpool.planning.jobs.unended import Unended


def foreign_pod_text(pod: ForeignPod) -> str:
    """Which pod it is, and the remedy."""
    return (
        f"pod {pod.name} has the labels of r{pod.revision}, but does not belong to its child. Nothing is started "
        f"beside it: delete the pod, or remove its label {LABEL_REVISION}"
    )


def unended_text(unended: Unended) -> str:
    """What it is, why nothing goes on, and the remedy."""
    waits = "nothing is started while it may still write to the checkpoint"
    pod = unended.pod
    if pod is None:
        return (
            f"r{unended.revision} was told to end at {instant(unended.since)}, and is still there; {waits}. Its "
            "child's metadata.finalizers and Events show what holds it. Check that Kubernetes' garbage collector runs"
        )
    where = "" if pod.node is None else f" on node {pod.node}"
    node = "" if pod.node is None else f"if the node is lost, delete it (`kubectl delete node {pod.node}`); "
    return (
        f"pod {pod.name} of r{unended.revision}{where} should have ended by {instant(pod.due)}, and is still there; "
        f"{waits}. To go on, {node}if you are sure that its program has ended, "
        f"`kubectl delete pod {pod.name} --grace-period=0 --force`"
    )
