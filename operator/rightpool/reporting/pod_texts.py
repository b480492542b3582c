"""Pods that hold up a job in words: those that are not its own, and those that have not ended."""

from rightpool.api.wording import instant, sentence
from rightpool.contract import LABEL_REVISION
from rightpool.planning.jobs.foreign_pod import ForeignPod
from rightpool.planning.jobs.unended import Unended


def foreign_pod_text(pod: ForeignPod) -> str:
    """Which pod it is, and the remedy."""
    text = f"pod {pod.name} has the labels of r{pod.revision} and is not its own"
    return f"{text}: delete it, or remove its label {LABEL_REVISION}"


def unended_text(unended: Unended) -> str:
    """What it is, why nothing goes on, and the remedy."""
    pod = unended.pod
    if pod is None:
        text = f"r{unended.revision} was told to end at {instant(unended.since)}, is still there, and may still save"
        return sentence(text, remedy="see its metadata.finalizers and Events")
    where = "" if pod.node is None else f" on {pod.node}"
    lost = "" if pod.node is None else f"`kubectl delete node {pod.node}` if it is lost, else "
    remedy = f"{lost}`kubectl delete pod {pod.name} --force` if its program has ended"
    return sentence(f"pod {pod.name}{where} should have ended by {instant(pod.due)}", remedy=remedy)
