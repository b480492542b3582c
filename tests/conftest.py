"""Fixtures that every kind of test shares: the cluster, and a namespace of one's own in it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def kubeconfig() -> Path:
    """Kubeconfig of the cluster under test, named by RIGHTPOOL_TEST_KUBECONFIG."""
    path = os.environ.get("RIGHTPOOL_TEST_KUBECONFIG")
    if not path:
        pytest.fail("no cluster: set RIGHTPOOL_TEST_KUBECONFIG to the kubeconfig of a cluster made for tests")
    return Path(path)


@pytest.fixture
def namespace(kubeconfig: Path) -> Iterator[str]:
    """A fresh namespace, deleted afterwards."""
    from kubernetes import client, config

    api = client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))
    name = f"test-{uuid.uuid4().hex[:10]}"
    api.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
    yield name
    api.delete_namespace(name)
