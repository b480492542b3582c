"""A separate cluster, and skips for tests that need root."""

import os

import pytest

from devcluster import deps
from devcluster.spec import CRASH, Cluster


@pytest.fixture
def crash() -> Cluster:
    return CRASH


@pytest.fixture
def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces and containers need root")
    absent = deps.missing(root=True)
    if absent:
        pytest.skip(deps.describe(absent))
