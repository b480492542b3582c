"""The API server is killed or stopped during a migration."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from devcluster import cluster as clusters
from devcluster.cluster import Running
from devcluster.processes import Supervisor
from rightpool.cluster.errors import ClusterError
from tests.chaos.operators import Replica
from tests.integration.faults.fleet import A10G, Tenant
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.cluster

HERE = {"pools": {"allow": [A10G]}}


@pytest.mark.parametrize("how", ["restarted", "frozen"])
@pytest.mark.parametrize("phase", ["Checkpointing", "Starting"])
def test_the_api_server_is_unavailable(
    operate: Callable[..., Replica], tenant: Tenant, own_cluster: Running, how: str, phase: str
) -> None:
    operator = operate()
    tenant.train("bert", placement=HERE, play={"checkpoint-delay": "1s", "start-delay": "1s"})
    eventually(lambda: tenant.settled("bert"))
    edits = tenant.caught("bert", phase)
    supervisor = Supervisor(own_cluster.spec.state)
    record = supervisor.record("kube-apiserver")
    assert record is not None
    if how == "frozen":
        record.identity.signal(signal.SIGSTOP)
        time.sleep(8)
        record.identity.signal(signal.SIGCONT)
    else:
        record.identity.signal(signal.SIGKILL)
        while record.identity.alive():
            time.sleep(0.02)
        programs = clusters.programs(own_cluster.spec, root=True)
        program = next(program for program in programs if program.name == "kube-apiserver")
        supervisor.ensure(program)
        supervisor.wait(program, seconds=PATIENCE)
    eventually(lambda: answers(tenant) and tenant.outcomes("bert") == ["CarriedOut"] * edits and tenant.settled("bert"))
    assert tenant.status("bert")["placement"]["revision"] == 1 + edits
    assert operator.alive
    tenant.only_child("bert")


def answers(tenant: Tenant) -> bool:
    """Whether the API server answers."""
    try:
        tenant.job("bert")
    except ClusterError:
        return False
    return True
