"""A cluster of its own with Kueue in it, operators as in the tests of faults, and one set of queues for each test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import build, kinds, kueue
from devcluster import cluster as clusters
from devcluster.cluster import Running
from devcluster.progress import Progress
from devcluster.spec import KUEUE
from rightpool.cluster.client import ClusterClient
from rightpool.workloads.kinds.registry import optional_resources
from tests.integration.faults.conftest import impatient, machines, process_pool, site, tenant
from tests.integration.faults.site import NamespaceWatch, Site
from tests.integration.kueue.queues import Queues
from tests.integration.runtime.conftest import CRDS, client
from tests.integration.runtime.harness import ROOT

__all__ = ["client", "impatient", "machines", "process_pool", "site", "tenant"]


@pytest.fixture(scope="session")
def own_cluster() -> Iterator[Running]:
    """KEEP=1 leaves it up, so that the next run starts faster."""
    if os.environ.get("RIGHTPOOL_TEST_KUBECONFIG"):
        pytest.skip("RIGHTPOOL_TEST_KUBECONFIG names a cluster, and these tests need theirs")
    if os.geteuid() != 0:
        pytest.skip("Kueue's webhooks are reached in a network namespace, and that needs root")
    if build.missing([build.KUEUE]):
        pytest.skip("Kueue is not built: `make kueue` builds it and runs these tests")
    running = clusters.up(KUEUE, Progress(quiet=True))
    kinds.up(kinds.JOBSET, KUEUE, Progress(quiet=True))
    if not build.missing([build.TRAINER]):
        kinds.up(kinds.TRAINER, KUEUE, Progress(quiet=True))
    kueue.up(KUEUE, Progress(quiet=True))
    running.kubectl.apply(admission_policies())
    yield running
    if not os.environ.get("KEEP"):
        clusters.down(KUEUE)


def admission_policies() -> list[Any]:
    """Those of the chart, which must let Kueue write what the operator has made."""
    has = ["--kube-version=1.36", "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"]
    only = "--show-only=templates/admission.yaml"
    command = [build.binary("helm"), "template", "rightpool", str(ROOT / "charts" / "rightpool"), only, *has]
    rendered = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [document for document in yaml.safe_load_all(rendered) if document]


@pytest.fixture(scope="package")
def namespace_watch(client: ClusterClient, kubeconfig: Path, machines: None) -> Iterator[NamespaceWatch]:
    """Of the kinds that are installed: what is not there would be waited for."""
    there = {body["metadata"]["name"] for body in client.list_all(CRDS)}
    kinds = (kind for kind in optional_resources() if f"{kind.plural}.{kind.group}" in there)
    watch = NamespaceWatch(kubeconfig, *kinds)
    yield watch
    watch.stop()


@pytest.fixture(scope="session")
def trainer() -> None:
    if build.missing([build.TRAINER]):
        pytest.skip("Trainer is not built: `make kueue` builds it and runs these tests")


@pytest.fixture(scope="session")
def kubeconfig(own_cluster: Running) -> Path:
    return own_cluster.kubeconfig


@pytest.fixture
def queues(client: ClusterClient, site: Site, machines: None) -> Iterator[Queues]:
    """Queues of the test's namespace, which admit nothing before `quota` was called."""
    made = Queues(client, site.namespace)
    yield made
    made.remove()
