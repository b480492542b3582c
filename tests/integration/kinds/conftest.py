"""A cluster of its own with the controllers of other kinds of workloads, and operators as in the tests of faults."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import build, kinds
from devcluster import cluster as clusters
from devcluster.cluster import Running
from devcluster.progress import Progress
from devcluster.spec import KINDS
from tests.integration.faults.conftest import impatient, machines, process_pool, site, tenant
from tests.integration.kueue.conftest import admission_policies, namespace_watch
from tests.integration.runtime.conftest import client

__all__ = ["client", "impatient", "machines", "namespace_watch", "process_pool", "site", "tenant"]


@pytest.fixture(scope="session")
def own_cluster() -> Iterator[Running]:
    """With the chart's admission policies, which must let these controllers write what the operator has made. KEEP=1
    leaves it up, so that the next run starts faster."""
    if os.environ.get("RIGHTPOOL_TEST_KUBECONFIG"):
        pytest.skip("RIGHTPOOL_TEST_KUBECONFIG names a cluster, and these tests need theirs")
    if os.geteuid() != 0:
        pytest.skip("simulated pods answer only in network namespaces, and those need root")
    running = clusters.up(KINDS, Progress(quiet=True))
    kinds.up(kinds.JOBSET, KINDS, Progress(quiet=True))
    for controller in (kinds.TRAINER, kinds.LWS):
        if not build.missing([controller.component]):
            kinds.up(controller, KINDS, Progress(quiet=True))
    running.kubectl.apply(admission_policies())
    yield running
    if not os.environ.get("KEEP"):
        clusters.down(KINDS)


@pytest.fixture(scope="session")
def kubeconfig(own_cluster: Running) -> Path:
    return own_cluster.kubeconfig


@pytest.fixture(scope="session")
def trainer() -> None:
    if build.missing([build.TRAINER]):
        pytest.skip("Trainer is not built: `make kinds` builds it and runs these tests")


@pytest.fixture(scope="session")
def leader_worker_set() -> None:
    if build.missing([build.LWS]):
        pytest.skip("LeaderWorkerSet is not built: `make kinds` builds it and runs these tests")


INSTALLED = {"trainJob": "trainer", "leaderWorkerSet": "leader_worker_set"}
"""By kind, the fixture that needs its controller, of those that `make test` does not build."""
