"""JobSet in a running cluster, by the manifests of its own Go module.

The controller runs as a process beside the API server instead of as the module's Deployment, with the rights of that
one's service account. Its webhooks are called at a port of loopback, with a certificate of the cluster's own CA.
"""

import base64
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import build, host, pki, probes
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
    kubectl.install(_adapted(cluster, yaml.safe_load_all(kubectl("kustomize", str(overlay)))))


def _adapted(cluster: Cluster, objects: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    authority = base64.b64encode((pki.folder(cluster) / "ca.crt").read_bytes()).decode()
    for item in objects:
        if item["kind"] == "Deployment":
            continue
        for webhook in item.get("webhooks") or ():
            path = webhook["clientConfig"]["service"]["path"]
            url = f"https://127.0.0.1:{cluster.ports.jobset_webhook}{path}"
            webhook["clientConfig"] = {"url": url, "caBundle": authority}
        yield item


def _program(cluster: Cluster) -> Program:
    folder = cluster.state / "jobset"
    health = f"{cluster.node_ip if host.is_root() else '127.0.0.1'}:{cluster.ports.jobset_health}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    certificate = pki.server_certificate(cluster, "jobset")
    for suffix, name in ((".crt", "tls.crt"), (".key", "tls.key")):
        shutil.copy(certificate.with_suffix(suffix), folder / name)
    settings = folder / "config.yaml"
    settings.write_text(yaml.safe_dump(_configuration(cluster, folder, health), sort_keys=False))
    kubeconfig = folder / "kubeconfig"
    client = yaml.safe_load(pki.kubeconfig(cluster, "admin").read_text())
    client["users"][0]["user"]["as"] = ACCOUNT
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(yaml.safe_dump(client, sort_keys=False))
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
