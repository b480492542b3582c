"""Kueue in a running cluster, by the manifests of its own Go module.

The manager runs as a process in the cluster's network namespace instead of as the module's Deployment, with the rights
of that one's service account. Its webhooks' Service has an EndpointSlice that names the process, and the certificate
that the manager makes for itself is written to where a kubelet would have mounted it.
"""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import build, controllers, host, probes
from devcluster.kubectl import Kubectl
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import Cluster, DevclusterError

NAMESPACE: Final = "kueue-system"
START_SECONDS: Final = 180.0
_MODULE: Final = "sigs.k8s.io/kueue"
_ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:kueue-controller-manager"
_SERVICE: Final = "kueue-webhook-service"
_CERTIFICATE: Final = "kueue-webhook-server-cert"
# The process replaces the Deployment. The aggregated API of pending workloads is switched off.
_LEFT_OUT: Final = frozenset({"Deployment", "APIService"})


def up(cluster: Cluster, progress: Progress) -> None:
    """Install Kueue, building it first where needed, and wait until it answers. Repeating it changes nothing."""
    if not host.is_root():
        raise DevclusterError("Kueue needs root: its webhooks are reached in the cluster's network namespace")
    build.ensure([build.KUEUE], progress)
    kubectl, supervisor = Kubectl(cluster.kubeconfig), Supervisor(cluster.state)
    _install(cluster, kubectl)
    program = _program(cluster)
    did = supervisor.ensure(program)
    if did is not None:
        progress.say(f"{program.name} {did}")
    _mount_certificate(cluster, kubectl, supervisor)
    supervisor.wait(program, seconds=START_SECONDS)


def _install(cluster: Cluster, kubectl: Kubectl) -> None:
    overlay = build.source(build.KUEUE.module, _MODULE) / "config" / "default"
    kubectl.install(_adapted(cluster, yaml.safe_load_all(kubectl("kustomize", str(overlay)))))


def _adapted(cluster: Cluster, objects: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in objects:
        if item["kind"] in _LEFT_OUT:
            continue
        if item["kind"] == "Service" and item["metadata"]["name"] == _SERVICE:
            item["spec"].pop("selector")  # else Kubernetes would keep the list of its endpoints, and find no pod
            item["spec"]["ports"] = [{"name": "webhook", "port": 443, "targetPort": cluster.ports.kueue_webhook}]
        yield item
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": _SERVICE,
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": _SERVICE},
        },
        "addressType": "IPv4",
        "ports": [{"name": "webhook", "port": cluster.ports.kueue_webhook, "protocol": "TCP"}],
        "endpoints": [{"addresses": [cluster.node_ip], "conditions": {"ready": True}}],
    }


def _folder(cluster: Cluster) -> Path:
    return cluster.state / "kueue"


def _program(cluster: Cluster) -> Program:
    folder, health = _folder(cluster), controllers.address(cluster, cluster.ports.kueue_health)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings = folder / "config.yaml"
    settings.write_text(yaml.safe_dump(configuration(cluster, health), sort_keys=False))
    kubeconfig = folder / "kubeconfig"
    controllers.kubeconfig_as(cluster, _ACCOUNT, kubeconfig)
    return Program(
        "kueue",
        (str(build.path(build.KUEUE)), f"--config={settings}", "--feature-gates=VisibilityOnDemand=false"),
        ports=(cluster.ports.kueue_health, cluster.ports.kueue_webhook),
        environment={"KUBECONFIG": str(kubeconfig)},
        namespace=cluster.namespace,
        reads=(settings, kubeconfig),
        ready=probes.http(f"http://{health}/readyz"),
    )


def configuration(cluster: Cluster, health: str) -> dict[str, Any]:
    """What differs from Kueue's defaults. It manages Jobs, and JobSets and TrainJobs once these are there."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": health},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": cluster.ports.kueue_webhook, "certDir": str(_folder(cluster) / "certificate")},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True},
        "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"]},
    }


def _mount_certificate(cluster: Cluster, kubectl: Kubectl, supervisor: Supervisor) -> None:
    """Write the Secret's files once the manager has filled it."""
    folder, deadline = _folder(cluster) / "certificate", time.monotonic() + START_SECONDS
    folder.mkdir(exist_ok=True, mode=0o700)
    while not (data := kubectl.json("get", "secret", _CERTIFICATE, f"--namespace={NAMESPACE}").get("data")):
        if not supervisor.running("kueue") or time.monotonic() > deadline:
            raise DevclusterError(
                f"kueue made no certificate; {supervisor.log('kueue')} says:\n{supervisor.tail('kueue')}"
            )
        time.sleep(0.2)
    for name in ("tls.key", "tls.crt"):
        temporary = folder / f".{name}"
        temporary.write_bytes(base64.b64decode(data[name]))
        temporary.replace(folder / name)
