"""The specification of a cluster: name, addresses, ports and paths. Pure data.

Two specs never collide: with root each cluster has a separate network namespace, but without root all share the host's
loopback, and the host has routes to all of them in any case.
"""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

NODE_NAME: Final = "node-0"
DEV_CHIP_RESOURCE: Final = "rightpool.dev/cpu-chip"
DEV_CHIPS: Final = 2
POOL_LABEL: Final = "simulation.rightpool.dev/pool"
REPLAY_PORT: Final = 9464


class DevclusterError(Exception):
    """An error for the user. The message says what to do about it."""


@dataclass(frozen=True)
class Ports:
    """All TCP ports of a cluster's processes except DNS, which is 53 on the cluster's address."""

    etcd: int
    api: int
    controller_manager: int
    scheduler: int
    kwok: int
    kubelet: int
    kubelet_health: int
    proxy_health: int
    proxy_metrics: int
    prometheus: int
    kueue_health: int
    kueue_webhook: int
    kube_router_health: int
    jobset_health: int
    jobset_webhook: int
    trainer_health: int
    trainer_webhook: int
    lws_health: int
    lws_webhook: int
    contour_health: int
    contour_xds: int
    envoy_health: int
    gateway: int

    @classmethod
    def starting_at(cls, base: int) -> "Ports":
        """A block of consecutive ports."""
        return cls(*(base + offset for offset in range(len(fields(cls)))))

    def all(self) -> tuple[int, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class SimulatedSize:
    """How many nodes each simulated pool starts with."""

    a100: int = 4
    a10g: int = 8
    tpu_v5e: int = 4


@dataclass(frozen=True)
class Cluster:
    """One cluster. Equal specs mean the same cluster, in any process."""

    name: str
    ports: Ports
    node_subnet: str
    service_cidr: str
    simulated_cidr: str
    simulated: SimulatedSize = SimulatedSize()

    def __post_init__(self) -> None:
        # Interface names end at 15 characters, and "rp-<name>-sim" is the longest thing made from the name.
        if not re.fullmatch(r"[a-z][a-z0-9]{0,7}", self.name):
            raise DevclusterError(f"cluster name {self.name!r}: 1 to 8 lower-case letters and digits, a letter first")

    # Names in the kernel. The bridge is inside the namespace; it carries the cluster's name so that it reads well.
    @property
    def namespace(self) -> str:
        return f"rp-{self.name}"

    @property
    def simulated_namespace(self) -> str:
        return f"rp-{self.name}-sim"

    @property
    def host_link(self) -> str:
        """The host's end of the veth pair into the cluster."""
        return f"rp-{self.name}"

    @property
    def bridge(self) -> str:
        return f"rpbr-{self.name}"

    @property
    def cgroup(self) -> str:
        """Two kubelets in one cgroup tree would remove each other's pods as orphans."""
        return f"rightpool-{self.name}"

    # Addresses in the node subnet: .1 the node and the API server, .250 the simulated pods' router, .254 the host.
    def _address(self, index: int) -> str:
        return str(ipaddress.ip_network(self.node_subnet)[index])

    @property
    def node_ip(self) -> str:
        return self._address(1)

    @property
    def simulated_ip(self) -> str:
        return self._address(250)

    @property
    def host_ip(self) -> str:
        """The address at which pods and the API server reach processes on the host."""
        return self._address(254)

    @property
    def pod_range(self) -> tuple[str, str]:
        """First and last pod address of the real node, without the fixed addresses."""
        return self._address(10), self._address(240)

    @property
    def prefix(self) -> int:
        return ipaddress.ip_network(self.node_subnet).prefixlen

    @property
    def service_ip(self) -> str:
        """The API server's address as a Service: always the first of the range."""
        return str(ipaddress.ip_network(self.service_cidr)[1])

    # Paths.
    @property
    def state(self) -> Path:
        return state_home() / self.name

    @property
    def logs(self) -> Path:
        return self.state / "log"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "admin.kubeconfig"

    @property
    def containerd_socket(self) -> Path:
        return self.state / "containerd" / "containerd.sock"


def state_home() -> Path:
    return _xdg("XDG_STATE_HOME", ".local/state")


def cache_home() -> Path:
    return _xdg("XDG_CACHE_HOME", ".cache")


def _xdg(variable: str, fallback: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / fallback) / "rightpool"


def _cluster(
    name: str, ports: int, nodes: int, services: int, pods: int, simulated: SimulatedSize = SimulatedSize()
) -> Cluster:
    """nodes, services, pods: the second byte of the networks of real nodes, Services and simulated pods."""
    subnets = f"10.{nodes}.0.0/24", f"10.{services}.0.0/24", f"10.{pods}.0.0/16"
    return Cluster(name, Ports.starting_at(ports), *subnets, simulated)


_NO_NODES: Final = SimulatedSize(a100=0, a10g=0, tpu_v5e=0)

DEMO: Final = _cluster("demo", 16440, 88, 96, 99)
TEST: Final = _cluster("test", 17440, 89, 97, 98)
# For tests that break shared components or need a new cluster.
CRASH: Final = _cluster("crash", 18440, 90, 94, 92, SimulatedSize(a100=1, a10g=1, tpu_v5e=1))
CHART: Final = _cluster("chart", 19440, 91, 95, 93, SimulatedSize(a100=2, a10g=1, tpu_v5e=1))
SECURITY: Final = _cluster("sec", 20440, 104, 103, 102, SimulatedSize(a100=2, a10g=2, tpu_v5e=1))
FAULTS: Final = _cluster("faults", 22440, 105, 106, 107, _NO_NODES)
# Some tests of faults take long and break what others need, so they run side by side on clusters of their own.
FAULTS_TOO: Final = _cluster("faults2", 25440, 114, 115, 116, _NO_NODES)
CHAOS: Final = _cluster("chaos", 23440, 108, 109, 110, SimulatedSize(a100=10, a10g=20, tpu_v5e=4))
# With the chart, whose operator would take part in other tests.
STORIES: Final = _cluster("stories", 27440, 100, 101, 122)
KUEUE: Final = _cluster("kueue", 26440, 117, 118, 119, _NO_NODES)
# With the controllers of other kinds of workloads, which operators under test elsewhere would look for.
KINDS: Final = _cluster("kinds", 28440, 123, 124, 125, _NO_NODES)
NAMED: Final[Mapping[str, Cluster]] = {
    cluster.name: cluster
    for cluster in (DEMO, TEST, CRASH, CHART, SECURITY, FAULTS, FAULTS_TOO, CHAOS, STORIES, KUEUE, KINDS)
}


def named(name: str) -> Cluster:
    try:
        return NAMED[name]
    except KeyError:
        raise DevclusterError(f"no cluster is called {name!r}; there are: {', '.join(NAMED)}") from None
