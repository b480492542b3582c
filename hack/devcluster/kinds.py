"""Controllers of other kinds of workloads in a running cluster, each by the manifests of its own Go module."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import build, controllers, host, probes
from devcluster.kubectl import Kubectl
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import Cluster

START_SECONDS: Final = 180.0
_TRAINER_SYSTEM: Final = "kubeflow-system"
# Trainer's overlays fetch JobSet's manifests from the network.
_TRAINER_MANIFESTS: Final = (
    "crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
    "crds/trainer.kubeflow.org_trainingruntimes.yaml",
    "crds/trainer.kubeflow.org_trainjobs.yaml",
    "rbac/service_account.yaml",
    "rbac/role.yaml",
    "rbac/role_binding.yaml",
    "webhook/manifests.yaml",
)
# In the folder of temporary files, where Trainer looks for its certificate. Others are told.
_CERTIFICATES: Final = "k8s-webhook-server/serving-certs"


@dataclass(frozen=True)
class Controller:
    """One project's controller. component: its program. module: the Go module with its manifests. account: its service
    account's namespace and name. settings: the API group of its configuration, and the field that says whether it makes
    its own certificates. objects: its manifests. arguments: more of the command line. needs: what must be there."""

    title: str
    component: build.Component
    module: str
    account: tuple[str, str]
    settings: tuple[str, str]
    objects: Callable[[Path, Kubectl], Iterable[dict[str, Any]]]
    arguments: tuple[str, ...] = ()
    needs: tuple["Controller", ...] = ()

    @property
    def name(self) -> str:
        return self.component.name

    def ports(self, cluster: Cluster) -> tuple[int, int]:
        """Those of its health and of its webhooks."""
        return getattr(cluster.ports, f"{self.name}_health"), getattr(cluster.ports, f"{self.name}_webhook")


def up(controller: Controller, cluster: Cluster, progress: Progress) -> None:
    """Install it, and what it needs, building them first where needed, and wait until they answer: some are asked about
    every pod. Repeating it changes nothing."""
    for needed in controller.needs:
        up(needed, cluster, progress)
    build.ensure([controller.component], progress)
    kubectl, supervisor = Kubectl(cluster.kubeconfig), Supervisor(cluster.state)
    objects = controller.objects(build.source(controller.component.module, controller.module), kubectl)
    kubectl.install(controllers.called_at_loopback(cluster, objects, controller.ports(cluster)[1]))
    program = _program(controller, cluster)
    did = supervisor.ensure(program)
    if did is not None:
        progress.say(f"{program.name} {did}")
    supervisor.wait(program, seconds=START_SECONDS)


def _program(controller: Controller, cluster: Cluster) -> Program:
    folder, (health, webhook) = cluster.state / controller.name, controller.ports(cluster)
    controllers.certificate(cluster, controller.name, folder / _CERTIFICATES)
    answers = controllers.address(cluster, health)
    settings, kubeconfig = folder / "config.yaml", folder / "kubeconfig"
    settings.write_text(yaml.safe_dump(_configuration(controller, folder, answers, webhook), sort_keys=False))
    controllers.kubeconfig_as(cluster, f"system:serviceaccount:{':'.join(controller.account)}", kubeconfig)
    return Program(
        controller.name,
        (str(build.path(controller.component)), f"--config={settings}", *controller.arguments),
        ports=(health, webhook),
        environment={"KUBECONFIG": str(kubeconfig), "TMPDIR": str(folder)},
        namespace=cluster.namespace if host.is_root() else None,
        reads=(settings, kubeconfig),
        ready=probes.http(f"http://{answers}/readyz"),
    )


def _configuration(controller: Controller, folder: Path, health: str, webhook: int) -> dict[str, Any]:
    group, certificates = controller.settings
    folder_field = {} if controller is TRAINER else {"certDir": str(folder / _CERTIFICATES)}
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": health},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": webhook, "host": "127.0.0.1", **folder_field},
        "leaderElection": {"leaderElect": False},
        certificates: {"enable": False},
    }


def _overlay(module: Path, kubectl: Kubectl) -> Iterable[dict[str, Any]]:
    return yaml.safe_load_all(kubectl("kustomize", str(module / "config" / "default")))


def _of_trainer(module: Path, kubectl: Kubectl) -> Iterator[dict[str, Any]]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _TRAINER_SYSTEM}}
    for file in _TRAINER_MANIFESTS:
        for item in yaml.safe_load_all((module / "manifests" / "base" / file).read_text()):
            if item is None:
                continue
            if item["kind"] == "ServiceAccount":
                item["metadata"]["namespace"] = _TRAINER_SYSTEM
            for subject in item.get("subjects") or ():
                subject["namespace"] = _TRAINER_SYSTEM
            if item.get("webhooks"):
                item["metadata"]["name"] = f"trainer-{item['metadata']['name']}"
            yield item


JOBSET: Final = Controller(
    "JobSet",
    build.JOBSET,
    "sigs.k8s.io/jobset",
    ("jobset-system", "jobset-controller-manager"),
    ("config.jobset.x-k8s.io", "internalCertManagement"),
    _overlay,
)
LWS: Final = Controller(
    "LeaderWorkerSet",
    build.LWS,
    "sigs.k8s.io/lws",
    ("lws-system", "lws-controller-manager"),
    ("config.lws.x-k8s.io", "internalCertManagement"),
    _overlay,
    arguments=("--leader-elect=false",),
)
TRAINER: Final = Controller(
    "Kubeflow Trainer",
    build.TRAINER,
    "github.com/kubeflow/trainer/v2",
    (_TRAINER_SYSTEM, "kubeflow-trainer-controller-manager"),
    ("config.trainer.kubeflow.org", "certManagement"),
    _of_trainer,
    needs=(JOBSET,),
)
CONTROLLERS: Final = (JOBSET, LWS, TRAINER)
