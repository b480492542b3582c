"""LeaderWorkerSet in a running cluster, by the manifests of its own Go module."""

from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import build, controllers, host, probes
from devcluster.kubectl import Kubectl
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import Cluster

NAMESPACE: Final = "lws-system"
ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:lws-controller-manager"
START_SECONDS: Final = 180.0
_MODULE: Final = "sigs.k8s.io/lws"


def up(cluster: Cluster, progress: Progress) -> None:
    """Install it, building it first where needed, and wait until it answers: its webhook is asked about every pod.
    Repeating it changes nothing."""
    build.ensure([build.LWS], progress)
    supervisor = Supervisor(cluster.state)
    _install(cluster, Kubectl(cluster.kubeconfig))
    program = _program(cluster)
    did = supervisor.ensure(program)
    if did is not None:
        progress.say(f"{program.name} {did}")
    supervisor.wait(program, seconds=START_SECONDS)


def _install(cluster: Cluster, kubectl: Kubectl) -> None:
    overlay = build.source(build.LWS, _MODULE) / "config" / "default"
    objects = yaml.safe_load_all(kubectl("kustomize", str(overlay)))
    kubectl.install(controllers.called_at_loopback(cluster, objects, cluster.ports.lws_webhook))


def _program(cluster: Cluster) -> Program:
    folder, health = cluster.state / "lws", controllers.address(cluster, cluster.ports.lws_health)
    controllers.certificate(cluster, "lws", folder)
    settings, kubeconfig = folder / "config.yaml", folder / "kubeconfig"
    settings.write_text(yaml.safe_dump(_configuration(cluster, folder, health), sort_keys=False))
    controllers.kubeconfig_as(cluster, ACCOUNT, kubeconfig)
    return Program(
        "lws",
        (str(build.path(build.LWS)), f"--config={settings}", "--leader-elect=false"),
        ports=(cluster.ports.lws_health, cluster.ports.lws_webhook),
        environment={"KUBECONFIG": str(kubeconfig)},
        namespace=cluster.namespace if host.is_root() else None,
        reads=(settings, kubeconfig),
        ready=probes.http(f"http://{health}/readyz"),
    )


def _configuration(cluster: Cluster, folder: Path, health: str) -> dict[str, Any]:
    return {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": health},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": cluster.ports.lws_webhook, "host": "127.0.0.1", "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
