"""A cluster of these tests' own, operators that die where they are told to, and a checker that looks on.

An operator that looks after all namespaces, such as a release on the common test cluster, would do what the dead ones
left undone; and the control plane of a cluster that others use can't be restarted.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaos.operators import Nursery, Replica
from devcluster import cluster as clusters
from devcluster.cluster import Running
from devcluster.progress import Progress
from devcluster.spec import FAULTS
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, Conflict
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PLACEMENT_POLICIES, Resource
from tests.integration.faults.fleet import CONFIG_MAPS, POLICY, POOLS, SHORT, SIMULATED, SIMULATION_MAP, Tenant, nodes
from tests.integration.faults.site import Site, Watchman
from tests.integration.runtime.conftest import client
from tests.integration.runtime.harness import eventually

__all__ = ["client"]

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@pytest.fixture(scope="session")
def own_cluster() -> Iterator[Running]:
    """A cluster that is ours to break. KEEP=1 leaves it up, which makes the next run start faster."""
    if os.environ.get("RIGHTPOOL_TEST_KUBECONFIG"):
        pytest.skip("RIGHTPOOL_TEST_KUBECONFIG names a cluster, and these tests break theirs")
    if os.geteuid() != 0:
        pytest.skip("simulated pods answer only in network namespaces, and those need root")
    yield clusters.up(FAULTS, Progress(quiet=True))
    if not os.environ.get("KEEP"):
        clusters.down(FAULTS)


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
    eventually(lambda: all(ready(body) for body in client.list_all(NODES)), what="every node is ready")


def ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@pytest.fixture
def impatient(client: ClusterClient, machines: None) -> Iterator[Callable[[], None]]:
    """From the call to the end of the test, a target is given up soon."""

    def shorten() -> None:
        put(client, PLACEMENT_POLICIES, "default", {"spec": {**POLICY, "startDeadline": SHORT}})

    yield shorten
    put(client, PLACEMENT_POLICIES, "default", {"spec": POLICY})


@pytest.fixture(scope="package")
def nursery(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    nursery = Nursery(kubeconfig, tmp_path_factory.mktemp("operators"))
    yield nursery
    nursery.close()


@pytest.fixture(scope="package")
def watchman(kubeconfig: Path, machines: None) -> Iterator[Watchman]:
    watchman = Watchman(kubeconfig)
    yield watchman
    watchman.stop()


@contextmanager
def make_site(client: ClusterClient, nursery: Nursery, watchman: Watchman, folder: Path) -> Iterator[Site]:
    """Whatever is done in it, nothing that must never happen may happen."""
    namespace = f"test-{uuid.uuid4().hex[:10]}"
    client.create(NAMESPACES, {"metadata": {"name": namespace}})
    site = Site(client, namespace, nursery, watchman, folder)
    try:
        yield site
        site.sound()
    finally:
        site.close()
        client.delete(NAMESPACES, namespace, propagation="Background")


@pytest.fixture
def site(client: ClusterClient, nursery: Nursery, watchman: Watchman, tmp_path: Path) -> Iterator[Site]:
    with make_site(client, nursery, watchman, tmp_path) as site:
        yield site


@pytest.fixture
def sites(client: ClusterClient, nursery: Nursery, watchman: Watchman, tmp_path: Path) -> Iterator[Callable[[], Site]]:
    """As many as a test wants, for what takes its time and can be awaited side by side."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(make_site(client, nursery, watchman, tmp_path))


@pytest.fixture
def tenant(site: Site) -> Tenant:
    return site.tenant


@pytest.fixture
def operate(site: Site) -> Callable[..., Replica]:
    return site.operate
