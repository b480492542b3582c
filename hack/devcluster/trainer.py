"""Kubeflow Trainer in a running cluster, by the manifests of its own Go module, beside JobSet, which it needs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import build, controllers, host, jobset, probes
from devcluster.kubectl import Kubectl
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import Cluster

NAMESPACE: Final = "kubeflow-system"
START_SECONDS: Final = 180.0
_MODULE: Final = "github.com/kubeflow/trainer/v2"
_NAME: Final = "kubeflow-trainer-controller-manager"
_ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:{_NAME}"
# The module's overlays fetch JobSet's manifests from the network.
_MANIFESTS: Final = (
    "crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
    "crds/trainer.kubeflow.org_trainingruntimes.yaml",
    "crds/trainer.kubeflow.org_trainjobs.yaml",
    "rbac/service_account.yaml",
    "rbac/role.yaml",
    "rbac/role_binding.yaml",
    "webhook/manifests.yaml",
)


def up(cluster: Cluster, progress: Progress) -> None:
    """Install JobSet and Trainer, building them first where needed, and wait until both answer. Repeating it changes
    nothing."""
    jobset.up(cluster, progress)
    build.ensure([build.TRAINER], progress)
    supervisor = Supervisor(cluster.state)
    objects = controllers.called_at_loopback(cluster, _objects(), cluster.ports.trainer_webhook)
    Kubectl(cluster.kubeconfig).install(objects)
    program = _program(cluster)
    did = supervisor.ensure(program)
    if did is not None:
        progress.say(f"{program.name} {did}")
    supervisor.wait(program, seconds=START_SECONDS)


def _base() -> Path:
    return build.source(build.TRAINER, _MODULE) / "manifests" / "base"


def _objects() -> Iterator[dict[str, Any]]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    for file in _MANIFESTS:
        for item in yaml.safe_load_all((_base() / file).read_text()):
            if item is None:
                continue
            if item["kind"] == "ServiceAccount":
                item["metadata"]["namespace"] = NAMESPACE
            for subject in item.get("subjects") or ():
                subject["namespace"] = NAMESPACE
            if item.get("webhooks"):
                item["metadata"]["name"] = f"trainer-{item['metadata']['name']}"
            yield item


def _program(cluster: Cluster) -> Program:
    folder, health = cluster.state / "trainer", controllers.address(cluster, cluster.ports.trainer_health)
    # It looks there, below the folder of temporary files.
    controllers.certificate(cluster, "trainer", folder / "k8s-webhook-server" / "serving-certs")
    settings, kubeconfig = folder / "config.yaml", folder / "kubeconfig"
    settings.write_text(yaml.safe_dump(_configuration(cluster, health), sort_keys=False))
    controllers.kubeconfig_as(cluster, _ACCOUNT, kubeconfig)
    return Program(
        "trainer",
        (str(build.path(build.TRAINER)), f"--config={settings}"),
        ports=(cluster.ports.trainer_health, cluster.ports.trainer_webhook),
        environment={"KUBECONFIG": str(kubeconfig), "TMPDIR": str(folder)},
        namespace=cluster.namespace if host.is_root() else None,
        reads=(settings, kubeconfig),
        ready=probes.http(f"http://{health}/readyz"),
    )


def _configuration(cluster: Cluster, health: str) -> dict[str, Any]:
    return {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": health},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": cluster.ports.trainer_webhook, "host": "127.0.0.1"},
        "leaderElection": {"leaderElect": False},
        "certManagement": {"enable": False},
    }
