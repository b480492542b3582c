"""A control plane to measure against: etcd, the API server and kwok of the development cluster, on loopback.

No controllers, scheduler or kubelet: the crowd is made complete, and on two cores they would take the time that is to
be measured. kwok gives nodes and pods the status that a kubelet would.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from devcluster import build, cluster, control_plane, pki, simulated
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import Cluster, DevclusterError, Ports, state_home

SPEC: Final = Cluster(
    name="bench",
    ports=Ports.starting_at(21440),
    node_subnet="10.120.0.0/24",
    service_cidr="10.121.0.0/24",
    simulated_cidr="10.124.0.0/14",
)
START_SECONDS: Final = 90.0
# What controllers would do otherwise: service accounts, and the taint of nodes that are not ready yet.
_WITHOUT: Final = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"


@dataclass(frozen=True)
class Sandbox:
    """What runs."""

    kubeconfig: Path
    audit_log: Path
    logs: Path
    supervisor: Supervisor

    def pid(self, name: str) -> int:
        """Of etcd, kube-apiserver or kwok."""
        record = self.supervisor.record(name)
        assert record is not None
        return record.identity.pid


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """Up, and down again at the end, whatever happens in between. One at a time: a second is refused."""
    build.ensure(build.CONTROL_PLANE, Progress())
    with alone():
        yield from _running()


@contextmanager
def alone() -> Iterator[None]:
    """No other benchmark with processes and ports of its own at the same time."""
    state_home().mkdir(parents=True, exist_ok=True)
    with (state_home() / f"{SPEC.name}.running").open("w") as lock:  # the kernel lets go of it when its holder dies
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DevclusterError(f"another benchmark runs on cluster {SPEC.name}: wait for its end") from None
        yield


def _running() -> Iterator[Sandbox]:
    cluster.down(SPEC)
    SPEC.logs.mkdir(parents=True)
    try:
        pki.ensure(SPEC, control_plane.server(SPEC, root=False))
        supervisor = Supervisor(SPEC.state)
        for program in _programs():
            supervisor.ensure(program)
            supervisor.wait(program, seconds=START_SECONDS)
        yield Sandbox(SPEC.kubeconfig, control_plane.audit_log(SPEC), SPEC.logs, supervisor)
    finally:
        cluster.down(SPEC)


def _programs() -> Iterator[Program]:
    etcd, api_server, *_ = control_plane.programs(SPEC, root=False)
    yield etcd
    yield replace(api_server, command=(*api_server.command, _WITHOUT))
    kwok = simulated.programs(SPEC, root=False)[0]
    # A lease for each node, renewed every ten seconds, would be most of the API server's work.
    yield replace(kwok, command=(*kwok.command, "--node-lease-duration-seconds=0"))
