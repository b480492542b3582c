"""Operators against a real API server, in a namespace of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from tests.integration.runtime.harness import ROOT, Fleet, OperatorProcess
from tests.patience import eventually

CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
Start = Callable[..., OperatorProcess]


@pytest.fixture(scope="session")
def client(kubeconfig: Path) -> Iterator[ClusterClient]:
    # Where the machine does much else, an answer may take longer than an operator waits for one.
    client = ClusterClient.connect(kubeconfig, qps=500, burst=500, timeout=300.0)
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        definition = yaml.safe_load(path.read_text())
        client.apply(CRDS, {key: definition[key] for key in ("metadata", "spec")})
        name = definition["metadata"]["name"]
        eventually(lambda name=name: "Established" in str(client.get(CRDS, name).get("status")))  # type: ignore[misc]
    releases = client.list_all(DEPLOYMENTS, labels="app.kubernetes.io/name=rightpool")
    if releases:
        client.close()
        where = releases[0]["metadata"]["namespace"]
        pytest.fail(f"a release in {where} would act in place of the operators under test: helm uninstall it")
    yield client
    client.close()


@pytest.fixture
def fleet(client: ClusterClient, namespace: str) -> Fleet:
    return Fleet(client, namespace)


@pytest.fixture
def start(kubeconfig: Path, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Starts operators; whatever still runs afterwards is ended."""
    started: list[OperatorProcess] = []

    def begin(identity: str = "a", **settings: str) -> OperatorProcess:
        started.append(OperatorProcess(kubeconfig, namespace, tmp_path, identity, **settings))
        return started[-1]

    yield begin
    for process in started:
        process.end()
