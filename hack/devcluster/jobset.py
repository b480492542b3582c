"""JobSet in a running cluster, by the manifests of its own Go module."""

from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import build, controllers, host, probes
from devcluster.kubectl import Kubectl
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import Cluster

NAMESPACE: Final = "jobset-system"
ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:jobset-controller-manager"
START_SECONDS: Final = 180.0
_MODULE: Final = "sigs.k8s.io/jobset"


def up(cluster: Cluster, progress: Progress) -> None:
    """Install JobSet, building it first where needed, and wait until it answers. Repeating it changes nothing."""
    build.ensure([build.JOBSET], progress)
    supervisor = Supervisor(cluster.state)
    _install(cluster, Kubectl(cluster.kubeconfig))
    program = _program(cluster)
    did = supervisor.ensure(program)
    if did is not None:
        progress.say(f"{program.name} {did}")
    supervisor.wait(program, seconds=START_SECONDS)


def _install(cluster: Cluster, kubectl: Kubectl) -> None:
    overlay = build.source(build.JOBSET, _MODULE) / "config" / "default"
    objects = yaml.safe_load_all(kubectl("kustomize", str(overlay)))
    kubectl.install(controllers.called_at_loopback(cluster, objects, cluster.ports.jobset_webhook))


def _program(cluster: Cluster) -> Program:
    folder, health = cluster.state / "jobset", controllers.address(cluster, cluster.ports.jobset_health)
    controllers.certificate(cluster, "jobset", folder)
    settings, kubeconfig = folder / "config.yaml", folder / "kubeconfig"
    settings.write_text(yaml.safe_dump(_configuration(cluster, folder, health), sort_keys=False))
    controllers.kubeconfig_as(cluster, ACCOUNT, kubeconfig)
    return Program(
        "jobset",
        (str(build.path(build.JOBSET)), f"--config={settings}"),
        ports=(cluster.ports.jobset_health, cluster.ports.jobset_webhook),
        environment={"KUBECONFIG": str(kubeconfig)},
        namespace=cluster.namespace if host.is_root() else None,
        reads=(settings, kubeconfig),
        ready=probes.http(f"http://{health}/readyz"),
    )


def _configuration(cluster: Cluster, folder: Path, health: str) -> dict[str, Any]:
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": health},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": cluster.ports.jobset_webhook, "host": "127.0.0.1", "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
