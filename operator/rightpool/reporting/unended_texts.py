"""What has not ended in words."""

from rightpool.planning.unended import Unended
from rightpool.reporting.wording import instant


def unended_text(unended: Unended) -> str:
    """What it is, why nothing goes on, and the remedy."""
    waits = "nothing is started while it may still write to the checkpoint"
    pod = unended.pod
    if pod is None:
        return (
            f"r{unended.revision} is to end since {instant(unended.since)}, and is still there; {waits}. See in its "
            "child's metadata.finalizers and Events what holds it, and that Kubernetes' garbage collector runs"
        )
    where = "" if pod.node is None else f" on node {pod.node}"
    node = "" if pod.node is None else f"if the node is lost, delete it (`kubectl delete node {pod.node}`); "
    return (
        f"pod {pod.name} of r{unended.revision}{where} was to be gone by {instant(pod.due)}, and is still there; "
        f"{waits}. To go on, {node}if its program certainly runs no more, "
        f"`kubectl delete pod {pod.name} --grace-period=0 --force`"
    )
