"""A cluster of these tests' own, operators that die where they are told to, and the checker that looks on.

An operator that looks after all namespaces, such as a release on the common test cluster, would do what the dead ones
left undone; and the control plane of a cluster that others use can't be restarted.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.invariants import Checker
from chaos.operators import Nursery, Replica
from chaos.stream import Stream
from devcluster import cluster as clusters
from devcluster.cluster import Running
from devcluster.progress import Progress
from devcluster.spec import FAULTS
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PLACEMENT_POLICIES
from tests.integration.faults.fleet import POLICY, POOLS, Tenant, make_node, nodes
from tests.integration.runtime.conftest import client, start

__all__ = ["client", "start"]


@pytest.fixture(scope="session")
def own_cluster() -> Iterator[Running | None]:
    """None where RIGHTPOOL_TEST_KUBECONFIG names a cluster that is not ours to break."""
    if os.environ.get("RIGHTPOOL_TEST_KUBECONFIG"):
        yield None
        return
    if os.geteuid() != 0:
        pytest.skip("simulated pods answer only in network namespaces, and those need root")
    yield clusters.up(FAULTS, Progress(quiet=True))
    if not os.environ.get("KEEP"):
        clusters.down(FAULTS)


@pytest.fixture(scope="session")
def kubeconfig(own_cluster: Running | None) -> Path:
    """In place of the common test cluster's."""
    return Path(os.environ["RIGHTPOOL_TEST_KUBECONFIG"]) if own_cluster is None else own_cluster.kubeconfig


@pytest.fixture
def breakable(own_cluster: Running | None) -> Running:
    """The cluster, for those that break its control plane."""
    if own_cluster is None:
        pytest.skip("RIGHTPOOL_TEST_KUBECONFIG names a cluster whose control plane is not ours to break")
    return own_cluster


@pytest.fixture(scope="package")
def machines(client: ClusterClient) -> Iterator[None]:
    """Nodes, pools and a policy of these tests' own; what others left is put back afterwards."""
    for body in nodes():
        make_node(client, body)
    for name, spec in POOLS.items():
        _put(client, ACCELERATOR_POOLS, name, spec)
    before = None
    try:
        before = client.get(PLACEMENT_POLICIES, "default")["spec"]
    except NotFound:
        pass
    _put(client, PLACEMENT_POLICIES, "default", POLICY)
    yield
    for name in POOLS:
        client.delete(ACCELERATOR_POOLS, name)
    for body in nodes():
        client.delete(NODES, body["metadata"]["name"])
    if before is None:
        client.delete(PLACEMENT_POLICIES, "default")
    else:
        _put(client, PLACEMENT_POLICIES, "default", before)


def _put(client: ClusterClient, resource: Any, name: str, spec: dict[str, Any]) -> None:
    try:
        client.replace(resource, {**client.get(resource, name), "spec": spec})
    except NotFound:
        client.create(resource, {"metadata": {"name": name}, "spec": spec})


@pytest.fixture
def tenant(machines: None, client: ClusterClient, namespace: str) -> Tenant:
    return Tenant(client, namespace)


@pytest.fixture(scope="package")
def nursery(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    nursery = Nursery(kubeconfig, tmp_path_factory.mktemp("operators"))
    yield nursery
    nursery.close()


@pytest.fixture
def operate(nursery: Nursery, namespace: str) -> Iterator[Callable[..., Replica]]:
    """Starts operators that watch this test's namespace alone; whatever still runs afterwards is ended."""
    started: list[Replica] = []

    def begin(identity: str = "a", die: str | None = None, **settings: str) -> Replica:
        environment = {
            "RIGHTPOOL_WATCH_NAMESPACES": namespace,
            "RIGHTPOOL_LEASE_NAMESPACE": namespace,
            "RIGHTPOOL_LEASE_DURATION": "5",
            **settings,
        }
        replica = nursery.start(f"{namespace}-{identity}", die=die, environment=environment)
        started.append(replica)
        return replica

    yield begin
    for replica in started:
        replica.thaw()
        replica.kill()
        assert nursery.wait(replica, 60)


class Watchman:
    """Feeds the checker with what happens in one namespace, in the background."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.checker = Checker(limit=120.0)
        self._namespace = namespace
        self._stream = Stream(kubeconfig)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(0.05):
            for event in self._stream.take():
                if event.body["metadata"].get("namespace") == self._namespace:
                    self.checker.see(event)
            now = time.monotonic()
            self.checker.tick(now - last)
            last = now

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        self._stream.stop()


@pytest.fixture
def watchman(kubeconfig: Path, namespace: str) -> Iterator[Watchman]:
    """Whatever a test does, nothing that must never happen may happen."""
    watchman = Watchman(kubeconfig, namespace)
    yield watchman
    watchman.stop()
    assert watchman.checker.events > 0
    assert [str(violation) for violation in watchman.checker.violations] == []
