"""A cluster of these tests' own, and the guards for what only root can do."""

import os

import pytest

from devcluster import deps
from devcluster.spec import Cluster, Ports, SimulatedSize

# Nothing in common with `demo` and `test`, which may be running while these tests break this one.
CRASH = Cluster(
    name="crash",
    ports=Ports.starting_at(18440),
    node_subnet="10.90.0.0/24",
    service_cidr="10.94.0.0/24",
    simulated_cidr="10.92.0.0/16",
    simulated=SimulatedSize(a100=1, a10g=1, tpu_v5e=1),
)


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
