"""A separate cluster with the chart, because policies and roles are global."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from devcluster import recipes
from devcluster.kubectl import Kubectl
from devcluster.spec import SECURITY as CLUSTER
from tests.patience import eventually

from ..chart.release import CHART, SYSTEM, Release, cluster_with_images
from .tenants import Tenants

NAMESPACES = {"research": "baseline", "prod": "privileged", SYSTEM: "restricted"}


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """The release. KEEP=1 leaves the cluster up, so that the next run starts faster."""
    folder = tmp_path_factory.mktemp("images")
    with cluster_with_images(CLUSTER, folder, kept=bool(os.environ.get("KEEP"))) as (running, _):
        running.kubectl.apply(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": standard}},
            }
            for name, standard in NAMESPACES.items()
        )
        release = Release(running, folder / recipes.VALUES)
        release.install(CHART)
        release.until_led()
        yield release


@pytest.fixture(scope="session")
def kubectl(release: Release) -> Kubectl:
    return release.kubectl


@pytest.fixture(scope="session")
def tenants(release: Release) -> Tenants:
    """Users of the namespace research, once the policies are enforced."""
    tenants = Tenants(release.kubectl, "research")
    tenants.admit()
    eventually(lambda: tenants.refusal("writer", "create", tenants.job("probe")) != "", lambda: "no policy holds")
    return tenants
