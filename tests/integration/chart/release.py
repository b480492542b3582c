"""A release of the chart in a real cluster, and a job that it must not affect."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import build, deps, host, recipes
from devcluster import cluster as clusters
from devcluster.cluster import Running
from devcluster.kubectl import Kubectl
from devcluster.progress import Progress
from devcluster.recipes import Built
from devcluster.spec import Cluster, DevclusterError
from tests.patience import PATIENCE, eventually

CHART = Path(__file__).parents[3] / "charts" / "rightpool"
NAME = "rightpool"
SYSTEM = "rightpool-system"
OPERATORS = "app.kubernetes.io/name=rightpool"
HELM_WAITS = f"--timeout={PATIENCE:.0f}s"
# A field of the spec that the previous version lacks, and its column.
FIELD, COLUMN = "queueName", "Queue"

Object = dict[str, Any]

DEV_POOL: Object = {
    "apiVersion": "rightpool.dev/v1alpha1",
    "kind": "AcceleratorPool",
    "metadata": {"name": "dev"},
    "spec": {
        "accelerator": "CPU",
        "chipsPerNode": 2,
        "resourceName": "rightpool.dev/cpu-chip",
        "nodeSelector": {"kubernetes.io/hostname": "node-0"},
        "price": {"perChipHour": "0.05"},
    },
}
"""The cluster's real node, for pods that run."""


def previous_chart(folder: Path) -> Path:
    """The chart of a previous version, with an older definition."""
    chart = folder / "previous"
    shutil.copytree(CHART, chart)  # the definitions are links, and are copied as files
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.0.9"}))
    path = chart / "files" / "crds" / "rightpool.dev_profiledjobs.yaml"
    definition = yaml.safe_load(path.read_text())
    for version in definition["spec"]["versions"]:
        kept = [column for column in version["additionalPrinterColumns"] if column["name"] != COLUMN]
        assert len(kept) < len(version["additionalPrinterColumns"])
        version["additionalPrinterColumns"] = kept
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        del spec["properties"][FIELD]
        rules = [rule for rule in spec["x-kubernetes-validations"] if rule.get("fieldPath") != f".{FIELD}"]
        spec["x-kubernetes-validations"] = rules
    path.write_text(yaml.safe_dump(definition))
    return chart


@contextmanager
def cluster_with_images(cluster: Cluster, folder: Path, *, kept: bool) -> Iterator[tuple[Running, dict[str, Built]]]:
    """A cluster, and this checkout's images in it. Their values are in the folder. kept: leave it up."""
    if not host.is_root() or deps.missing(root=True):
        pytest.skip("real pods need root and the packages of `python -m devcluster deps`")
    quiet = Progress(quiet=True)
    images = recipes.build_all(("operator", "profiler"), folder, quiet)
    try:
        running = clusters.up(cluster, quiet)
        running.load_images(*(image.archive for image in images.values()))
        yield running, images
    finally:
        if not kept:
            clusters.down(cluster)


@dataclass(frozen=True)
class Release:
    """The release, by helm and kubectl. images: the values that pin them by digest."""

    cluster: Running
    images: Path

    @property
    def kubectl(self) -> Kubectl:
        return self.cluster.kubectl

    def helm(self, *arguments: str) -> str:
        """Run helm. Errors include the state of the operator's pods."""
        command = [build.binary("helm"), f"--kubeconfig={self.cluster.kubeconfig}", f"--namespace={SYSTEM}", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)
        assert result.returncode == 0, f"{result.stdout}\n{result.stderr}\n{self.operators()}"
        return result.stdout

    def install(self, chart: Path, *values: str) -> None:
        usual = ("planner.interval=1", "log.format=text", f"prometheus.url={self.cluster.prometheus_url}")
        chosen = [part for value in (*usual, *values) for part in ("--set", value)]
        self.helm(*("upgrade", "--install", NAME, str(chart), "--wait", HELM_WAITS, f"--values={self.images}"), *chosen)

    def operators(self) -> str:
        """The state of the operator's pods, for error messages."""
        listed = self.kubectl("get", "pods", f"--namespace={SYSTEM}", "--output=wide")
        events = self.kubectl("events", f"--namespace={SYSTEM}", "--types=Warning")
        logs = self.kubectl("logs", f"--namespace={SYSTEM}", f"--selector={OPERATORS}", "--prefix", "--tail=20")
        return f"{listed}\n{events}\n{logs}"

    def until_defined(self, *, new: bool) -> None:
        """Wait until the API server accepts a job with the new field and shows its column; or neither."""

        def taken_and_shown() -> tuple[bool, bool]:
            definition = self.kubectl.json("get", "crd", "profiledjobs.rightpool.dev")
            columns = {column["name"] for column in definition["spec"]["versions"][0]["additionalPrinterColumns"]}
            job = Workload(self.kubectl, "research", "queued").body()
            job["spec"][FIELD] = "team-a"
            try:
                self.kubectl("create", "--dry-run=server", "--validate=strict", "-f-", stdin=json.dumps(job))
            except DevclusterError as error:
                assert f'unknown field "spec.{FIELD}"' in str(error), str(error)
                return False, COLUMN in columns
            return True, COLUMN in columns

        eventually(lambda: taken_and_shown() == (new, new), lambda: f"not {new=}: {taken_and_shown()}")

    def key(self) -> str:
        return str(self.kubectl.json("get", "secret", f"--namespace={SYSTEM}", "rightpool-sidecar-key")["data"]["key"])

    def leader(self) -> str:
        """The pod that holds the Lease; empty if there is none."""
        leases = self.kubectl.json("get", "leases", f"--namespace={SYSTEM}")["items"]
        return next((str(lease["spec"].get("holderIdentity") or "") for lease in leases), "")

    def pods(self) -> set[str]:
        """Names of the operator's pods that are not being deleted."""
        listed = self.kubectl.json("get", "pods", f"--namespace={SYSTEM}", f"--selector={OPERATORS}")["items"]
        return {pod["metadata"]["name"] for pod in listed if "deletionTimestamp" not in pod["metadata"]}

    def restarts(self) -> dict[str, tuple[int, bool]]:
        """How often the container of each of the operator's pods was started again, and whether it is ready."""
        listed = self.kubectl.json("get", "pods", f"--namespace={SYSTEM}", f"--selector={OPERATORS}")["items"]
        states = {pod["metadata"]["name"]: pod["status"]["containerStatuses"][0] for pod in listed}
        return {name: (int(state["restartCount"]), bool(state["ready"])) for name, state in states.items()}

    def processes(self) -> dict[str, set[int]]:
        """Processes of the operator's containers, by container. Asked of the host: the API server may be away.

        Only those of this cluster: operators of other clusters run on the same host.
        """
        pods = f"/{self.cluster.spec.cgroup}/kubepods/"
        found: dict[str, set[int]] = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                command, group = (path / "cmdline").read_bytes().split(b"\0"), (path / "cgroup").read_text()
            except OSError:
                continue
            if b"operator" in command[1:] and any(b"rightpool" in word for word in command) and pods in group:
                found.setdefault(group, set()).add(int(path.name))
        return found

    def until_led(self) -> None:
        """Wait until an existing pod is leader."""
        eventually(lambda: self.leader() in self.pods(), lambda: f"{self.leader()!r} leads\n{self.operators()}")

    def refused(self) -> set[str]:
        """The operator's forbidden requests in the API server's audit log."""
        user = f"system:serviceaccount:{SYSTEM}:{NAME}"
        found = set()
        for line in (self.cluster.spec.logs / "audit.log").read_text().splitlines():
            event = json.loads(line)
            if event["user"]["username"] == user and event.get("responseStatus", {}).get("code") == 403:
                found.add(f"{event['verb']} {event['requestURI'].partition('?')[0]}")
        return found

    def rendered(self) -> list[Object]:
        """The manifests that helm has stored of the release."""
        return [item for item in yaml.safe_load_all(self.helm("get", "manifest", NAME)) if item]

    def live(self, item: Object) -> Object:
        where = item["metadata"].get("namespace")
        scope = [f"--namespace={where}"] if where else []
        group, _, version = item["apiVersion"].rpartition("/")
        kind = f"{item['kind']}.{version}.{group}" if group else item["kind"]
        return self.kubectl.json("get", kind, item["metadata"]["name"], *scope)


@dataclass(frozen=True)
class Workload:
    """A ProfiledJob whose pods run on simulated nodes."""

    kubectl: Kubectl
    namespace: str
    name: str

    def body(self) -> Object:
        template = {
            "metadata": {"annotations": {"simulation.rightpool.dev/workload": "resnet50"}},
            "spec": {"containers": [{"name": "trainer", "image": "example.com/train:1"}]},
        }
        spec = {
            "workload": {"job": {"replicas": 1, "chipsPerReplica": 8, "template": template}},
            "placement": {"pools": {"allow": ["a100"]}},
            "elasticity": {"minChips": 8, "maxChips": 8},
            "profiling": {"interval": "2s", "window": "30s"},  # most panels are empty until the first window is full
            "adaptation": {"mode": "Recommend"},
        }
        metadata = {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": "rightpool.dev/v1alpha1", "kind": "ProfiledJob", "metadata": metadata, "spec": spec}

    def start(self) -> None:
        self.kubectl.apply([self.body()])

    def identity(self) -> Object:
        """The uids of the job, its child and its pods, which change if any of them is replaced."""
        return {kind: sorted(self._identities(kind)) for kind in ("profiledjobs", "jobs", "pods")}

    def _identities(self, kind: str) -> Iterator[str]:
        selector = [] if kind == "profiledjobs" else [f"--selector=rightpool.dev/profiledjob={self.name}"]
        for item in self.kubectl.json("get", kind, f"--namespace={self.namespace}", *selector)["items"]:
            about, status = item["metadata"], item["status"]
            seen = {
                "name": about["name"],
                "uid": about["uid"],
                "generation": about.get("generation"),
                "deleted": about.get("deletionTimestamp"),
                "revision": status.get("placement", {}).get("revision"),
                "began": status.get("startTime"),
                "phase": status.get("phase"),
                "restarts": [container["restartCount"] for container in status.get("containerStatuses", [])],
            }
            yield json.dumps(seen, sort_keys=True)

    def runs(self) -> bool:
        pods = self.kubectl.json("get", "pods", f"--namespace={self.namespace}")["items"]
        return bool(pods) and all(pod["status"].get("phase") == "Running" for pod in pods)

    def placed(self) -> bool:
        """Whether the operator has reported that it runs."""
        job = self.kubectl.json("get", "profiledjob", self.name, f"--namespace={self.namespace}")
        conditions = job.get("status", {}).get("conditions", [])
        return any(condition["type"] == "Placed" and condition["status"] == "True" for condition in conditions)


def differences(rendered: Any, live: Any, path: str = "") -> list[str]:
    """Fields that the API server stores otherwise than rendered, which a GitOps controller would report as drift."""
    if isinstance(rendered, dict) and isinstance(live, dict):
        return [d for key in rendered for d in differences(rendered[key], live.get(key), f"{path}.{key}")]
    if isinstance(rendered, list) and isinstance(live, list) and len(rendered) == len(live):
        return [
            d
            for number, (one, other) in enumerate(zip(rendered, live, strict=True))
            for d in differences(one, other, f"{path}[{number}]")
        ]
    return [] if rendered == live else [f"{path}: {rendered!r} is stored as {live!r}"]
