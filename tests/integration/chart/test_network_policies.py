"""The chart's NetworkPolicies on a cluster that enforces them, with real connections.

The same ways are tried before kube-router runs, when all of them are open: what is closed later was closed by it. The
operator reads the profilers directly at first, and then a Prometheus. The tests depend on each other, in this order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from devcluster import network_policies, recipes
from devcluster.progress import Progress
from devcluster.spec import CHART as CLUSTER
from rightpool.contract import ANNOTATION_TRACE, LABEL_JOB, SIDECAR_PORT
from tests.patience import eventually

from .release import (
    CHART,
    DEV_POOL,
    HELM_WAITS,
    NAME,
    OPERATORS,
    SYSTEM,
    Object,
    Release,
    Workload,
    cluster_with_images,
)
from .traffic import Place, Way, listener, open_ways, place

pytestmark = pytest.mark.cluster

KUBE_ROUTER: Final = "RIGHTPOOL_KUBE_ROUTER"
TENANT, MONITORING, ELSEWHERE = "research", "monitoring", "elsewhere"
FIRST, LATER = "first", "later"
DIRECTLY: Final = "prometheus.url="
HEALTH, METRICS, PROGRAM, PAGE, HTTPS = 8080, 9090, 29500, 8002, 443
_SCRAPER: Final = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MONITORING}}}
_SOON: Final = {"interval": "1s", "window": "5s"}


@dataclass(frozen=True)
class Site:
    """The release, a real job beside a simulated one, and pods that are neither's."""

    release: Release
    image: str  # the profiler's, for its Python

    def job(self, name: str) -> Object:
        """A job of one real pod, which has a page of metrics as servers do."""
        container = {**listener(self.image, PROGRAM, PAGE), "ports": [{"name": "metrics", "containerPort": PAGE}]}
        spec = {
            "workload": {
                "job": {
                    "replicas": 1,
                    "chipsPerReplica": 1,
                    "template": {"spec": {"containers": [container]}},
                }
            },
            "placement": {"pools": {"allow": ["dev"]}},
            "profiling": _SOON,
        }
        metadata = {"name": name, "namespace": TENANT}
        return {"apiVersion": "rightpool.dev/v1alpha1", "kind": "ProfiledJob", "metadata": metadata, "spec": spec}

    def bystander(self, namespace: str, name: str, **labels: str) -> Object:
        spec = {"containers": [listener(self.image, HTTPS, 8000, SIDECAR_PORT)], "terminationGracePeriodSeconds": 0}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def pod(self, namespace: str, *selector: str) -> Place:
        pods = self.release.kubectl.json("get", "pods", f"--namespace={namespace}", *selector)["items"]
        (found,) = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"])
        return place(found)

    def named(self, namespace: str, name: str) -> Place:
        return self.pod(namespace, f"--field-selector=metadata.name={name}")

    @property
    def operator(self) -> Place:
        return self.pod(SYSTEM, f"--selector={OPERATORS}")

    def pod_of(self, job: str) -> Place:
        return self.pod(TENANT, f"--selector={LABEL_JOB}={job}")

    def wanted(self) -> list[Way]:
        spec = self.release.cluster.spec
        operator, job = self.operator, self.pod_of(FIRST)
        scraper, foreign = self.named(MONITORING, "scraper"), self.named(ELSEWHERE, "foreign")
        return [
            Way(operator, Place("the API server, by its name", "kubernetes.default.svc"), HTTPS),
            Way(operator, Place("DNS", spec.node_ip), 53),
            Way(operator, Place("the profiler", job.address), SIDECAR_PORT),
            Way(operator, Place("the page", job.address), PAGE),
            Way(scraper, Place("the operator", operator.address), METRICS),
            Way(scraper, Place("the profiler", job.address), SIDECAR_PORT),
            Way(foreign, Place("the operator", operator.address), HEALTH),
            Way(foreign, Place("the program", job.address), PROGRAM),
            Way(job, Place("the API server, by its name", "kubernetes.default.svc"), HTTPS),
            Way(job, Place("a foreign pod", foreign.address), 8000),
        ]

    def unwanted(self) -> list[Way]:
        operator, job = self.operator, self.pod_of(FIRST)
        foreign, neighbour = self.named(ELSEWHERE, "foreign"), self.named(TENANT, "neighbour")
        beside = self.named(SYSTEM, "beside")
        refused = [
            way
            for source in (foreign, neighbour, beside)
            for way in (
                Way(source, Place("the profiler", job.address), SIDECAR_PORT),
                Way(source, Place("the operator", operator.address), METRICS),
            )
        ]
        return [
            *refused,
            Way(job, Place("the operator", operator.address), METRICS),
            Way(operator, Place("the program", job.address), PROGRAM),
            Way(operator, Place("a foreign pod", foreign.address), 8000),
            Way(operator, Place("a foreign pod", foreign.address), HTTPS),
            Way(operator, Place("a foreign pod", foreign.address), SIDECAR_PORT),
            self.to_prometheus(),
        ]

    def to_prometheus(self) -> Way:
        """Unwanted as long as the operator reads none."""
        spec = self.release.cluster.spec
        return Way(self.operator, Place("Prometheus", spec.node_ip), spec.ports.prometheus)

    def opened(self, ways: Iterable[Way]) -> set[str]:
        return open_ways(self.release.kubectl, ways)

    def profiled(self, job: str) -> str:
        """The reason of the condition."""
        body = self.release.kubectl.json("get", "profiledjob", job, f"--namespace={TENANT}")
        conditions = body.get("status", {}).get("conditions", [])
        return next((c["reason"] for c in conditions if c["type"] == "Profiled"), "")

    def metrics(self) -> str:
        """The operator's page, as who scrapes it sees it."""
        read = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"
        url = f"http://{self.operator.address}:{METRICS}/metrics"
        return self.release.kubectl("exec", "scraper", f"--namespace={MONITORING}", "--", "python3", "-c", read, url)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """KEEP=1 leaves the cluster up."""
    if not os.environ.get(KUBE_ROUTER):
        pytest.skip(f"nothing enforces NetworkPolicies here: set {KUBE_ROUTER} to the program (docs/lab/security.md)")
    folder = tmp_path_factory.mktemp("images")
    with cluster_with_images(CLUSTER, folder, kept=bool(os.environ.get("KEEP"))) as (running, images):
        namespaces = (SYSTEM, TENANT, MONITORING, ELSEWHERE)
        running.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in namespaces)
        values = folder / "chosen.yaml"
        values.write_text(yaml.safe_dump({**yaml.safe_load((folder / recipes.VALUES).read_text()), **chosen()}))
        site = Site(Release(running, values), f"docker.io/rightpool/profiler@{images['profiler'].digest}")
        site.release.install(CHART, DIRECTLY)
        site.release.until_led()
        pods = [
            site.bystander(ELSEWHERE, "foreign"),
            site.bystander(TENANT, "neighbour"),
            site.bystander(SYSTEM, "beside", **{"app.kubernetes.io/instance": NAME}),
            site.bystander(MONITORING, "scraper"),
        ]
        running.kubectl.apply([*pods, DEV_POOL, site.job(FIRST)])
        yield site


def chosen() -> Object:
    """The values of a cluster whose monitoring is in a namespace of its own."""
    addresses = [f"{CLUSTER.service_ip}/32", f"{CLUSTER.node_ip}/32"]
    policy = {
        "enabled": True,
        "apiServer": {"cidrs": addresses, "ports": [HTTPS, CLUSTER.ports.api]},
        "ingressFrom": [_SCRAPER],
        "profilersIn": [TENANT],
        "profilersFrom": [_SCRAPER],
    }
    return {"networkPolicy": policy, "replicaCount": 1}


def test_every_way_is_open_where_nothing_enforces_policies(site: Site) -> None:
    def all_run() -> bool:
        pods = site.release.kubectl.json("get", "pods", "--all-namespaces")["items"]
        return all(pod["status"]["phase"] == "Running" for pod in pods) and len(pods) == 6

    eventually(all_run, lambda: site.release.kubectl("get", "pods", "--all-namespaces"))
    ways = [*site.wanted(), *site.unwanted()]
    closed: set[str] = set()

    def complete() -> bool:
        closed.clear()
        closed.update({str(way) for way in ways} - site.opened(ways))
        return not closed

    eventually(complete, lambda: str(closed))


def test_the_wanted_ways_and_no_others_are_open(site: Site) -> None:
    network_policies.up(CLUSTER, Path(os.environ[KUBE_ROUTER]), Progress(quiet=True))
    wanted = {str(way) for way in site.wanted()}
    ways = [*site.wanted(), *site.unwanted()]
    found: set[str] = set()

    def right() -> bool:
        found.clear()
        found.update(site.opened(ways))
        return found == wanted

    eventually(right, lambda: f"open: {sorted(found - wanted)}, closed: {sorted(wanted - found)}")


def test_profilers_are_read_directly(site: Site) -> None:
    """Of jobs that were started after the policies held. A program that is no training makes no steps."""
    kubectl = site.release.kubectl
    simulated = Workload(kubectl, TENANT, "simulated").body()
    simulated["spec"]["profiling"] = _SOON
    kubectl.apply([site.job(LATER), simulated])
    expected = {LATER: "PartialTelemetry", "simulated": "Measured"}
    found: dict[str, str] = {}

    def read() -> bool:
        found.update({job: site.profiled(job) for job in expected})
        return found == expected

    eventually(read, lambda: f"{found}\n{site.release.operators()}")
    foreign = Way(site.named(ELSEWHERE, "foreign"), site.pod_of(LATER), SIDECAR_PORT)
    assert site.opened([foreign]) == set()


def test_a_request_reaches_the_profiler(site: Site) -> None:
    """What it answers is the program's: this one is no training, which is known three minutes after its start."""
    kubectl = site.release.kubectl
    kubectl("annotate", "profiledjob", LATER, f"--namespace={TENANT}", f"{ANNOTATION_TRACE}=now")

    def reason() -> str:
        trace = kubectl.json("get", "profiledjob", LATER, f"--namespace={TENANT}")["status"].get("trace", {})
        return str(trace.get("reason", ""))

    eventually(lambda: reason() == "NoAgent", lambda: f"{reason()}\n{site.release.operators()}")


def test_prometheus_is_open_where_the_operator_reads_one(site: Site) -> None:
    site.release.install(CHART)
    site.release.until_led()
    eventually(lambda: site.opened([site.to_prometheus()]) != set(), site.release.operators)
    eventually(lambda: "rightpool_operator_telemetry_up 1.0" in site.metrics(), site.release.operators)


def test_helm_test_passes(site: Site) -> None:
    assert "ok: the operator's metrics are served" in site.release.helm("test", NAME, "--logs", HELM_WAITS)
