"""A control plane for benchmarks: etcd, the API server and kwok of the development cluster, on loopback.

No controllers, scheduler or kubelet run: the synthetic fleet is created complete, and on two cores they would compete
with the operator for the processor. kwok sets the status of nodes and pods as a kubelet would.
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
# These two need controllers: they create service accounts, and remove the taint of nodes that become ready.
_WITHOUT: Final = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"


@dataclass(frozen=True)
class Sandbox:
    """A running control plane."""

    kubeconfig: Path
    audit_log: Path
    logs: Path
    supervisor: Supervisor

    def pid(self, name: str) -> int:
        """The process ID of etcd, kube-apiserver or kwok."""
        record = self.supervisor.record(name)
        assert record is not None
        return record.identity.pid


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """Start the control plane, and stop it at the end in any case. A second one at the same time is refused."""
    build.ensure(build.CONTROL_PLANE, Progress())
    with alone():
        yield from _run()


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of benchmarks that start processes and use fixed ports."""
    state_home().mkdir(parents=True, exist_ok=True)
    with (state_home() / f"{SPEC.name}.running").open("w") as lock:  # the kernel releases it when the process ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DevclusterError(f"another benchmark runs on cluster {SPEC.name}: wait for its end") from None
        yield


def _run() -> Iterator[Sandbox]:
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
    # A Lease for each node, renewed every ten seconds, would cause most of the API server's load.
    yield replace(kwok, command=(*kwok.command, "--node-lease-duration-seconds=0"))
