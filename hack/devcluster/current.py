"""An existing cluster, named by KUBECONFIG, instead of a devcluster (`--use-current`)."""

import os
import re
import shutil
from pathlib import Path
from typing import Final

from devcluster import build, simulated
from devcluster.kubectl import Kubectl
from devcluster.progress import Progress
from devcluster.spec import DevclusterError

OLDEST: Final = (1, 29)  # native sidecars are on by default from here


def use(progress: Progress) -> Path:
    """Check that the cluster can be used; add simulated nodes if kwok runs in it."""
    named = os.environ.get("KUBECONFIG")
    if not named:
        raise DevclusterError("--use-current needs KUBECONFIG to name the cluster")
    kubeconfig = Path(named)
    if not kubeconfig.is_file():
        raise DevclusterError(f"KUBECONFIG names {named}, which is not a file")
    program = shutil.which("kubectl") or str(build.ensure([_kubectl()], progress) / "kubectl")
    kubectl = Kubectl(kubeconfig, program)
    version = kubectl.json("version", "--request-timeout=10s")["serverVersion"]
    found = (int(version["major"]), int(re.sub(r"\D.*", "", version["minor"])))
    if found < OLDEST:
        raise DevclusterError(f"the cluster is Kubernetes {version['gitVersion']}; native sidecars need 1.29 or newer")
    progress.say(f"Kubernetes {version['gitVersion']} answers")
    if _has_kwok(kubectl):
        for pool in simulated.POOLS.values():
            simulated.ensure_nodes(kubectl, pool, 1)
        progress.say("kwok is there: one simulated node in each pool")
    else:
        progress.say("not available: simulated nodes (no kwok in this cluster)")
    progress.say("not provided for a cluster that is not ours: Prometheus, the replay of simulated pods, image loading")
    return kubeconfig


def _kubectl() -> build.Component:
    return next(component for component in build.CONTROL_PLANE if component.name == "kubectl")


def _has_kwok(kubectl: Kubectl) -> bool:
    """Whether kwok runs as a Deployment or has simulated nodes already."""
    deployments = kubectl("get", "deployments", "--all-namespaces", "--output=name")
    nodes = kubectl.json("get", "nodes")["items"]
    fake = any(node["metadata"].get("annotations", {}).get("kwok.x-k8s.io/node") == "fake" for node in nodes)
    return fake or "kwok" in deployments
