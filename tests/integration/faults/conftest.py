"""A separate cluster, operators that crash at chosen points, and a checker of invariants.

An operator that watches all namespaces, such as a release on the common test cluster, would finish the work of the
crashed ones; and the control plane of a cluster in common use can't be restarted.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from devcluster import cluster as clusters
from devcluster.cluster import Running
from devcluster.progress import Progress
from devcluster.spec import FAULTS, FAULTS_TOO
from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, Conflict
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PLACEMENT_POLICIES
from tests.chaos.operators import ProcessPool, Replica
from tests.integration.faults.fleet import CONFIG_MAPS, POLICY, POOLS, SHORT, SIMULATED, SIMULATION_MAP, Tenant, nodes
from tests.integration.faults.site import NamespaceWatch, Site
from tests.integration.runtime.conftest import client
from tests.patience import eventually

__all__ = ["client"]

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


CLUSTERS = {"master": FAULTS, "gw0": FAULTS, "gw1": FAULTS_TOO}


@pytest.fixture(scope="session")
def own_cluster(worker_id: str) -> Iterator[Running]:
    """A cluster that tests may break, of each of two processes of pytest-xdist its own. KEEP=1 leaves it up, so that
    the next run starts faster."""
    if os.environ.get("RIGHTPOOL_TEST_KUBECONFIG"):
        pytest.skip("RIGHTPOOL_TEST_KUBECONFIG names a cluster, and these tests break theirs")
    if os.geteuid() != 0:
        pytest.skip("simulated pods answer only in network namespaces, and those need root")
    if worker_id not in CLUSTERS:
        pytest.fail(f"there are clusters for two processes at most, and this one is {worker_id}: run with -n 2")
    spec = CLUSTERS[worker_id]
    yield clusters.up(spec, Progress(quiet=True))
    if not os.environ.get("KEEP"):
        clusters.down(spec)


@pytest.fixture(scope="session")
def kubeconfig(own_cluster: Running) -> Path:
    """In place of the common test cluster's."""
    return own_cluster.kubeconfig


def put(
    client: ClusterClient, resource: Resource, name: str, body: dict[str, Any], namespace: str | None = None
) -> None:
    """Create it, or replace what is there."""
    about = {"name": name, **({"namespace": namespace} if namespace else {})}
    try:
        client.create(resource, {"metadata": about, **body})
        return
    except AlreadyExists:
        pass
    while True:
        try:
            client.replace(resource, {**client.get(resource, name, namespace), **body})
            return
        except Conflict:
            continue  # operators write its status


@pytest.fixture(scope="package")
def machines(client: ClusterClient) -> None:
    """Nodes, pools, a policy, and how the pools behave. They go with the cluster."""
    namespace, name = SIMULATION_MAP
    put(client, CONFIG_MAPS, name, {"data": SIMULATED}, namespace)
    put(client, PLACEMENT_POLICIES, "default", {"spec": POLICY})
    for pool, spec in POOLS.items():
        put(client, ACCELERATOR_POOLS, pool, {"spec": spec})
    for body in nodes():
        try:
            client.create(NODES, body)
        except AlreadyExists:
            pass
    eventually(lambda: all(ready(body) for body in client.list_all(NODES)), "every node is ready")


def ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@pytest.fixture
def impatient(client: ClusterClient, machines: None) -> Iterator[Callable[[], None]]:
    """A function that shortens the start deadline until the end of the test."""

    def shorten() -> None:
        put(client, PLACEMENT_POLICIES, "default", {"spec": {**POLICY, "startDeadline": SHORT}})

    yield shorten
    put(client, PLACEMENT_POLICIES, "default", {"spec": POLICY})


@pytest.fixture(scope="package")
def process_pool(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPool]:
    process_pool = ProcessPool(kubeconfig, tmp_path_factory.mktemp("operators"))
    yield process_pool
    process_pool.close()


@pytest.fixture(scope="package")
def namespace_watch(kubeconfig: Path, machines: None) -> Iterator[NamespaceWatch]:
    namespace_watch = NamespaceWatch(kubeconfig)
    yield namespace_watch
    namespace_watch.stop()


@contextmanager
def make_site(
    client: ClusterClient, process_pool: ProcessPool, namespace_watch: NamespaceWatch, folder: Path
) -> Iterator[Site]:
    """A site whose invariants are checked at the end."""
    namespace = f"test-{uuid.uuid4().hex[:10]}"
    client.create(NAMESPACES, {"metadata": {"name": namespace}})
    site = Site(client, namespace, process_pool, namespace_watch, folder)
    try:
        yield site
        site.assert_no_violations()
    finally:
        site.close()
        client.delete(NAMESPACES, namespace, propagation="Background")


@pytest.fixture
def site(
    client: ClusterClient, process_pool: ProcessPool, namespace_watch: NamespaceWatch, tmp_path: Path
) -> Iterator[Site]:
    with make_site(client, process_pool, namespace_watch, tmp_path) as site:
        yield site


@pytest.fixture
def sites(
    client: ClusterClient, process_pool: ProcessPool, namespace_watch: NamespaceWatch, tmp_path: Path
) -> Iterator[Callable[[], Site]]:
    """A factory of sites, for tests that wait in several of them at once."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(make_site(client, process_pool, namespace_watch, tmp_path))


@pytest.fixture
def tenant(site: Site) -> Tenant:
    return site.tenant


@pytest.fixture
def operate(site: Site) -> Callable[..., Replica]:
    return site.operate
